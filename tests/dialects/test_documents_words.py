"""Lines from the five documents, and variants that the documents leave open, as a host and an agent read them.

The lines are copied from the documents by hand.
"""

from __future__ import annotations

import json
from typing import Any, get_args

import anyio
import pytest
from msgspec import UNSET

from claude_wire import (
    AssistantMessage,
    CanUseToolRequest,
    ControlResponse,
    HookCallbackRequest,
    MessageStream,
    ResultMessage,
    Session,
    UserMessage,
    decode,
    encode,
)
from claude_wire.dialects import AUTO, CLASSIC, JSON_RPC, MIRIAD, STREAM_JSON
from claude_wire.errors import DialectError, PayloadError
from claude_wire.messages import (
    ControlRequestPayload,
    ControlSuccess,
    PermissionRequestMessage,
    PermissionResultDeny,
    RewindFilesRequest,
    UnknownBlock,
)
from dialect_peer import LinePeer

pytestmark = pytest.mark.anyio

NULLS = [
    '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":null}]},'
    '"parent_tool_use_id":null}',
    '{"type":"assistant","message":{"role":"assistant","content":[],"stop_reason":null,"stop_sequence":null},'
    '"model":"m","session_id":"s","parent_tool_use_id":null,"uuid":"u","error":null}',
    '{"type":"auth_status","isAuthenticating":true,"output":"Opening","error":null,"uuid":"u","session_id":"s"}',
]


@pytest.mark.parametrize("line", NULLS)
@pytest.mark.parametrize("with_null", [True, False])
def test_a_null_that_a_document_writes_is_written_and_no_other(line: str, with_null: bool) -> None:
    for null in ("" if with_null else ',"error":null', "" if with_null else ',"content":null'):
        line = line.replace(null, "")
    assert json.loads(encode(decode(line.encode()))) == json.loads(line)


def test_the_reason_of_an_error_is_none_where_a_null_or_nothing_stands() -> None:
    for line in (NULLS[1], NULLS[1].replace(',"error":null', "")):
        message = decode(line.encode())
        assert isinstance(message, AssistantMessage)
        assert message.error_reason is None


def test_an_error_answer_without_a_text_is_an_error() -> None:
    line = b'{"type":"control_response","response":{"subtype":"error","request_id":"r"}}'
    message = decode(line)
    assert isinstance(message, ControlResponse)
    assert (message.ok, message.request_id, getattr(message.response, "error", None)) == (False, "r", "")
    assert json.loads(encode(message)) == json.loads(line)


def test_a_refusal_without_a_reason_is_a_refusal() -> None:
    answer = CanUseToolRequest.parse_answer({"behavior": "deny"})
    assert isinstance(answer, PermissionResultDeny)
    assert not answer.message
    assert answer.to_dict() == {"behavior": "deny"}


def test_every_request_of_a_host_takes_an_empty_acknowledgement() -> None:
    refused = []
    asked = [one for one in get_args(ControlRequestPayload) if one.sent_by == "host"]
    assert len(asked) > 40
    for request in asked:
        for payload in ({}, None):
            response = ControlResponse(ControlSuccess(request_id="r", response=payload))
            try:
                response.payload_as(request)
            except PayloadError as error:
                refused.append(f"{request.__name__}: {error}")
    assert refused == []


def test_an_acknowledgement_has_empty_lists_and_says_nothing_else() -> None:
    from claude_wire.messages import McpSetServersRequest, ReloadPluginsRequest

    assert RewindFilesRequest.parse_answer({}).canRewind is None
    servers = McpSetServersRequest.parse_answer({})
    assert (servers.added, servers.removed, servers.errors) == ([], [], {})
    plugins = ReloadPluginsRequest.parse_answer({})
    assert (plugins.commands, plugins.error_count) == ([], None)
    with pytest.raises(PayloadError):
        McpSetServersRequest.parse_answer({"added": []})


def test_a_result_without_a_subtype_is_a_result() -> None:
    line = b'{"type":"result","is_error":false,"result":"done","session_id":"s"}'
    message = decode(line)
    assert type(message) is ResultMessage
    assert (message.subtype, message.ok, message.result) == (UNSET, True, "done")
    assert "subtype" not in json.loads(encode(message))
    assert not ResultMessage().ok


def test_a_user_message_without_a_role_is_a_users_and_is_written_as_it_came() -> None:
    line = b'{"type":"user","message":{"content":"Hello"}}'
    message = decode(line)
    assert isinstance(message, UserMessage)
    assert message.text == "Hello"
    assert "role" not in json.loads(encode(message))["message"]


def test_a_tool_call_without_an_id_stays_unknown_and_its_message_is_typed() -> None:
    line = (
        b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","name":"Read","input":{}}]}}'
    )
    message = decode(line)
    assert isinstance(message, AssistantMessage)
    (block,) = message.content
    assert isinstance(block, UnknownBlock)
    assert block.reason == "missing 'id'"


# --- permission


