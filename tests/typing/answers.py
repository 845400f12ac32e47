"""The types of requests, answers and messages to send. test_typing.py only type checks this file."""

from typing import Any

from msgspec import UNSET
from typing_extensions import assert_type

from claude_wire import (
    AssistantMessage,
    AsyncHookOutput,
    CanUseToolRequest,
    ControlRequest,
    ControlResponse,
    ElicitationRequest,
    ElicitationResponse,
    HookCallbackRequest,
    HookOutput,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    StreamEvent,
    TextBlock,
    ToolUseBlock,
    UserMessage,
    encode,
)
from claude_wire.messages import (
    GetContextUsageRequest,
    GetContextUsageResponse,
    InitializeRequest,
    InitializeResponse,
    InterruptRequest,
    InterruptResponse,
    McpMessageRequest,
    McpMessageResponse,
    McpServerConfig,
    McpSetServersRequest,
    McpStdioServerConfig,
    PermissionResult,
    RenameSessionRequest,
    RequestUserDialogRequest,
    SetMode,
    SetModelRequest,
    UnknownBlock,
    UnknownObject,
    UserDialogResult,
)

response = ControlResponse.success("1", {})

# payload_as returns the answer type of the given request class.
assert_type(response.payload_as(InitializeRequest), InitializeResponse)
assert_type(response.payload_as(InterruptRequest), InterruptResponse)
assert_type(response.payload_as(GetContextUsageRequest), GetContextUsageResponse)
assert_type(response.payload_as(CanUseToolRequest), PermissionResult)
assert_type(response.payload_as(HookCallbackRequest), HookOutput | AsyncHookOutput)
assert_type(response.payload_as(McpMessageRequest), McpMessageResponse)
assert_type(response.payload_as(ElicitationRequest), ElicitationResponse)
assert_type(response.payload_as(RequestUserDialogRequest), UserDialogResult)
assert_type(response.payload_as(RenameSessionRequest), dict[str, Any])
assert_type(InitializeRequest.parse_answer({}), InitializeResponse)

response.payload_as(InitializeResponse)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
response.payload_as(StreamEvent)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

assert_type(response.ok, bool)
assert_type(response.payload, dict[str, Any])
assert_type(response.request_id, str | float | None)
assert_type(ControlResponse.failure("1", "no", error_code="x"), ControlResponse)

# Answers that a host makes.
asked = CanUseToolRequest(tool_name="Bash", input={})
assert_type(asked.allow(), PermissionResultAllow)
assert_type(asked.allow({"a": 1}, updated_permissions=[SetMode("plan", "session")]), PermissionResultAllow)
assert_type(asked.deny("no", interrupt=True), PermissionResultDeny)
asked.deny()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
ControlResponse.success("1", asked.allow())
ControlResponse.success("1", HookOutput(continue_=False))
ControlResponse.success("1", UnknownObject({"behavior": "later"}))

# Messages that a host makes. Unknown objects are allowed wherever known ones are.
assert_type(UserMessage.of("hello"), UserMessage)
UserMessage.of([TextBlock("a"), UnknownBlock({"type": "new"})])
assert_type(AssistantMessage.of([ToolUseBlock("1", "Bash", {})], model="opus"), AssistantMessage)
UserMessage.of(b"hello")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

messages: list[Message] = [
    UserMessage.of("hello"),
    ControlRequest("1", InitializeRequest()),
    ControlRequest("2", SetModelRequest(model=None)),
    ControlRequest("3", SetModelRequest(model=UNSET)),
    response,
]
for message in messages:
    assert_type(encode(message), bytes)

servers: dict[str, McpServerConfig] = {"a": McpStdioServerConfig(command="a"), "b": {"command": "b"}}
McpSetServersRequest(servers=servers)

# Messages are immutable.
asked.tool_name = "Read"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
# The CLI may write this number as an integer or as a float.
assert_type(StreamEvent.ttft_ms, float | None)
