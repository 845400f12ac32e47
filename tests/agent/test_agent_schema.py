"""An agent checks structured output against the host's JSON schema, and reports a schema that it cannot use."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from agent_host import Host, hosted, initialize, prompt
from async_backends import ASYNCIO
from claude_wire.agent import Agent, Turn


class Words(msgspec.Struct):
    words: tuple[str, ...]


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
LINKED = {"$defs": {"node": NODE}, "$ref": "#/$defs/node"}


def deep(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


async def answered(value: Any, schema: dict[str, Any]) -> tuple[dict[str, Any], Host]:
    """Return the result of a turn whose function returns `value`, and the host. A second turn returns plain text."""

    async def answer(turn: Turn) -> Any:
        return value if turn.text == "structured" else "a text"

    async with hosted(Agent(answer)) as host:
        await host.tell(initialize(jsonSchema=schema), prompt("structured"))
        await host.until("result")
        await host.tell(prompt("text"))
    structured, text = host.of("result")
    assert text["result"] == "a text"
    return structured, host


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ({"next": {"next": {}}}, LINKED),
        ({"id": "a-1"}, {"properties": {"id": {"pattern": "^[a-z]-[0-9]$"}}}),
        (Words(("a", "b")), {"properties": {"words": {"type": "array", "maxItems": 2}}}),
        ({1: 1.0}, {"patternProperties": {"^1$": {"type": "integer"}}, "additionalProperties": False}),
        ({"half": "\ud800"}, {"properties": {"half": {"type": "string"}}}),
        ({"a": 1}, {"$schema": "http://json-schema.org/draft-07/schema#", "propertyNames": {"maxLength": 1}}),
    ],
    ids=["ref", "pattern", "tuple", "keys", "surrogate", "draft-07"],
)
def test_what_fits_is_the_structured_output(value: Any, schema: dict[str, Any]) -> None:
    result, host = ASYNCIO.run(answered, value, schema)
    assert result["subtype"] == "success"
    assert "structured_output" in result
    assert host.code == 0


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        ({"next": {"last": 1}}, LINKED, "$.next: Additional properties are not allowed ('last' was unexpected)"),
        ({"id": "1"}, {"properties": {"id": {"pattern": "^[a-z]$"}}}, "$.id: '1' does not match '^[a-z]$'"),
        ({"m": 1}, {"required": ["n"]}, "$: 'n' is a required property"),
        ({"m": True}, {"properties": {"m": {"type": "integer"}}}, "$.m: True is not of type 'integer'"),
        ({"m": [1, 1]}, {"properties": {"m": {"uniqueItems": True}}}, "$.m: [1, 1] has non-unique elements"),
    ],
    ids=["ref", "pattern", "required", "bool", "unique"],
)
def test_what_does_not_fit_is_an_error_of_its_own(value: Any, schema: dict[str, Any], problem: str) -> None:
    result, _ = ASYNCIO.run(answered, value, schema)
    assert result["subtype"] == "error_max_structured_output_retries"
    assert result["errors"] == [f"the structured output does not fit the schema: {problem}"]


def test_what_is_said_of_a_large_value_is_short() -> None:
    schema = {"properties": {"text": {"type": "integer"}}}
    result, _ = ASYNCIO.run(answered, {"text": "x" * 1_000_000}, schema)
    assert len(result["errors"][0]) < 500


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def fails(schema: dict[str, Any], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that the turn ends with this error, and that stderr tells the author where."""
    result, _ = ASYNCIO.run(answered, {"n": 1}, schema)
    assert result["subtype"] == "error_during_execution"
    assert result["is_error"] is True
    assert "structured_output" not in result
    assert result["errors"][0].startswith(error)
    told = capsys.readouterr().err
    assert error in told
    assert "async def answer(turn: Turn)" in told
    assert "site-packages" not in told


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "wobble"}, "$.type: 'wobble' is not valid"),
        ({"properties": {"m": {"pattern": "("}}}, "$.properties.m.pattern: '(' is not a 'regex'"),
        ({"$ref": "#/$defs/nowhere"}, "PointerToNowhere"),
        ({"$ref": "#"}, "it refers to itself without end, or is nested too deeply"),
        (deep(400), "it refers to itself without end, or is nested too deeply"),
        ({"$schema": ["draft"]}, ""),  # the error depends on the version of jsonschema
    ],
    ids=["no-schema", "no-pattern", "nowhere", "itself", "deep", "no-draft"],
)
def test_a_schema_that_cannot_be_used_lets_nothing_pass(
    schema: dict[str, Any], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fails(schema, f"ValueError: the host's JSON schema cannot be used: {problem}", capsys)


def test_no_address_that_a_schema_names_is_fetched(listener: socket.socket, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
    fails({"$ref": address}, f"ValueError: the host's JSON schema cannot be used: Unresolvable: {address}", capsys)
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("missing", ["jsonschema", "referencing"])
def test_without_the_library_it_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    advice = "install the extra 'agent' of claude-wire, or: pip install \"jsonschema>=4.18\""
    fails({}, f"ImportError: a host's JSON schema needs jsonschema: {advice}", capsys)


def test_an_agent_without_a_schema_needs_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)

    async def answer(turn: Turn) -> dict[str, int]:
        return {"n": 1}

    async def main() -> Host:
        async with hosted(Agent(answer)) as host:
            await host.tell(prompt("go"))
        return host

    assert ASYNCIO.run(main).of("result")[0]["structured_output"] == {"n": 1}
