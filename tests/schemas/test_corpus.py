"""``Decoder`` and the schemas agree with every case of the corpus in ``protocol``."""

from __future__ import annotations

import base64
import json
from typing import Any, get_args

import pytest

from claude_wire import Decoder, encode, peek
from claude_wire.errors import PayloadError
from claude_wire.messages import ControlRequestPayload, InvalidLine
from each import each
from verdicts import FOLDER, decoded, load, parts_in, schema_verdict, validator, verdict_of

Case = dict[str, Any]
FILES = sorted(path.stem for path in (FOLDER / "corpus").glob("*.json"))
REQUESTS = {cls.__struct_config__.tag: cls for cls in get_args(ControlRequestPayload)}
#: The options of the decoder that a case may set.
OPTIONS = ("max_line_bytes",)


def content(case: Case) -> bytes:
    """Return the bytes of a case's stream."""
    return case["text"].encode() if "text" in case else base64.b64decode(case["base64"])


def cases(*files: str) -> list[Case]:
    return [case for file in files for case in load(f"corpus/{file}.json")["cases"]]


def found_in(data: bytes, message: Any) -> dict[str, Any]:
    """Return the decoder's result for a message in the corpus format, without the message's place."""
    verdict = verdict_of(message)
    if isinstance(message, InvalidLine):
        return {"verdict": verdict, "reason": message.kind, "line": message.line_number, "offset": message.offset}
    kind = peek(data)
    parts = [{"part": part.part, "at": part.at} for part in parts_in(message)]
    found = {"verdict": verdict, "kind": str(kind), "type": kind.type, "subtype": kind.subtype}
    return {**found, **({"parts": parts} if parts else {})}


def check(case: Case) -> None:
    """Check that the decoder and the schema give the expected results of a case."""
    data = content(case)
    options = {name: case[name] for name in OPTIONS if name in case}
    messages, decoder = decoded(case["schema"], data, **options)
    assert len(messages) == len(case["expect"])
    for message, expected in zip(messages, case["expect"], strict=True):
        line = data.split(b"\n")[expected["line"] - 1]
        # The byte order mark at the start of a stream is not part of its first line.
        line = line.removeprefix(b"\xef\xbb\xbf") if expected["line"] == 1 else line
        assert data.find(line, expected["offset"]) == expected["offset"]
        cls = {"class": type(message).__name__} if "class" in expected else {}
        place = {"line": expected["line"], "offset": expected["offset"]}
        assert {**place, **cls, **found_in(line, message)} == expected
        if expected["verdict"] != "invalid":
            assert schema_verdict(case["schema"], json.loads(line)) == expected["verdict"]
    if "lone_surrogates" in case:
        assert decoder.stats.repaired == case["lone_surrogates"]
        assert b"".join(map(encode, messages)).count(b"\\ud83d") == case["lone_surrogates"]


@each("file", [file for file in FILES if file != "answers"], str)
def test_the_decoder_and_the_schemas_say_what_the_corpus_says(file: str) -> None:
    for case in cases(file):
        try:
            check(case)
        except AssertionError as error:
            pytest.fail(f"{case['name']}: {error}")


def test_a_stream_comes_to_the_same_byte_by_byte() -> None:
    for case in cases("streams"):
        data = content(case)
        options = {name: case[name] for name in OPTIONS if name in case}
        decoder = Decoder(**options)
        pieces = [message for at in range(len(data)) for message in decoder.feed(data[at : at + 1])]
        assert [*pieces, *decoder.close()] == decoded("output", data, **options)[0], case["name"]


def test_answers_are_read_as_the_corpus_says() -> None:
    for case in cases("answers"):
        try:
            answer = REQUESTS[case["request"]].parse_answer(case["payload"])
            verdict = verdict_of(answer)
        except PayloadError:
            verdict = "misfit"
        assert verdict == case["verdict"], case
        fits = validator(case["schema"], definition=case["definition"]).is_valid(case["payload"])
        assert fits == (case["verdict"] == "valid"), case


def test_every_request_with_an_answer_of_its_own_has_a_case() -> None:
    answered = {entry["tags"]["subtype"] for entry in load("index.json")["definitions"] if entry.get("answer")}
    assert {case["request"] for case in cases("answers")} == answered


def test_every_tag_has_a_valid_case() -> None:
    lines = cases("output", "input", "records")
    tags: set[tuple[str, str]] = set()
    todo: list[Any] = [*(json.loads(case["text"]) for case in lines), *(case["payload"] for case in cases("answers"))]
    while todo:
        node = todo.pop()
        todo += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        if isinstance(node, dict):
            tags |= {(key, value) for key, value in node.items() if isinstance(value, str)}
    for entry in load("index.json")["definitions"]:
        if entry["group"] != "part":
            assert tags >= entry.get("tags", {}).items(), entry["name"]


def test_the_cases_of_a_file_have_names_of_their_own() -> None:
    for file in FILES:
        names = [case["name"] for case in cases(file)]
        schemas = [case["schema"] for case in cases(file)]
        pairs = [*zip(names, schemas, strict=True)]
        assert len(set(pairs)) == len(pairs), file


@pytest.mark.parametrize("reason", ["not_json", "not_utf8", "not_object", "null", "number", "too_deep", "tags"])
def test_every_reason_has_a_case(reason: str) -> None:
    assert any(one.get("reason") == reason for case in cases("streams") for one in case["expect"])
