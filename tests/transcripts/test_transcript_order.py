"""The active branch of a transcript does not depend on the order of its lines, and agrees with other readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import claude_wire.transcripts as t
from claude_wire import Decoder, encode
from claude_wire import messages as m
from each import each
from sessions import outputs, scenarios, transcripts, unpack

#: Sessions with more than LONG lines are cut only at every STEP-th line.
LONG, STEP = 400, 7


def of(*records: dict[str, Any]) -> t.Transcript:
    return t.Transcript(Decoder(t.Record).feed(b"".join(map(encode, records))))


def uuids(made: t.Transcript) -> list[str]:
    return [record["uuid"] if isinstance(record, dict) else record.uuid for record in made.branch()]


def entry(uuid: str, parent: str | None, type: str, **others: Any) -> dict[str, Any]:
    return {"type": type, "uuid": uuid, "parentUuid": parent, "isSidechain": False, **others}


def prompt(uuid: str, parent: str | None, text: str = "hi", **others: Any) -> dict[str, Any]:
    return entry(uuid, parent, "user", message={"role": "user", "content": text}, **others)


def answer(uuid: str, parent: str | None, answer: str, **block: Any) -> dict[str, Any]:
    content = [block or {"type": "text", "text": uuid}]
    return entry(uuid, parent, "assistant", message={"id": answer, "content": content})


def call(uuid: str, parent: str | None, of: str, tool: str) -> dict[str, Any]:
    return answer(uuid, parent, of, type="tool_use", id=tool, name="Bash", input={})


def result(uuid: str, parent: str, tool: str) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": tool, "content": "ok"}]
    return entry(uuid, parent, "user", promptId="p", message={"role": "user", "content": content})


def attachment(uuid: str, parent: str | None, **others: Any) -> dict[str, Any]:
    return entry(uuid, parent, "attachment", attachment={"type": "date", "date": "d"}, **others)


def named(leaf: str) -> dict[str, Any]:
    return {"type": "last-prompt", "leafUuid": leaf}


def boundary(uuid: str, before: str) -> dict[str, Any]:
    return entry(uuid, None, "system", subtype="compact_boundary", logicalParentUuid=before)


# --- the end of the branch --------------------------------------------------------------------------------------------


def test_the_branch_goes_on_after_a_compaction() -> None:
    records = [
        prompt("u1", None), answer("a1", "u1", "m1"), named("a1"), boundary("b1", "a1"),
        prompt("s1", "b1", isCompactSummary=True), prompt("u2", "s1"), answer("a2", "u2", "m2"),
    ]  # fmt: skip
    whole = ["u1", "a1", "b1", "s1", "u2", "a2"]
    for end in range(4, len(records) + 1):
        assert uuids(of(*records[:end])) == whole[: end - 1]


def test_the_branch_goes_on_after_parallel_results_in_any_order() -> None:
    begin = [prompt("u1", None), call("a1", "u1", "m1", "t1"), call("a2", "a1", "m1", "t2"), named("a2")]
    first, second = result("r1", "a1", "t1"), result("r2", "a2", "t2")
    for onward in ("r1", "r2"):
        after = answer("a3", onward, "m2")
        for results in ([first, second, after], [second, first, after], [after, first, second], [first, after, second]):
            made = of(*begin, *results)
            assert made.tree.leaf == "a3"
            assert set(uuids(made)) == {"u1", "a1", "a2", "r1", "r2", "a3"}
            assert uuids(made).index("a3") > uuids(made).index(onward)


def test_a_session_that_was_resumed_at_an_earlier_message_goes_on_there() -> None:
    old = [prompt("u1", None), answer("a1", "u1", "m1"), prompt("u2", "a1"), answer("a2", "u2", "m2"), named("a2")]
    assert uuids(of(*old, prompt("u3", "a1"))) == ["u1", "a1", "u3"]
    assert uuids(of(*old, prompt("u3", "a1"), answer("a3", "u3", "m3"))) == ["u1", "a1", "u3", "a3"]
    # Records that the CLI adds, and subagents of older CLIs, do not start a new branch.
    assert uuids(of(*old, attachment("x", "a1"), prompt("y", "a1", isMeta=True))) == ["u1", "a1", "u2", "a2"]
    assert uuids(of(*old, {**prompt("s", None), "isSidechain": True})) == ["u1", "a1", "u2", "a2"]


def test_a_subagents_answer_may_stand_before_what_it_follows() -> None:
    records = [prompt("u1", None), answer("a2", "x1", "m2"), attachment("x1", "u1")]
    made = of(*({**record, "isSidechain": True, "agentId": "a"} for record in records))
    assert uuids(made) == ["u1", "x1", "a2"]


def test_a_prompt_that_was_sent_during_a_turn_can_be_the_end() -> None:
    queued = entry("q", "u1", "attachment", attachment={"type": "queued_command", "prompt": "more"})
    assert uuids(of(prompt("u1", None), attachment("x", "u1"), queued, named("x"))) == ["u1", "x"]
    assert uuids(of(prompt("u1", None), attachment("x", "u1"), named("x"), queued)) == ["u1", "q"]


def test_a_result_belongs_to_its_call_wherever_it_hangs() -> None:
    begin = [prompt("u1", None), call("a1", "u1", "m1", "t1"), call("a2", "a1", "m1", "t2"), result("r2", "a2", "t2")]
    after = answer("a3", "r2", "m2")
    for parent in ("gone", "u1", "x"):
        beside = [attachment("x", "u1"), prompt("y", "x", isMeta=True)]
        stray = result("r1", parent, "t1")
        whole = ["u1", "a1", "a2", "r2", "r1", "a3"]
        assert uuids(of(*begin, *beside, stray, after)) == whole
        assert set(uuids(of(*begin, *beside, after, stray))) == set(whole)
        assert uuids(of(stray, *begin, *beside, after)) == ["u1", "a1", "r1", "a2", "r2", "a3"]
        # Each call has one result, and only from its own agent.
        again = {**stray, "uuid": "again"}
        assert uuids(of(*begin, *beside, stray, again, after)) == whole
        other = {**stray, "uuid": "other", "isSidechain": True}
        assert uuids(of(*begin, *beside, other, after)) == ["u1", "a1", "a2", "r2", "a3"]
        assert set(uuids(of(*begin, *beside, other, stray, after))) == set(whole)
        # The result belongs to no branch if two answers have a call with its id.
        assert uuids(of(*begin, *beside, call("a9", "y", "m9", "t1"), stray, after)) == ["u1", "a1", "a2", "r2", "a3"]
        sdk = pytest.importorskip("claude_agent_sdk._internal.sessions")
        for lines in (
            [*begin, *beside, stray, after],
            [*begin, *beside, after, stray],
            [stray, *begin, *beside, after],
        ):
            entries = sdk._parse_transcript_entries(b"".join(map(encode, lines)).decode())
            theirs = sdk._entries_to_session_messages(entries, None, 0)
            assert {each.uuid for each in theirs} <= set(uuids(of(*lines)))
    # Records that follow a call on another branch stay on that branch.
    assert uuids(of(*begin[:2], result("r1", "a1", "t1"), answer("a4", "r1", "m4")))[-1] == "a4"
    assert [each.uuid for each in of(*begin, result("r1", "a1", "t1"), after).branch("a1")] == ["u1", "a1"]


def test_a_compaction_within_a_turn_begins_no_turn(tmp_path: Path) -> None:
    """The summary of the compaction repeats the turn's origin."""
    (path,) = unpack("compact_partial", tmp_path).glob("*/*.jsonl")
    turns = t.Transcript.load(path).turns
    assert [turn.prompts[0].content for turn in turns][::2] == ["one", "three", "four"]
    assert len(turns) == 5
    summaries = [each for turn in turns for each in turn.records if getattr(each, "isCompactSummary", None)]
    assert [each.turnOrigin for each in summaries if isinstance(each, t.UserRecord)] == [None, "sdk"]