def asks(**fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": "permission_request", **fields}


UNDERSTOOD = [
    asks(tool_name="Bash", input={"command": "ls"}),
    asks(name="Bash", args={"command": "ls"}),
    asks(tool={"name": "Bash", "input": {"command": "ls"}}),
    asks(tool="Bash", input={"command": "ls"}),
    asks(tool_use={"id": "t", "name": "Bash", "input": {"command": "ls"}}, session_id="s"),
    asks(request={"tool_name": "Bash", "input": {"command": "ls"}}),
]
#: Permission questions without a tool, with two tools, or without a recognizable input.
NOT_UNDERSTOOD = [
    asks(),
    asks(tool_name=""),
    asks(tool_name="  "),
    asks(tool_name="Bash", name="Read", input={}),
    asks(tool={"name": "Bash"}, tool_name="Read"),
    asks(tool_name=7),
    asks(tool_name="Bash", input="ls"),
    asks(tool_name="Bash", params={"command": "rm -rf /"}),
    asks(what={"name": "Bash"}),
    asks(tool={"name": ["Bash"], "input": {}}),
    asks(tool_name="Bash", input={"command": "ls"}, args={"command": "rm"}),
]


async def answers_of(frame: dict[str, Any], policy: Any, dialect: Any = CLASSIC) -> list[dict[str, Any]]:
    peer = LinePeer()
    async with peer.session(dialect=dialect, can_use_tool=policy):
        peer.say(frame)
        return await peer.got(1)


@pytest.mark.parametrize("frame", UNDERSTOOD, ids=json.dumps)
async def test_a_permission_request_is_understood_wherever_the_tool_stands(frame: dict[str, Any]) -> None:
    seen = []

    def policy(request: CanUseToolRequest) -> Any:
        seen.append((request.tool_name, request.input))
        return request.allow()

    assert await answers_of(frame, policy) == [{"allow": True}]
    assert seen == [("Bash", {"command": "ls"})]


@pytest.mark.parametrize("frame", NOT_UNDERSTOOD, ids=json.dumps)
async def test_a_permission_request_that_is_not_understood_is_denied_without_the_policy(
    frame: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    def policy(request: CanUseToolRequest) -> Any:
        raise AssertionError(f"the policy was asked about {request.tool_name!r}")

    assert await answers_of(frame, policy) == [{"allow": False}]
    assert "the name of its tool cannot be read" in caplog.text


async def test_a_control_request_without_a_name_is_denied_with_the_reason() -> None:
    def policy(request: CanUseToolRequest) -> Any:
        raise AssertionError

    body = {"subtype": "can_use_tool", "tool_name": "", "input": {}}
    (answer,) = await answers_of({"type": "control_request", "request_id": "r", "request": body}, policy, STREAM_JSON)
    payload = answer["response"]["response"]
    assert payload["behavior"] == "deny"
    assert payload["message"] == "The permission request names no tool that can be read."


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_bare_boolean_answers_in_the_dialect_whose_description_has_it(allowed: bool) -> None:
    assert await answers_of(UNDERSTOOD[0], lambda request: allowed) == [{"allow": allowed}]


async def test_a_bare_boolean_is_no_answer_elsewhere() -> None:
    body = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
    frame = {"type": "control_request", "request_id": "r", "request": body}
    (answer,) = await answers_of(frame, lambda request: True, STREAM_JSON)
    assert answer["response"]["subtype"] == "error"


def test_the_tool_of_a_permission_request_message() -> None:
    message = decode(json.dumps(UNDERSTOOD[2]).encode())
    assert isinstance(message, PermissionRequestMessage)
    assert message.call == ("Bash", {"command": "ls"})


# --- hooks


async def test_a_bare_function_is_a_hook_under_its_early_name_and_is_told_the_tool() -> None:
    seen: list[str | None] = []
    peer = LinePeer()

    async def watch(msg: HookCallbackRequest) -> None:
        seen.append(msg.name)

    session = peer.session(hooks={"pre-tool-use": watch})
    async with session, anyio.create_task_group() as group:
        group.start_soon(session.initialize)
        (asked,) = await peer.got(1)
        (matcher,) = asked["request"]["hooks"]["PreToolUse"]
        peer.say(
            {"type": "control_response", "response": {"subtype": "success", "request_id": asked["request_id"]}},
            {
                "type": "control_request",
                "request_id": "h",
                "request": {
                    "subtype": "hook_callback",
                    "callback_id": matcher["hookCallbackIds"][0],
                    "input": {
                        "hook_event_name": "PreToolUse",
                        "session_id": "s",
                        "transcript_path": "",
                        "cwd": "",
                        "tool_name": "Bash",
                        "tool_input": {},
                    },
                },
            },
        )
        await peer.got(2)
    assert seen == ["Bash"]


@pytest.mark.parametrize("dialect", [MIRIAD, JSON_RPC, AUTO], ids=repr)
def test_hooks_that_nobody_would_call_are_refused(dialect: Any) -> None:
    with pytest.raises(DialectError, match="hooks would never be called"):
        Session(MessageStream(LinePeer().output), print, dialect=dialect, hooks={"pre-tool-use": lambda msg: None})  # type: ignore[dict-item]
