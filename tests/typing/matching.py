"""The types that `match` on messages narrows to. test_typing.py only type checks this file."""

from typing import Any

from msgspec import UnsetType
from typing_extensions import assert_never, assert_type

from claude_wire import (
    AssistantMessage,
    CanUseToolRequest,
    ControlRequest,
    ControlResponse,
    Decoder,
    HookCallbackRequest,
    InitMessage,
    InvalidLine,
    Message,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownMessage,
    UserMessage,
)
from claude_wire.messages import (
    AdvisorToolResultBlock,
    BashCodeExecutionToolResultBlock,
    BrowserStateBlock,
    CitationsDelta,
    CodeExecutionToolResultBlock,
    CompactionBlock,
    CompactionDelta,
    ContainerUploadBlock,
    ContentBlock,
    ContentBlockDeltaEvent,
    ContentBlockStartEvent,
    ContentBlockStopEvent,
    ControlError,
    ControlRequestPayload,
    ControlSuccess,
    Delta,
    DocumentBlock,
    ErrorEvent,
    Event,
    FallbackBlock,
    HookInput,
    ImageBlock,
    InputJsonDelta,
    McpToolListingBlock,
    McpToolResultBlock,
    McpToolUseBlock,
    MessageDeltaEvent,
    MessageStartEvent,
    MessageStopEvent,
    PingEvent,
    PreToolUseHookInput,
    RedactedThinkingBlock,
    ResultSuccess,
    SearchResultBlock,
    ServerToolUseBlock,
    SignatureDelta,
    TextDelta,
    TextEditorCodeExecutionToolResultBlock,
    ThinkingDelta,
    ToolAdditionBlock,
    ToolReferenceBlock,
    ToolRemovalBlock,
    ToolSearchToolResultBlock,
    UnknownBlock,
    UnknownDelta,
    UnknownEvent,
    UnknownHookInput,
    UnknownObject,
    UnknownRequest,
    WebFetchToolResultBlock,
    WebSearchToolResultBlock,
)


def message(message: Message | InvalidLine) -> None:
    match message:
        case InvalidLine(reason=reason):
            assert_type(message, InvalidLine)
            assert_type(reason, str)
        case StreamEvent(text_delta=str(text)):
            assert_type(message, StreamEvent)
            assert_type(text, str)
        case StreamEvent(event=event):
            assert_type(event, Event)
        case AssistantMessage(content=content, model=model):
            assert_type(message, AssistantMessage)
            assert_type(content, list[ContentBlock])
            assert_type(model, str | None)
            assert_type(message.tool_uses, list[ToolUseBlock])
            assert_type(message.error_reason, str | None)
        case UserMessage():
            assert_type(message.content, str | list[ContentBlock])
            assert_type(message.tool_results, list[ToolResultBlock])
        case ResultSuccess(structured_output=output):
            assert_type(message, ResultSuccess)
            assert_type(output, Any)
        case ResultMessage(ok=ok, total_cost_usd=cost):
            assert_type(ok, bool)
            assert_type(cost, float | None)
        case InitMessage(tools=tools):
            assert_type(tools, list[str | dict[str, Any]] | None)
            assert_type(message.tool_names, list[str])
        case ControlRequest(request=CanUseToolRequest() as request):
            assert_type(request.input, dict[str, Any])
        case ControlRequest(request=request):
            assert_type(message.request_id, str | float | UnsetType | None)
        case ControlResponse(response=ControlSuccess() | ControlError() as answer):
            assert_type(answer.request_id, str | float | UnsetType | None)
        case UnknownMessage(type=tag, reason=reason):
            assert_type(message, UnknownMessage)
            assert_type(tag, str | None)
            assert_type(reason, str)
        case _:
            # Other message classes reach this case. All of them have to_dict.
            assert_type(message.to_dict(), dict[str, Any])


def isinstance_narrows(found: Message | InvalidLine) -> Message | None:
    if isinstance(found, InvalidLine):
        return None
    return found


for item in Decoder().feed(b""):
    message(item)


# A match on a union of the protocol is exhaustive if it also has a case for the unknown class.


def block(block: ContentBlock) -> None:
    match block:
        case TextBlock(text):
            assert_type(text, str)
        case ThinkingBlock(thinking, signature):
            assert_type(thinking, str)
            assert_type(signature, str | None)
        case ToolUseBlock(id, name, input):
            assert_type(id, str)
            assert_type(name, str)
            assert_type(input, Any)
        case ToolResultBlock(content=content):
            assert_type(content, str | list[ContentBlock] | UnsetType | None)
        case UnknownBlock():
            assert_type(block, UnknownBlock)
            assert_type(block["key"], Any)
        case ImageBlock() | DocumentBlock() | SearchResultBlock() | ContainerUploadBlock():
            pass
        case RedactedThinkingBlock() | CompactionBlock() | FallbackBlock() | BrowserStateBlock():
            pass
        case ServerToolUseBlock() | WebSearchToolResultBlock() | WebFetchToolResultBlock():
            pass
        case CodeExecutionToolResultBlock() | BashCodeExecutionToolResultBlock():
            pass
        case TextEditorCodeExecutionToolResultBlock() | ToolSearchToolResultBlock() | AdvisorToolResultBlock():
            pass
        case McpToolUseBlock() | McpToolResultBlock() | McpToolListingBlock():
            pass
        case ToolAdditionBlock() | ToolRemovalBlock() | ToolReferenceBlock():
            pass
        case _:
            assert_never(block)


def event(event: Event) -> None:
    match event:
        case MessageStartEvent(message):
            assert_type(message.content, list[ContentBlock])
        case ContentBlockStartEvent(index, content_block):
            assert_type(index, int)
            assert_type(content_block, ContentBlock)
        case ContentBlockDeltaEvent(delta=added):
            assert_type(added, Delta)
            delta(added)
        case ContentBlockStopEvent() | MessageDeltaEvent() | MessageStopEvent() | PingEvent() | ErrorEvent():
            pass
        case UnknownEvent():
            assert_type(event, UnknownEvent)
        case _:
            assert_never(event)


def delta(delta: Delta) -> None:
    match delta:
        case TextDelta(text=text) | ThinkingDelta(thinking=text) | InputJsonDelta(partial_json=text):
            assert_type(text, str)
        case SignatureDelta() | CitationsDelta() | CompactionDelta():
            pass
        case UnknownDelta():
            assert_type(delta.to_dict(), dict[str, Any])
        case _:
            assert_never(delta)


def without_a_case_for_the_unknown(delta: Delta) -> None:
    match delta:
        case TextDelta() | ThinkingDelta() | InputJsonDelta() | SignatureDelta() | CitationsDelta() | CompactionDelta():
            pass
        case _:
            # The type checker reports that the match is not exhaustive.
            assert_never(delta)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def request(request: ControlRequestPayload) -> None:
    match request:
        case CanUseToolRequest(tool_name=name):
            assert_type(name, str)
        case HookCallbackRequest(input=given):
            assert_type(given, HookInput)
            match given:
                case PreToolUseHookInput(tool_name=name):
                    assert_type(name, str)
                case UnknownHookInput():
                    assert_type(given.type, str | None)
                case _:
                    pass
        case UnknownRequest():
            assert_type(request, UnknownRequest)
        case _:
            assert_type(request.to_dict(), dict[str, Any])


def answer(response: ControlResponse) -> None:
    answer = response.response
    match answer:
        case ControlSuccess() | ControlError() | UnknownObject():
            pass
        case _:
            assert_never(answer)
