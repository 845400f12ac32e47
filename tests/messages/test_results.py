"""A result says whether its turn was ok, cancelled or failed, in every dialect and with any field absent."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

import recordings
from claude_wire import MaxBudgetError, ResultMessage, TurnError, decode
from claude_wire.errors import (
    ApiError,
    AuthenticationError,
    ExecutionError,
    MaxTurnsError,
    StructuredOutputError,
    TurnCancelledError,
)
from claude_wire.messages import ErrorInfo, ResultError, ResultSuccess
from claude_wire.messages.union import RESULT_BY_SUBTYPE
from each import each

#: Subtype -> value of ``is_error`` -> the exception of the result, or None if the turn is ok.
SAYS: dict[str, dict[str, type[TurnError] | None]] = {
    "success": {"absent": None, "null": None, "false": None, "true": ApiError},
    "error": {"absent": ExecutionError, "null": ExecutionError, "false": None, "true": ExecutionError},
    "error_during_execution": {"absent": ExecutionError, "null": ExecutionError, "false": None, "true": ExecutionError},
    "error_max_turns": {"absent": MaxTurnsError, "null": MaxTurnsError, "false": None, "true": MaxTurnsError},
    "error_max_budget_usd": {"absent": MaxBudgetError, "null": MaxBudgetError, "false": None, "true": MaxBudgetError},
    "error_max_structured_output_retries": {
        "absent": StructuredOutputError,
        "null": StructuredOutputError,
        "false": None,
        "true": StructuredOutputError,
    },
    "cancelled": dict.fromkeys(("absent", "null", "false", "true"), TurnCancelledError),
    # Subtypes that no table contains.
    "interrupted": dict.fromkeys(("absent", "null", "false", "true"), TurnCancelledError),
    "error_of_tomorrow": {"absent": ExecutionError, "null": ExecutionError, "false": None, "true": ExecutionError},
    "of_tomorrow": {"absent": ExecutionError, "null": ExecutionError, "false": None, "true": ExecutionError},
}
SILENT_OR_NOT = ("absent", "null", "false", "true")
ABORTED = ("aborted_streaming", "aborted_tools")


def result(subtype: str, is_error: str = "absent", **fields: Any) -> ResultMessage:
    given = {} if is_error == "absent" else {"is_error": json.loads(is_error)}
    message = decode(json.dumps({"type": "result", "subtype": subtype, **given, **fields}))
    assert isinstance(message, ResultMessage)
    return message


def test_the_table_has_every_subtype() -> None:
    assert RESULT_BY_SUBTYPE.keys() == SAYS.keys() - {"interrupted", "error_of_tomorrow", "of_tomorrow"}


@pytest.mark.parametrize(("subtype", "is_error"), list(product(SAYS, SILENT_OR_NOT)))
def test_the_subtype_decides_where_is_error_is_silent(subtype: str, is_error: str) -> None:
    kind = SAYS[subtype][is_error]
    message = result(subtype, is_error)
    assert message.ok is (kind is None)
    assert message.cancelled is (kind is TurnCancelledError)
    error = message.to_error()
    assert (type(error) if error is not None else None) is kind
    if kind is None:
        message.raise_for_error()
    else:
        with pytest.raises(kind) as caught:
            message.raise_for_error()
        assert caught.value.result is message
        assert isinstance(caught.value, ApiError) is (kind is ApiError)


@pytest.mark.parametrize(("subtype", "is_error"), list(product(SAYS, SILENT_OR_NOT)))
@each("reason", ABORTED, str)
def test_an_interrupted_turn_is_cancelled_whatever_else_the_result_says(
    subtype: str, is_error: str, reason: str
) -> None:
    message = result(subtype, is_error, terminal_reason=reason, api_error_status=429, errors=["e"])
    assert message.cancelled
    assert not message.ok
    error = message.to_error("rate_limit")
    assert type(error) is TurnCancelledError
    assert str(error) == f'the turn was cancelled ({reason}); the CLI says "e"'


def test_any_other_reason_is_no_cancellation() -> None:
    for reason in ("completed", "api_error", "max_turns", "background_requested", "turn_setup_failed", None):
        assert not result("error_during_execution", "true", terminal_reason=reason).cancelled


def test_errors_beside_a_success_without_is_error_make_it_a_failure() -> None:
    for fields in ({"errors": ["e"]}, {"error": {"message": "m", "code": "c"}}):
        message = result("success", **fields)
        assert (message.ok, message.cancelled) == (False, False)
        assert type(message.to_error()) is ApiError
        assert result("success", "false", **fields).ok  # is_error decides, whatever the other fields say
    assert result("success", errors=[]).ok


@pytest.mark.parametrize("subtype", ["error", "success"])
@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("auth_error", AuthenticationError, "the API failed: auth_error"),
        ("budget_exceeded", MaxBudgetError, "the turn ended with error (budget_exceeded)"),
        ("of_tomorrow", ExecutionError, "the turn ended with error (of_tomorrow)"),
    ],
)
def test_the_code_of_an_error_decides_the_exception_and_is_told(
    subtype: str, code: str, kind: type[TurnError], text: str
) -> None:
    error = result(subtype, error={"message": "It broke", "code": code}, result="secret").to_error()
    if subtype == "success":
        if kind is ExecutionError:
            kind, text = ApiError, "the API failed: of_tomorrow"
        text = text.replace("with error", "with success")
    assert type(error) is kind
    assert str(error).split("; ")[:2] == [text, 'the agent says "It broke"']
    assert "claude" not in str(error)
    assert "secret" not in str(error)
    if isinstance(error, ApiError):
        assert error.error_type == code


def test_a_code_that_is_no_name_is_not_told() -> None:
    error = ResultError(error=ErrorInfo(message="m", code="my password is 1234")).to_error()
    assert str(error) == 'the turn ended with error; the agent says "m"'


def test_the_interrupts_of_the_cli_are_cancelled_and_its_other_failures_are_not() -> None:
    """An interrupted turn was ended by a request, by a signal or by a refusal. Check every recorded result."""
    found = {True: 0, False: 0}
    for name in recordings.names():
        for line in recordings.load(name).stdout.splitlines():
            if b'"type":"result"' in line:
                message = decode(line)
                if isinstance(message, ResultMessage) and not message.ok:
                    aborted = any(f'"terminal_reason":"{reason}"'.encode() in line for reason in ABORTED)
                    assert message.cancelled is aborted
                    assert isinstance(message.to_error(), TurnCancelledError) is aborted
                    found[aborted] += 1
    assert found[True] >= 5
    assert found[False] >= 10


def test_a_success_is_not_cancelled() -> None:
    assert not ResultSuccess(is_error=False, terminal_reason="completed").cancelled


def test_the_exception_of_a_failed_turn_says_where_the_text_of_the_agent_is() -> None:
    line = b'{"type":"result","subtype":"error","is_error":true,"result":"The disk is full","session_id":"s"}'
    result = decode(line)
    assert isinstance(result, ResultMessage)
    error = result.to_error()
    assert str(error) == "the turn ended with error; its text is in .result.result"
    assert error.result.result == "The disk is full"