# --- recorded sessions ------------------------------------------------------------------------------------------------


@each("scenario", [name for name in scenarios() if name != "no_persistence"], str)
def test_neighbouring_lines_in_the_other_order_have_the_same_branch(scenario: str) -> None:
    for data in transcripts(scenario).values():
        records = [each for each in Decoder(t.Record).feed(data) if isinstance(each, t.Entry)]
        whole = set(uuids(t.Transcript(records)))
        if len(records) > LONG:
            continue
        for at in range(1, len(records)):
            swapped = [*records[: at - 1], records[at], records[at - 1], *records[at + 1 :]]
            assert set(uuids(t.Transcript(swapped))) == whole


@each("scenario", [name for name in scenarios() if name != "no_persistence"], str)
def test_every_beginning_of_a_session_has_the_messages_that_the_official_reader_has(scenario: str) -> None:
    """A session may be read while the CLI writes it, or after the CLI was killed."""
    sdk = pytest.importorskip("claude_agent_sdk._internal.sessions")
    compared = 0
    for name, data in transcripts(scenario).items():
        read = sdk._entries_to_subagent_messages if "/subagents/" in name else sdk._entries_to_session_messages
        entries: list[dict[str, Any]] = []
        records: list[Any] = []
        for number, line in enumerate(data.splitlines(keepends=True)):
            records += Decoder(t.Record).feed(line)
            new = sdk._parse_transcript_entries(line.decode(errors="replace"))
            entries += new
            if (new or b'"last-prompt"' in line) and (len(records) < LONG or number % STEP == 0):
                theirs = [each.uuid for each in read(entries, None, 0)]
                assert set(theirs) <= set(uuids(t.Transcript(records))), (name, number)
                compared += len(theirs)
    assert compared


