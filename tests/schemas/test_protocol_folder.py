"""The folder ``protocol`` matches the classes, and the decoder agrees with its schemas and its corpus."""

from __future__ import annotations

import base64
import copy
import dataclasses
import functools
import itertools
import json
import random
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from jsonschema import Draft202012Validator

import claude_wire
import recordings
import sessions
from claude_wire import Decoder, encode, peek
from claude_wire.errors import PayloadError
from claude_wire.flags.flags import Flags, flag_of
from claude_wire.messages import AssistantMessage, ControlRequestPayload, InvalidLine, Message, StopFailureHookInput
from claude_wire.messages.base import MessageBase
from claude_wire.protocol import run
from each import each
from folders import ROOT
from protocol.__main__ import check, differences, write
from protocol.archive import pack
from protocol.compare import compared, entry_name
from protocol.folder import as_text, made_files
from protocol.source import field_notes
from verdicts import FOLDER, decoded, load, parts_in, schema_verdict, validator, verdict_of

MAX_BYTES = 4 << 20


@functools.cache
def made() -> dict[str, str]:
    return made_files()


def test_the_folder_is_up_to_date() -> None:
    assert differences(FOLDER, made()) == []


def test_a_file_that_differs_or_is_too_many_is_found(tmp_path: Path) -> None:
    write(tmp_path, made())
    check(tmp_path, made())
    (tmp_path / "more.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"protocol/more\.json differs from"):
        check(tmp_path, made())
    write(tmp_path, made())
    assert not (tmp_path / "more.json").exists()
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"protocol/run\.json differs from"):
        check(tmp_path, made())


def test_a_new_version_of_the_cli_has_its_entry_in_the_changelog(tmp_path: Path) -> None:
    write(tmp_path, made())
    (tmp_path / "index.json").write_text(as_text({**load("index.json"), "cli": "2.1.1"}))
    flags = load("flags.json")
    (tmp_path / "flags.json").write_text(as_text({**flags, "flags": flags["flags"][1:]}))
    write(tmp_path, made())
    [entry] = (tmp_path / "changelog").iterdir()
    assert entry.name == f"2.1.1-{claude_wire.PROTOCOL_VERSION}.json"
    assert f'"field": "{flags["flags"][0]["flag"]}"' in entry.read_text()
    check(tmp_path, made())


def test_the_folder_has_at_most_4_mib() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) <= MAX_BYTES


