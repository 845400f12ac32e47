"""The exceptions: their class tree, their attributes, and that their texts never quote the conversation."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

import claude_wire
from claude_wire import (
    CanUseToolRequest,
    ClaudeWireError,
    CLINotFoundError,
    ControlResponse,
    Decoder,
    EncodeError,
    HandleError,
    HookCallbackRequest,
    InvalidLine,
    InvalidLineError,
    LineSplitter,
    MaxBudgetError,
    Message,
    ProcessError,
    ProcessInputError,
    PromptError,
    RateLimitError,
    RequestError,
    RequestRefusedError,
    RequestTimeoutError,
    ResultMessage,
    SessionEndedError,
    TurnError,
    UnfinishedTurnError,
    decode,
    encode,
    errors,
)
from claude_wire.errors import (
    AnswerError,
    ApiError,
    AuthenticationError,
    BillingError,
    ByteBudgetError,
    DialectError,
    ExecutionError,
    LineTooLongError,
    MaxTurnsError,
    PayloadError,
    PromptAnsweredError,
    PromptCancelledError,
    SessionNotFoundError,
    StructuredOutputError,
    SubagentStoppedError,
    TurnCancelledError,
)
from claude_wire.messages import (
    ErrorInfo,
    InitializeRequest,
    KeepAlive,
    ResultError,
    ResultErrorDuringExecution,
    ResultErrorMaxBudgetUsd,
    ResultErrorMaxStructuredOutputRetries,
    ResultErrorMaxTurns,
    ResultSuccess,
    UnknownObject,
)
from each import each

#: Stands for a prompt or a token. It must not appear in the text of an error.
SECRET = "sk-ant-hunter2"

TREE = {
    ClaudeWireError: Exception,
    InvalidLineError: ValueError,
    LineTooLongError: ValueError,
    EncodeError: ValueError,
    DialectError: ValueError,
    PayloadError: ValueError,
    HandleError: RuntimeError,
    ByteBudgetError: Exception,
    CLINotFoundError: FileNotFoundError,
    ProcessInputError: BrokenPipeError,
    ProcessError: Exception,
    UnfinishedTurnError: ProcessError,
    RequestError: Exception,
    RequestRefusedError: RequestError,
    RequestTimeoutError: TimeoutError,
    SessionEndedError: RequestError,
    AnswerError: Exception,
    PromptError: Exception,
    PromptAnsweredError: PromptError,
    PromptCancelledError: PromptError,
    TurnError: Exception,
    ApiError: TurnError,
    AuthenticationError: ApiError,
    BillingError: ApiError,
    RateLimitError: ApiError,
    MaxTurnsError: TurnError,
    MaxBudgetError: TurnError,
    StructuredOutputError: TurnError,
    SubagentStoppedError: TurnError,
    TurnCancelledError: TurnError,
    ExecutionError: TurnError,
    SessionNotFoundError: ExecutionError,
}


# --- The tree ---------------------------------------------------------------------------------------------------------


def test_the_tree_is_the_one_drawn() -> None:
    assert set(errors.__all__) == {cls.__name__ for cls in TREE}
    for cls, builtin in TREE.items():
        assert issubclass(cls, ClaudeWireError)
        assert issubclass(cls, builtin)
        assert cls.__name__ in errors.__doc__
    # Only these classes have subclasses, so `except` with any other class catches exactly one kind.
    parents = {
        ClaudeWireError: [cls for cls in TREE if cls is not ClaudeWireError],
        ProcessError: [UnfinishedTurnError],
        RequestError: [RequestRefusedError, RequestTimeoutError, SessionEndedError],
        PromptError: [PromptAnsweredError, PromptCancelledError],
        TurnError: [cls for cls in TREE if issubclass(cls, TurnError) and cls is not TurnError],
        ApiError: [AuthenticationError, BillingError, RateLimitError],
        ExecutionError: [SessionNotFoundError],
    }
    for one in TREE:
        assert [other for other in TREE if issubclass(other, one) and other is not one] == parents.get(one, [])


def raised(call: Callable[[], Any]) -> BaseException:
    with pytest.raises((ClaudeWireError, TypeError, ValueError)) as caught:
        call()
    return caught.value


def test_an_invalid_line_error_has_the_line_and_what_came_before() -> None:
    decoder = Decoder(on_invalid="raise")
    error = raised(lambda: decoder.feed(b'{"type":"keep_alive"}\n[1]\n'))
    assert isinstance(error, InvalidLineError)
    assert error.line == InvalidLine(b"[1]", 2, 22, "not an object but an array", kind="not_object")
    assert error.messages == [KeepAlive()]
    assert str(error) == "line 2 at byte 22 is not one JSON object: not an object but an array"


def test_an_invalid_line_error_may_have_no_messages() -> None:
    one, other = InvalidLineError(InvalidLine(b"", 1, 0, "why")), InvalidLineError(InvalidLine(b"", 1, 0, "why"))
    one.messages.append(KeepAlive())
    assert other.messages == []


def test_a_line_too_long_error_has_the_lines_before_and_the_head() -> None:
    error = raised(lambda: LineSplitter(max_line_bytes=4).feed(b"{}\n" + b"x" * 2000 + b"\n"))
    assert isinstance(error, LineTooLongError)
    assert error.lines == [b"{}"]
    assert (error.head, error.length, error.line_number, error.offset) == (b"x" * 1024, 2000, 2, 3)
    assert str(error) == "line 2 at byte 3 is too long to keep: 2000 bytes"


def test_a_payload_error_has_the_payload() -> None:
    payload = {"behavior": "deny"}
    error = raised(lambda: ControlResponse.success("1", {"commands": "none"}).payload_as(InitializeRequest))
    assert isinstance(error, PayloadError)
    assert error.payload == {"commands": "none"}
    assert "$.commands" in str(error)
    error = raised(lambda: ControlResponse.success("1", {"commands": 1, **payload}).payload_as(InitializeRequest))
    assert isinstance(error, PayloadError)
    assert error.payload == {"commands": 1, **payload}


def test_the_payload_error_of_a_failed_request_has_the_answer() -> None:
    answer = ControlResponse.failure("1", SECRET, error_code="unsupported_request")
    error = raised(lambda: answer.payload_as(CanUseToolRequest))
    assert isinstance(error, PayloadError)
    assert error.payload == {
        "subtype": "error",
        "request_id": "1",
        "error": SECRET,
        "error_code": "unsupported_request",
    }
    assert SECRET not in str(error)


def test_an_encode_error_has_its_cause() -> None:
    error = raised(lambda: encode({"a": object()}))
    assert isinstance(error, EncodeError)
    assert isinstance(error.__cause__, TypeError)


# --- Pickling and copying ---------------------------------------------------------------------------------------------

INSTANCES = [
    ClaudeWireError("text"),
    InvalidLineError(InvalidLine(b"[1]", 2, 22, "an array", 7), [KeepAlive()]),
    InvalidLineError(InvalidLine(b"", 1, 0, "empty")),
    LineTooLongError([b"{}"], b"head", 2000, 2, 3),
    EncodeError("text"),
    DialectError("miriad", "text"),
    PayloadError("text", {"a": 1}),
    PayloadError("text"),
    AnswerError(settled=True),
    AnswerError(settled=False),
    HandleError("text"),
    ByteBudgetError(100),
    CLINotFoundError("text"),
    ProcessInputError("text"),
    ProcessError(1, b"tail", {"type": "result"}),
    ProcessError(-9),
    UnfinishedTurnError(None, b"tail", message="text"),
    RequestError("initialize", "text"),
    RequestRefusedError("set_model", "text", "code"),
    PromptAnsweredError("00000000-0000-4000-8000-000000000000", "answered before"),
    RequestTimeoutError("set_model", 1.5),
    SessionEndedError("set_model", "text"),
    TurnError(ResultSuccess(is_error=True)),
    RateLimitError(ResultSuccess(is_error=True, api_error_status=429, api_error_type="rate_limit_error")),
    MaxTurnsError(ResultErrorMaxTurns(terminal_reason="max_turns")),
]

LOG_IN = "log in (run `claude`, then /login), or give the CLI a key that may do this, in ANTHROPIC_API_KEY"

#: A failed result, the `error` of the assistant message before it, the exception that is raised, and its text.
FAILED: list[tuple[ResultMessage, str | None, type[TurnError], str]] = [
    (
        ResultSuccess(is_error=True, result=" a\n\u2028 reason "),
        None,
        ApiError,
        'the API failed; the CLI says "a reason"',
    ),
    (
        ResultSuccess(is_error=True, result="Not logged in · Please run /login", terminal_reason="api_error"),
        "authentication_failed",
        AuthenticationError,
        f'the API failed; the CLI says "Not logged in · Please run /login"; {LOG_IN}',
    ),
    (
        ResultSuccess(is_error=True, api_error_status=401, api_error_type="authentication_error", result="Failed"),
        None,
        AuthenticationError,
        f'the API failed: 401 authentication_error; the CLI says "Failed"; {LOG_IN}',
    ),
    (ResultSuccess(is_error=True, api_error_status=403), None, AuthenticationError, f"the API failed: 403; {LOG_IN}"),
    (
        ResultError(is_error=True, error=ErrorInfo(message="No key", code="auth_error")),
        None,
        AuthenticationError,
        'the API failed: auth_error; the agent says "No key"; give the agent credentials that may do this',
    ),
    (
        ResultSuccess(is_error=True, result="Credit balance is too low", api_error_status=400),
        "billing_error",
        BillingError,
        'the API failed: 400; the CLI says "Credit balance is too low"; add credit to the account, or use another one',
    ),
    (
        ResultSuccess(is_error=True, api_error_status=429),
        "rate_limit",
        RateLimitError,
        "the API failed: 429; try again later",
    ),
    (
        ResultSuccess(is_error=True, api_error_status=529),
        "overloaded",
        RateLimitError,
        "the API failed: 529; try again later",
    ),
    (
        ResultSuccess(is_error=True, api_error_status=500, api_error_type="api_error"),
        "server_error",
        ApiError,
        "the API failed: 500 api_error; try again later",
    ),
    (
        ResultSuccess(
            is_error=True,
            terminal_reason="api_error",
            result="API Error: Can't reach the API server — check your internet or DNS (EAI_AGAIN)",
        ),
        "server_error",
        ApiError,
        "the API failed; the CLI says \"API Error: Can't reach the API server — check your internet or DNS "
        '(EAI_AGAIN)"; '
        "there was no answer from the API: check the login, the network, proxies and ANTHROPIC_BASE_URL",
    ),
    (
        ResultSuccess(
            is_error=True,
            terminal_reason="prompt_too_long",
            api_error_status=400,
            api_error_type="invalid_request_error",
            result="Prompt is too long · the request is ~250000 tokens (limit 200000) but this conversation is only ~9",
        ),
        "invalid_request",
        ApiError,
        'the API failed: 400 invalid_request_error; the CLI says "Prompt is too long · the request is ~250000 tokens '
        '(limit 200000) but this conv…"; the context is full: send the prompt /compact, or begin a new session',
    ),
    (
        ResultSuccess(is_error=True, api_error_status=404, result="There's an issue with the selected model (x)."),
        "model_not_found",
        ApiError,
        'the API failed: 404; the CLI says "There\'s an issue with the selected model (x)."; choose a model that this '
        "account has: ClaudeOptions(model=...) or session.set_model()",
    ),
    (
        ResultSuccess(is_error=True, api_error_status=413, result="Request too large (max 32MB)."),
        "invalid_request",
        ApiError,
        'the API failed: 413; the CLI says "Request too large (max 32MB)."; send fewer or smaller images and '
        "attachments, or begin a new session",
    ),
    (
        ResultErrorMaxTurns(
            is_error=True, errors=["Reached maximum number of turns (2)"], terminal_reason="max_turns", result=SECRET
        ),
        None,
        MaxTurnsError,
        'the turn ended with error_max_turns (max_turns); the CLI says "Reached maximum number of turns (2)"; allow '
        "more with ClaudeOptions(max_turns=...), or go on with another prompt",
    ),
    (
        ResultErrorMaxBudgetUsd(is_error=True),
        None,
        MaxBudgetError,
        "the turn ended with error_max_budget_usd; allow more with ClaudeOptions(max_budget_usd=...)",
    ),
    (
        ResultErrorMaxStructuredOutputRetries(is_error=True),
        None,
        StructuredOutputError,
        "the turn ended with error_max_structured_output_retries; .result.errors has the last reason; ask for less, or "
        "loosen the schema",
    ),
    (
        ResultErrorDuringExecution(
            is_error=True, terminal_reason="aborted_tools", errors=["[ede_diagnostic] result_type=user"], result=SECRET
        ),
        None,
        TurnCancelledError,
        "the turn was cancelled (aborted_tools)",
    ),
    (
        ResultErrorDuringExecution(is_error=True, errors=["No conversation found with session ID: 260bf5db"]),
        None,
        SessionNotFoundError,
        'the session to resume does not exist; the CLI says "No conversation found with session ID: 260bf5db"; '
        "begin a new session, or give the cwd and the CLAUDE_CONFIG_DIR or HOME that it had; "
        "claude_wire.transcripts.find_sessions() lists those that there are",
    ),
    (
        ResultError(error=ErrorInfo(message="It broke", code="odd"), result=SECRET),
        None,
        ExecutionError,
        'the turn ended with error (odd); the agent says "It broke"',
    ),
    (ResultError(result=SECRET), None, ExecutionError, "the turn ended with error; its text is in .result.result"),
]


@pytest.mark.parametrize("index", range(len(FAILED)))
def test_a_failed_result_has_an_exception_that_says_how(index: int) -> None:
    result, reason, kind, text = FAILED[index]
    error = result.to_error(reason)
    assert type(error) is kind
    assert error.result is result
    assert str(error) == text
    with pytest.raises(TurnError):
        result.raise_for_error()


@pytest.mark.parametrize("content", [SECRET, "two words", "a\nline", "x" * 65, "é"])
def test_what_is_no_name_of_a_reason_is_not_in_the_text(content: str) -> None:
    for error, text in (
        (TurnError(ResultMessage(subtype=content)), "the turn ended with an error"),
        (TurnError(ResultError(terminal_reason=content)), "the turn ended with error"),
        (TurnError(ResultError(startup_failure_reason=content)), "the turn ended with error"),
        (ApiError(ResultSuccess(api_error_type=content)), "the API failed"),
        (ApiError(ResultSuccess(api_error_status=500, api_error_type=content)), "the API failed: 500; try again later"),
        (RequestRefusedError("set_model", "", content), "set_model: the request was refused"),
    ):
        assert str(error) == text


def test_a_result_that_is_no_error_has_none() -> None:
    result = ResultSuccess(is_error=False)
    assert result.to_error("rate_limit") is None
    result.raise_for_error()


def test_an_api_error_has_the_status_and_the_type() -> None:
    result = ResultSuccess(is_error=True, api_error_status=429, api_error_type="rate_limit_error")
    error = raised(result.raise_for_error)
    assert isinstance(error, RateLimitError)
    assert (error.status, error.error_type) == (429, "rate_limit_error")
    assert error.resets_at is None
    limited = result.to_error(resets_at=0)
    assert isinstance(limited, RateLimitError)
    assert limited.resets_at == datetime(1970, 1, 1, tzinfo=timezone.utc)
    error = ApiError(ResultSuccess(is_error=True, api_error_status=None))
    assert (error.status, error.error_type) == (None, None)


def test_a_refused_request_has_the_answer() -> None:
    error = RequestRefusedError("set_model", "There is no model x", "invalid_model")
    assert (error.subtype, error.error, error.error_code) == ("set_model", "There is no model x", "invalid_model")
    assert str(error) == 'set_model: the request was refused (invalid_model): "There is no model x"'
    assert str(RequestTimeoutError("interrupt", 60)) == "interrupt: no answer within 60 seconds"


def test_the_answer_of_a_model_is_in_no_text() -> None:
    """An error quotes ``result`` only if the CLI wrote it: in a ``success`` result with ``is_error``."""
    for result in (
        ResultSuccess(result=SECRET),
        ResultSuccess(is_error=False, result=SECRET),
        ResultErrorDuringExecution(is_error=True, result=SECRET),
        ResultErrorMaxTurns(is_error=True, result=SECRET),
        ResultError(is_error=True, result=SECRET),
        ResultMessage(subtype="error_of_a_new_kind", is_error=True, result=SECRET, structured_output=SECRET),
    ):
        for kind in (TurnError, ApiError, AuthenticationError, ExecutionError):
            assert SECRET not in texts_of(kind(result))


def test_the_words_of_another_program_are_one_printable_line_of_at_most_80_characters() -> None:
    words = "\x1b[31mred\x1b[0m\n\x07 \u202e \ud83d " + "word " * 100_000
    shown = r"red \x07 \u202e \ud83d word word word word word word word word word word word w…"
    stderr = b"Error: " + words.encode(errors="replace")[:60_000]
    for error in (
        ApiError(ResultSuccess(is_error=True, result=words)),
        ResultErrorDuringExecution(is_error=True, errors=[words]).to_error(),
        RequestRefusedError("set_model", words),
        ProcessError(1, stderr),
        ProcessError(1, stderr[:200]),
    ):
        said = str(error).split('"')[1]
        assert said.isprintable()
        assert len(said) <= 80
        assert said == (shown if not isinstance(error, ProcessError) else said)
        assert said.endswith("…")


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        (b"", ""),
        (b" \n\n", ""),
        (b"error: unknown option '--no-such-flag'\n", "error: unknown option '--no-such-flag'"),
        (b"Error: Invalid session ID. Must be a valid UUID.\n", "Error: Invalid session ID. Must be a valid UUID."),
        (
            b"Error: Invalid MCP configuration:\nMCP config file not found: /nosuch.json\n",
            "Error: Invalid MCP configuration: MCP config file not found: /nosuch.json",
        ),
        (b"[eval]:1\nthrow new Error('x')\n^\n\nError: x\n    at [eval]:1:7\n\nNode.js v18\n", "Error: x"),
        (b"Traceback (most recent call last):\n  File x\nValueError: no\n", "ValueError: no"),
        (b"a warning\nenv: 'node': No such file or directory\n", "env: 'node': No such file or directory"),
        (b"Error: the first\n\nError: the last\r\nand a note\n", "Error: the last and a note"),
        (b"\xff" * 100_000 + b"\nError: \xff\n", "Error: \ufffd"),
    ],
)
def test_the_reason_of_a_process_is_what_it_wrote_last_about_an_error(stderr: bytes, reason: str) -> None:
    said = f'; on its standard error: "{reason}"' if reason else ""
    assert str(ProcessError(1, stderr)) == f"the process exited with code 1{said}"
    assert str(ProcessError(None, stderr)) == "the process still runs"
    assert str(ProcessError(0, stderr)) == "the process exited with code 0"


@pytest.mark.parametrize("error", INSTANCES, ids=lambda error: type(error).__name__)
@each("protocol", [None, *range(pickle.HIGHEST_PROTOCOL + 1)], str)
def test_an_error_goes_through_pickle_and_copy_whole(error: ClaudeWireError, protocol: int | None) -> None:
    through: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy]
    if protocol is not None:
        through = [lambda error: pickle.loads(pickle.dumps(error, protocol))]
    for again in (call(error) for call in through):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


# --- No bytes of a line in the text -----------------------------------------------------------------------------------

SECRET_LINES = [
    SECRET.encode(),
    b"Warning: " + SECRET.encode(),
    b'"' + SECRET.encode() + b'"',
    b'["' + SECRET.encode() + b'"]',
    b'{"' + SECRET.encode() + b'"',
    b'{"' + SECRET.encode() + b'":NaN}',
    b'{"' + SECRET.encode() + b'":1e999}',
    b'{"' + SECRET.encode() + b'":"\\x"}',
    b'{"' + SECRET.encode() + b'":"\xff"}',
    b'{"type":"' + SECRET.encode() + b'","type":"other"}',
    b'{"type":"system","subtype":"' + SECRET.encode() + b'","subtype":"other"}',
    b'{"a":' + b"[" * 100_000 + SECRET.encode(),
    b'{"type":"user"} {"a":"' + SECRET.encode() + b'"}',
    SECRET.encode() * 100,
    b'{"type":"user","x":"' + SECRET.encode() * 100 + b'"',
]


def texts_of(error: BaseException) -> str:
    """Everything that a log may show of an error: its str, its repr, and the traceback with its causes."""
    shown = [str(error), repr(error), *traceback.format_exception(type(error), error, error.__traceback__)]
    return "\n".join([*shown, *(repr(value) for value in vars(error).values() if isinstance(value, InvalidLine))])


@pytest.mark.parametrize("line", SECRET_LINES, ids=range(len(SECRET_LINES)))
class TestNoBytesOfALine:
    def test_in_what_a_decoder_raises_or_returns(self, line: bytes) -> None:
        for kind in (Message, dict):
            for end in (b"\n", b""):
                decoder = Decoder(kind)
                found = decoder.feed(line + end) + decoder.close()
                for bad in found:
                    assert SECRET not in repr(bad) or isinstance(bad, dict)
            raising = Decoder(kind, on_invalid="raise")
            if isinstance(found[0], InvalidLine):
                error = raised(lambda raising=raising: raising.feed(line + b"\n"))
                assert isinstance(error, InvalidLineError)
                assert error.line.raw == line
                assert SECRET not in texts_of(error)
            else:
                assert b'"other"' in line  # a line with a duplicate "type" may be valid as a dict
                assert kind is dict

    def test_in_what_decode_raises(self, line: bytes) -> None:
        with pytest.raises(InvalidLineError) as caught:
            decode(line)
        assert SECRET not in texts_of(caught.value)

    def test_of_a_line_too_long(self, line: bytes) -> None:
        (bad,) = Decoder(max_line_bytes=5).feed(line + b"\n")
        assert isinstance(bad, InvalidLine)
        assert SECRET not in repr(bad) + bad.reason
        with pytest.raises(LineTooLongError) as caught:
            LineSplitter(max_line_bytes=5).feed(line + b"\n")
        assert SECRET not in texts_of(caught.value)

    def test_in_the_log(self, line: bytes, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            Decoder().feed(line + b"\n")
            Decoder(dict, surrogates="replace").feed(line + b"\n")
        assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "value",
    [
        {SECRET: object()},
        {"a": SECRET, "b": object()},
        {"a": SECRET + "\ud83d", "b": object()},
        {(SECRET,): 1, "b": "\ud83d"},
        {"a": InvalidLine(SECRET.encode(), 1, 0, "not JSON")},
        InvalidLine(SECRET.encode(), 1, 0, "not JSON"),
        [SECRET],
        SECRET,
    ],
    ids=range(8),
)
def test_no_content_is_in_what_encode_raises(value: Any) -> None:
    assert SECRET not in texts_of(raised(lambda: encode(value)))
    assert SECRET not in texts_of(raised(lambda: claude_wire.Encoder().encode_lines([value])))


@pytest.mark.parametrize(
    ("request_class", "payload"),
    [
        (InitializeRequest, {"commands": SECRET}),
        (InitializeRequest, {"commands": [{SECRET: SECRET}]}),
        (InitializeRequest, {"models": {SECRET: SECRET}}),
        (HookCallbackRequest, {"decision": {SECRET: SECRET}}),
        (HookCallbackRequest, {"async": SECRET}),
    ],
)
def test_no_content_is_in_what_payload_as_raises(request_class: Any, payload: dict[str, Any]) -> None:
    error = raised(lambda: ControlResponse.success("1", payload).payload_as(request_class))
    assert isinstance(error, PayloadError)
    assert error.payload == payload
    assert SECRET not in texts_of(error)


def test_no_content_is_in_the_reason_of_an_answer_that_does_not_fit() -> None:
    answer = ControlResponse.success("1", {"behavior": "deny", "message": [SECRET]}).payload_as(CanUseToolRequest)
    assert isinstance(answer, UnknownObject)
    assert answer.reason == "expected a string, got an array at $.message"
    assert SECRET not in repr(answer)


# --- InvalidLine ------------------------------------------------------------------------------------------------------

LINE = InvalidLine(b"raw", 3, 40, "not JSON", 5000)


def test_an_invalid_line_says_what_is_known() -> None:
    assert (LINE.raw, LINE.line_number, LINE.offset, LINE.reason, LINE.length) == (b"raw", 3, 40, "not JSON", 5000)
    assert InvalidLine(b"raw", 3, 40, "not JSON").length == 3


@pytest.mark.parametrize("name", ["raw", "line_number", "offset", "reason", "length", "kind", "new"])
def test_an_invalid_line_is_immutable(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(LINE, name, 1)
    with pytest.raises(AttributeError):
        delattr(LINE, name)
    assert InvalidLine(b"raw", 3, 40, "not JSON", 5000) == LINE


def test_invalid_lines_compare_and_hash_by_all_they_say() -> None:
    same = InvalidLine(b"raw", 3, 40, "not JSON", 5000)
    assert same == LINE
    assert hash(same) == hash(LINE)
    for other in (
        InvalidLine(b"Raw", 3, 40, "not JSON", 5000),
        InvalidLine(b"raw", 4, 40, "not JSON", 5000),
        InvalidLine(b"raw", 3, 41, "not JSON", 5000),
        InvalidLine(b"raw", 3, 40, "an array", 5000),
        InvalidLine(b"raw", 3, 40, "not JSON", 5001),
        InvalidLine(b"raw", 3, 40, "not JSON", 5000, "null"),
        None,
        b"raw",
        LINE._key(),
    ):
        assert other != LINE
    assert len({LINE, same, InvalidLine(b"", 1, 0, "")}) == 2


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_invalid_line_goes_through_pickle_and_copy(protocol: int) -> None:
    for again in (pickle.loads(pickle.dumps(LINE, protocol)), copy.copy(LINE), copy.deepcopy(LINE)):
        assert again == LINE
        assert type(again) is InvalidLine


def test_the_repr_of_an_invalid_line_is_short_and_has_no_bytes() -> None:
    assert repr(LINE) == "InvalidLine(line_number=3, offset=40, length=5000, reason='not JSON')"
    huge = InvalidLine(SECRET.encode() * 10**6, 10**40, 10**40, "reason " * 1000)
    assert SECRET not in repr(huge)
    assert len(repr(huge)) <= len("InvalidLine()") + 80


def test_an_invalid_line_is_matched_by_keyword() -> None:
    match LINE:
        case InvalidLine(reason=reason, raw=b"raw"):
            assert reason == "not JSON"
        case _:
            pytest.fail("not matched")


# --- ProcessError -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returncode", "signal", "text"),
    [
        (1, None, "the process exited with code 1"),
        (2, None, "the process exited with code 2 (invalid arguments)"),
        (130, 2, "the process was ended by SIGINT (exit code 130)"),
        (143, 15, "the process was ended by SIGTERM (exit code 143)"),
        (-9, 9, "the process was ended by SIGKILL (exit code -9)"),
        (-15, 15, "the process was ended by SIGTERM (exit code -15)"),
        (137, None, "the process exited with code 137"),
        (None, None, "the process still runs"),
    ],
)
def test_a_process_error_says_how_the_process_ended(returncode: int | None, signal: int | None, text: str) -> None:
    stderr = f"{SECRET}\n\x1b[31mError:\x1b[0m bad flag\n  at {SECRET}\n".encode()
    error = ProcessError(returncode, stderr, {"result": SECRET})
    said = '; on its standard error: "Error: bad flag"' if returncode else ""
    assert (error.returncode, error.signal, str(error)) == (returncode, signal, text + said)
    assert (error.stderr_tail, error.last_result) == (stderr, {"result": SECRET})
    assert SECRET not in repr(error)