#: Number of messages on the stream that are not on the active branch: they are on an abandoned branch, or the killed
#: process had not saved them yet.
LEFT = {"resume_at": 1, "torn_resumed": 2}

#: Scenarios whose transcript goes on after the end of the stream: the host closed the stream while the CLI worked, or
#: the CLI added records when it resumed a torn session.
LATER = {"h_background", "torn_resumed"}


def said(messages: list[Any]) -> dict[str, Any]:
    return {each.uuid: each for each in messages if isinstance(each, (m.AssistantMessage, m.UserMessage))}


def is_named_in_the_docs(message: Any, stream: dict[str, Any]) -> bool:
    """Return whether docs/transcripts.md lists this kind of message as one that only a transcript has."""
    if isinstance(message, m.UserMessage) and message.parent_tool_use_id is None:
        # Prompts (without --replay-user-messages), messages that the CLI adds for the model, and commands with their
        # output.
        is_command = message.text.startswith(("<command-name>", "<local-command-std"))
        return bool(message.isReplay or message.isSynthetic or is_command)
    if message.parent_tool_use_id is None:  # an empty text, or a command without output
        return not message.text and not message.tool_uses
    if isinstance(message, m.UserMessage) and not message.tool_results:
        return True  # the prompt of a subagent in the background
    shown = {each.parent_tool_use_id for each in stream.values()}
    is_text = isinstance(message, m.AssistantMessage) and not message.tool_uses
    # The texts of a subagent, and all messages of a subagent that another subagent started.
    return is_text or message.parent_tool_use_id not in shown


@pytest.mark.parametrize("scenario", [name for name in scenarios() if name != "no_persistence"])
def test_what_was_said_on_the_stream_is_on_the_branch_and_the_other_way_round(scenario: str, tmp_path: Path) -> None:
    disk: dict[str, Any] = {}
    for path in unpack(scenario, tmp_path).glob("*/*.jsonl"):
        disk |= said(list(t.messages(t.Transcript.load(path))))
    stream: dict[str, Any] = {}
    for output in outputs(scenario):
        decoder = Decoder()
        stream |= said([*decoder.feed(output), *decoder.close()])
    assert len(stream.keys() - disk.keys()) == LEFT.get(scenario, 0)
    only_on_disk = [disk[uuid] for uuid in disk.keys() - stream.keys()]
    assert scenario in LATER or all(is_named_in_the_docs(each, stream) for each in only_on_disk)
    for uuid in disk.keys() & stream.keys():
        assert type(disk[uuid]) is type(stream[uuid])
        assert disk[uuid].text == stream[uuid].text
