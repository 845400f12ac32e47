"""The schemas of ``protocol`` accept all recorded lines, and reject wrong ones."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

import recordings
import sessions
from each import each
from verdicts import decoded, load, schema_verdict, validator, verdict_of

# A spoilt line is a recorded line with one change: a key removed, added or given another type, another tag, or one more
# list item. It is still a JSON object, so both the decoder and the schemas have to judge it.


#: The keys whose values decide the class of an object.
TAGS = ("type", "subtype", "hook_event_name", "behavior", "hookEventName", "kind")
VALUES: list[Any] = [None, True, False, 0, 1, 1.0, 1.5, -1, "", "text", [], {}, [1], ["text"], {"type": "text"}, [{}]]
#: A container, and the key or index of a value in it.
Place = tuple[Any, Any]


class Spoilt(NamedTuple):
    """A changed line."""

    schema: str
    #: The kind of the line before the change.
    kind: str
    change: str
    value: dict[str, Any]


def _places(value: Any) -> Iterator[Place]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield value, step
        yield from _places(item)


def _tags(value: Any) -> list[Place]:
    return [(holder, step) for holder, step in _places(value) if step in TAGS and isinstance(holder[step], str)]


def _at(choose: Callable[[Any], list[Place]], change: Callable[[Any, Any, random.Random], None]) -> Any:
    def apply(value: Any, rng: random.Random) -> None:
        if places := choose(value):
            change(*rng.choice(places), rng)

    return apply


def _all(value: Any) -> list[Place]:
    return list(_places(value))


def _set(new: Callable[[Any, random.Random], Any]) -> Callable[[Any, Any, random.Random], None]:
    def change(holder: Any, step: Any, rng: random.Random) -> None:
        holder[step] = new(holder[step], rng)

    return change


def _remove(holder: Any, step: Any, rng: random.Random) -> None:
    del holder[step]


def _rename(holder: Any, step: Any, rng: random.Random) -> None:
    if isinstance(holder, dict):
        holder[f"{step}_of_tomorrow"] = holder.pop(step)


def _repeat(holder: Any, step: Any, rng: random.Random) -> None:
    if isinstance(holder, list):
        holder.append(rng.choice([copy.deepcopy(holder[step]), *VALUES]))


def _known_tags() -> list[str]:
    index = load("index.json")
    return sorted({tag for entry in index["definitions"] for tag in entry.get("tags", {}).values()})


CHANGES: dict[str, Callable[[Any, random.Random], None]] = {
    "a value of another type": _at(_all, _set(lambda old, rng: rng.choice(VALUES))),
    "a key gone": _at(_all, _remove),
    "a key renamed": _at(_all, _rename),
    "a value in a list": _at(_all, _set(lambda old, rng: [old])),
    "an item added": _at(lambda value: [p for p in _places(value) if isinstance(p[0], list)], _repeat),
    "an unknown tag": _at(_tags, _set(lambda old, rng: "of_tomorrow")),
    "another known tag": _at(_tags, _set(lambda old, rng: rng.choice(_known_tags()))),
    "a tag of another type": _at(_tags, _set(lambda old, rng: rng.choice(VALUES))),
    "a tag gone": _at(_tags, _remove),
}


def spoilt_lines(count: int, seed: int) -> Iterator[Spoilt]:
    """Yield changed lines from the corpus: recorded lines, and lines with every key.

    Each kind of change is used equally often.
    """
    files = ("recorded", "output", "input", "records")
    cases = [case for file in files for case in load(f"corpus/{file}.json")["cases"]]
    rng = random.Random(seed)
    names = [*CHANGES]
    for number in range(count):
        case = rng.choice(cases)
        value = json.loads(case["text"])
        CHANGES[names[number % len(names)]](value, rng)
        yield Spoilt(case["schema"], case["expect"][0]["kind"], names[number % len(names)], value)


SCHEMAS = ("output", "input", "records")
#: Recordings with wrong lines of the host, which were sent to see how the CLI reacts.
WRONG = {"08_control", "14_bad_num_content"}


@each("name", SCHEMAS, str)
def test_a_schema_is_one_of_the_draft_that_it_names(name: str) -> None:
    schema = load(f"{name}.schema.json")
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema)


@each("name", SCHEMAS, str)
def test_every_reference_leads_to_a_definition_and_every_definition_is_meant(name: str) -> None:
    schema = load(f"{name}.schema.json")
    named: set[str] = set()
    todo: list[Any] = [schema]
    while todo:
        node = todo.pop()
        todo += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            named.add(node["$ref"].removeprefix("#/$defs/"))
    assert named <= schema["$defs"].keys()
    answers = {answer for entry in load("index.json")["definitions"] for answer in entry.get("answer", ())}
    assert schema["$defs"].keys() - named <= answers


# --- recorded lines ---------------------------------------------------------------------------------------------------


def recorded() -> Iterator[tuple[str, str, bytes]]:
    """Yield the schema, the name and the bytes of each recorded stream and transcript."""
    for name in recordings.names():
        recording = recordings.load(name)
        yield "output", name, recording.stdout
        yield "input", name, recording.stdin
    for name in sessions.scenarios():
        yield from (("records", name, data) for data in sessions.transcripts(name).values())
        yield from (("output", name, data) for data in sessions.outputs(name))


def test_every_recorded_line_is_accepted() -> None:
    counted: Counter[str] = Counter()
    for schema, name, data in recorded():
        lines = filter(bytes.strip, data.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
        for line, message in zip(lines, decoded(schema, data)[0], strict=True):
            verdict = verdict_of(message)
            if verdict == "invalid" or (verdict == "misfit" and schema == "input" and name in WRONG):
                continue
            assert verdict != "misfit", (name, line)
            assert schema_verdict(schema, json.loads(line)) != "misfit", (name, line)
            counted[schema] += 1
    assert counted["output"] > 8000
    assert counted["input"] > 300
    assert counted["records"] > 1000


@each("schema", SCHEMAS, str)
def test_a_validator_that_nobody_made_faster_says_the_same(schema: str) -> None:
    seen: set[str] = set()
    for file in (schema, "unknown", "misfit"):
        for case in load(f"corpus/{file}.json")["cases"]:
            [expected] = case["expect"]
            kind = f"{expected['verdict']} {expected['kind'].partition('/')[0]}"
            if case["schema"] == schema and kind not in seen:
                seen.add(kind)
                accepted = validator(schema, stock=True).is_valid(json.loads(case["text"]))
                assert accepted == (expected["verdict"] != "misfit"), case


# --- wrong lines ------------------------------------------------------------------------------------------------------


SENDERS = {"output": "agent", "input": "host", "records": "agent"}


def of_the_other_side(schema: str, value: Any) -> bool:
    """Return whether a line contains a message or a request that only the other side sends."""
    entries = [entry for entry in load("index.json")["definitions"] if entry["group"] in ("message", "request")]
    others = [
        entry["tags"] for entry in entries if entry["sent_by"] not in ("both", SENDERS[schema]) and "tags" in entry
    ]
    todo = [value]
    while todo:
        node = todo.pop()
        todo += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        if isinstance(node, dict) and any(tags.items() <= node.items() for tags in others):
            return True
    return False


#: Reason -> whether a schema may give a different verdict than the decoder on a line.
DIFFERENCES: dict[str, Callable[[str, Any], bool]] = {
    "a decoder reads the messages of both sides; in a schema for one, those of the other are unknown": of_the_other_side
}


@pytest.mark.parametrize("seed", range(3))
def test_a_schema_says_of_500_spoilt_lines_what_the_decoder_says(seed: int) -> None:
    counted: Counter[str] = Counter()
    for schema, kind, change, value in spoilt_lines(500, seed):
        [message], _ = decoded(schema, json.dumps(value).encode())
        verdict, said = verdict_of(message), schema_verdict(schema, value)
        counted[verdict] += 1
        if said == verdict:
            continue
        reasons = [reason for reason, applies in DIFFERENCES.items() if applies(schema, value)]
        assert (said, bool(reasons)) == ("unknown", True), (kind, change, verdict, said, value)
    # Each verdict must be common, otherwise the lines test little.
    assert min(counted[verdict] for verdict in ("valid", "unknown", "misfit")) > 75, counted


def test_every_change_spoils_some_lines() -> None:
    refused = {line.change for line in spoilt_lines(500, 0) if schema_verdict(line.schema, line.value) == "misfit"}
    assert refused >= CHANGES.keys() - {"an unknown tag", "a tag of another type", "a tag gone"}