def test_the_archive_is_the_same_whoever_packs_it(tmp_path: Path) -> None:
    first = pack(FOLDER, tmp_path / "a").read_bytes()
    again = pack(FOLDER, tmp_path / "b")
    assert again.name == f"protocol-{claude_wire.__version__}.tar.gz"
    assert again.read_bytes() == first
    with tarfile.open(again) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        owners = {(member.uid, member.gid, member.uname, member.mtime, member.mode) for member in archive}
    assert names == {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert owners == {(0, 0, "", 0, 0o644)}


# --- the index --------------------------------------------------------------------------------------------------------

ENTRIES: list[dict[str, Any]] = load("index.json")["definitions"]


def test_every_entry_of_the_index_has_its_definition() -> None:
    for entry in ENTRIES:
        for schema in entry["schemas"]:
            definition = load(load("index.json")["schemas"][schema])["$defs"][entry["name"]]
            assert definition.get("required", []) == entry["required"], entry["name"]
            assert entry["open_words"].keys() <= definition["properties"].keys() if "open_words" in entry else True


def test_every_entry_says_when_it_comes() -> None:
    for entry in ENTRIES:
        assert entry["when"], entry["name"]
        assert ":class:" not in entry["when"], entry["name"]
        assert "``" not in entry["when"], entry["name"]


def test_every_message_and_request_is_sent_by_whom_its_class_says() -> None:
    classes = {
        cls.__name__: cls.sent_by
        for cls in (*get_args(Message), *get_args(ControlRequestPayload))
        if hasattr(cls, "sent_by")
    }
    found = {entry["name"]: entry["sent_by"] for entry in ENTRIES if entry["group"] in ("message", "request")}
    assert found == classes


def test_the_parts_of_a_question_and_its_answer_are_sent_by_two_sides() -> None:
    senders = {entry["name"]: entry["sent_by"] for entry in ENTRIES}
    assert senders["StopHookInput"] == senders["InterruptResponse"] == senders["UserRecord"] == "agent"
    assert senders["StopHookSpecificOutput"] == senders["PermissionResultAllow"] == "host"
    assert senders["TextBlock"] == "both"


def test_every_message_class_is_in_the_index() -> None:
    todo: list[type] = [MessageBase]
    names = {entry["name"] for entry in ENTRIES}
    while todo:
        children = (cls := todo.pop()).__subclasses__()
        todo += children
        # Skip the classes that other tests define.
        if not children and cls.__module__.startswith("claude_wire.messages.") and cls.__name__ != "NoOther":
            assert cls.__name__ in names


@pytest.mark.parametrize("schema", ["output", "input", "records"])
def test_the_place_for_other_keys_is_no_key(schema: str) -> None:
    """``extra`` stores keys that have no field; it is not a key on the wire."""
    for name, definition in load(f"{schema}.schema.json")["$defs"].items():
        assert "extra" not in definition.get("properties", {}), name
    assert not any('"extra"' in str(case.get("text")) for case in load(f"corpus/{schema}.json")["cases"])


def test_the_known_words_are_those_of_the_source() -> None:
    words = field_notes(AssistantMessage)["error"].words
    assert {"rate_limit", "overloaded"} < set(words)
    assert field_notes(StopFailureHookInput)["error"].words == words
    assert field_notes(claude_wire.ResultMessage)["total_cost_usd"].description.startswith("A running total")


# --- flags and runs ---------------------------------------------------------------------------------------------------


def test_every_flag_has_its_row() -> None:
    wanted = [flag.name for field in dataclasses.fields(Flags) if (flag := flag_of(field))]
    assert [row["flag"] for row in load("flags.json")["flags"]] == wanted
    assert all(row["description"] for row in load("flags.json")["flags"])


def test_the_states_of_a_run_are_those_of_the_library() -> None:
    table = load("run.json")
    for state in run.State:
        for event in run.Event:
            prompt = run.SentPrompt(None, 0.0, 1)
            prompt.state = state
            prompt.happens(event)
            assert table["transitions"][state.name].get(event.name, state.name) == prompt.state.name
            assert table["states"][state.name]["final"] == (not table["transitions"][state.name])
    assert table["first"] == run.SentPrompt(None, 0.0, 1).state.name
    said = " ".join(table["rules"] + [state["description"] for state in table["states"].values()])
    for event in ("NAMED", "FIRST", "LATER", "SWEPT", "SETTLED"):
        assert event in said


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_names_what_is_there() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    named = set(re.findall(r"`((?:corpus/|changelog/)?[\w.-]+\.(?:json|md))`", page))
    for name in named:
        assert (FOLDER / name).exists(), name
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.json") if path.parent.name != "changelog"}
    assert files <= named


# --- The schemas of ``protocol`` accept all recorded lines, and reject wrong ones -------------------------------------


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


# --- ``Decoder`` and the schemas agree with every case of the corpus in ``protocol`` ----------------------------------


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


def check_case(case: Case) -> None:
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
            check_case(case)
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


# --- The changelog of ``protocol`` lists the differences between two versions of the folder ---------------------------


Files = dict[str, Any]


def folder() -> Files:
    return {path.name: copy.deepcopy(load(path.name)) for path in FOLDER.glob("*.json")}


def definition(files: Files, name: str) -> Any:
    return files["output.schema.json"]["$defs"][name]


def entry(files: Files, name: str) -> Any:
    return next(one for one in files["index.json"]["definitions"] if one["name"] == name)


def test_a_folder_does_not_differ_from_itself() -> None:
    found = compared(folder(), folder())
    assert [found[key] for key in ("added", "removed", "changed", "flags")] == [[], [], [], []]


def _new_field(files: Files) -> None:
    definition(files, "KeepAlive")["properties"]["beat"] = {"type": "integer"}


def _other_type(files: Files) -> None:
    definition(files, "TextBlock")["properties"]["text"] = {"type": ["string", "null"]}


def _now_optional(files: Files) -> None:
    definition(files, "TextBlock")["required"].remove("text")


def _new_word(files: Files) -> None:
    entry(files, "InitMessage")["open_words"]["view_mode"].append("wide")


def _other_sender(files: Files) -> None:
    entry(files, "KeepAlive")["sent_by"] = "agent"


def _other_answer(files: Files) -> None:
    entry(files, "InterruptRequest")["answer"] = []


FOLDER_CHANGES: list[tuple[Callable[[Files], None], dict[str, Any]]] = [
    (_new_field, {"change": "new", "field": "beat", "to": {"type": "integer"}, "in": ["KeepAlive"]}),
    (
        _other_type,
        {
            "change": "type",
            "field": "text",
            "from": {"type": "string"},
            "to": {"type": ["string", "null"]},
            "in": ["TextBlock"],
        },
    ),
    (_now_optional, {"change": "optional", "field": "text", "in": ["TextBlock"]}),
    (_new_word, {"change": "words", "field": "view_mode", "added": ["wide"], "removed": [], "in": ["InitMessage"]}),
    (_other_sender, {"change": "sent_by", "from": "both", "to": "agent", "in": ["KeepAlive"]}),
    (_other_answer, {"change": "answer", "from": ["InterruptResponse"], "to": [], "in": ["InterruptRequest"]}),
]


@pytest.mark.parametrize(("change", "wanted"), FOLDER_CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_change_is_found(change: Callable[[Files], None], wanted: dict[str, Any]) -> None:
    after = folder()
    change(after)
    assert compared(folder(), after)["changed"] == [wanted]


def test_a_field_that_went_is_found() -> None:
    before = folder()
    _new_field(before)
    [found] = compared(before, folder())["changed"]
    assert found == {"change": "gone", "field": "beat", "from": {"type": "integer"}, "in": ["KeepAlive"]}


def test_the_same_change_of_several_definitions_is_one() -> None:
    after = folder()
    for name in ("TextBlock", "ThinkingBlock"):
        definition(after, name)["properties"]["language"] = {"type": "string"}
    [found] = compared(folder(), after)["changed"]
    assert found["in"] == ["TextBlock", "ThinkingBlock"]


def test_definitions_and_flags_that_come_and_go_are_found() -> None:
    after = folder()
    after["index.json"]["cli"] = "3.0.0"
    after["index.json"]["definitions"].remove(entry(after, "KeepAlive"))
    new = {**entry(after, "InitMessage"), "name": "TeaMessage", "kind": "system/tea"}
    after["index.json"]["definitions"].append(new)
    after["output.schema.json"]["$defs"]["TeaMessage"] = definition(after, "InitMessage")
    gone = after["flags.json"]["flags"].pop(0)
    found = compared(folder(), after)
    assert found["added"] == [{"name": "TeaMessage", "group": "message", "kind": "system/tea"}]
    assert found["removed"] == [{"name": "KeepAlive", "group": "message", "kind": "keep_alive"}]
    assert found["flags"] == [{"change": "gone", "field": gone["flag"], "from": gone["value"]}]
    assert entry_name(found) == f"{load('index.json')['cli']}-3.0.0.json"


def test_words_for_people_and_open_sets_are_no_change() -> None:
    after = folder()
    definition(after, "KeepAlive")["description"] = "Other words."
    properties = definition(after, "TextBlock")["properties"]
    properties["text"]["description"] = "Other words."
    choices = properties["cache_control"]["anyOf"]
    properties["cache_control"]["anyOf"] = [one for one in choices if "AnyOther" not in str(one)]
    assert len(choices) > len(properties["cache_control"]["anyOf"])
    assert compared(folder(), after)["changed"] == []


def test_it_is_a_command(tmp_path: Path) -> None:
    after = folder()
    _new_field(after)
    for name, content in after.items():
        (tmp_path / name).write_text(json.dumps(content))
    command = [sys.executable, "-m", "protocol.compare", str(FOLDER), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT / "tools")
    assert [change["field"] for change in json.loads(done.stdout)["changed"]] == ["beat"]


def test_the_entries_lead_from_one_version_to_the_next() -> None:
    entries = [load(f"changelog/{path.name}") for path in (FOLDER / "changelog").glob("*.json")]
    entries.sort(key=lambda one: [int(number) for number in one["from"].split(".")])
    for earlier, later in itertools.pairwise(entries):
        assert earlier["to"] == later["from"]
    assert entries[-1]["to"] == load("index.json")["cli"]
