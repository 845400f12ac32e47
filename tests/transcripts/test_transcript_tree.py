"""Records may have any parents, even in cycles. Every query of a transcript still ends and loses nothing."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import claude_wire.transcripts as t
from claude_wire import Decoder, encode
from claude_wire.transcripts import transcript as transcript_module
from each import each
from sessions import scenarios, transcripts, unpack


def entry(uuid: str, parent: str | None, **others: Any) -> dict[str, Any]:
    return {
        "type": "attachment",
        "uuid": uuid,
        "parentUuid": parent,
        "attachment": {"type": "date", "date": "d"},
        **others,
    }


def call(uuid: str, parent: str | None, answer: str, tool: str) -> dict[str, Any]:
    block = {"type": "tool_use", "id": tool, "name": "Bash", "input": {}}
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": {"id": answer, "content": [block]}}


def result(uuid: str, parent: str, tool: str) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": tool, "content": "ok"}]
    return {
        "type": "user",
        "uuid": uuid,
        "parentUuid": parent,
        "promptId": "p",
        "message": {"role": "user", "content": content},
    }


def prompt(uuid: str, parent: str | None) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": "hi"}}


def transcript(*records: dict[str, Any]) -> t.Transcript:
    return t.Transcript(Decoder(t.Record).feed(b"".join(map(encode, records))))


def uuids(records: list[t.Node]) -> list[str]:
    return [record["uuid"] if isinstance(record, dict) else record.uuid for record in records]


def tool_ids(record: t.Node, kind: str, key: str) -> list[str]:
    """Return the ids of the tool calls, or of the tool results, in a record."""
    plain = record if isinstance(record, dict) else record.to_dict()
    content = (plain.get("message") or {}).get("content")
    return [block[key] for block in content if block["type"] == kind] if isinstance(content, list) else []


IDS = st.sampled_from("abcdefg")
RECORDS = st.one_of(
    st.builds(entry, IDS, st.none() | IDS),
    st.builds(prompt, IDS, st.none() | IDS),
    st.builds(call, IDS, IDS, IDS, IDS),
    st.builds(result, IDS, IDS, IDS),
    st.builds(lambda uuid: {"type": "last-prompt", "leafUuid": uuid}, IDS),
    st.builds(
        lambda uuid, before: {
            **entry(uuid, None),
            "type": "system",
            "subtype": "compact_boundary",
            "logicalParentUuid": before,
        },
        IDS,
        IDS,
    ),
    st.builds(lambda uuid, parent: {**entry(uuid, parent), "type": "of-tomorrow"}, IDS, st.none() | IDS),
)


@given(st.lists(RECORDS, max_size=14))
@example([result("c", "a", "b"), call("b", "a", "a", "b")])
def test_any_records_have_a_branch_in_the_order_of_the_file_where_none_is_before_its_parent_or_call(
    records: list[dict[str, Any]],
) -> None:
    made = transcript(*records)
    tree = made.tree
    assert set(tree.nodes) == {record["uuid"] for record in records if "uuid" in record}
    assert tree.missing.isdisjoint(tree.nodes)
    order = list(tree.nodes)
    calls = {id: uuid for uuid, node in tree.nodes.items() for id in tool_ids(node, "tool_use", "id")}
    called = [
        (calls[id], uuid)
        for uuid, node in tree.nodes.items()
        for id in tool_ids(node, "tool_result", "tool_use_id")
        if id in calls
    ]
    for leaf in [None, *tree.nodes]:
        branch = uuids(made.branch(leaf))
        assert len(branch) == len(set(branch))
        parents = [(tree.parent(uuid), uuid) for uuid in branch] + called
        if all(order.index(parent) < order.index(uuid) for parent, uuid in parents if parent is not None):
            assert branch == sorted(branch, key=order.index)
        end = tree.leaf if leaf is None else leaf
        path = [] if end is None else tree.path(end)
        assert [uuid for uuid in branch if uuid in path] == path
        if leaf is not None:
            assert leaf in branch
    assert uuids([record for turn in made.turns for record in turn.records]) == uuids(made.branch())
    assert len(list(t.messages(made))) <= len(branch_of(made))


def branch_of(made: t.Transcript) -> list[t.Node]:
    return made.branch()


def test_a_circle_a_missing_parent_and_a_copy_end_and_are_told() -> None:
    circle = transcript(entry("a", "c"), entry("b", "a"), entry("c", "b"))
    assert uuids(circle.branch()) == ["a", "b", "c"]
    assert circle.tree.roots == []
    missing = transcript(entry("a", "gone"), entry("b", "a"))
    assert (missing.tree.roots, missing.tree.missing) == (["a"], {"gone"})
    assert uuids(missing.branch()) == ["a", "b"]
    copied = transcript(entry("a", None), entry("b", "a"), entry("a", "b"))
    assert uuids(copied.branch("b")) == ["a", "b"]
    with pytest.raises(KeyError):
        copied.branch("nobody")
    assert transcript().branch() == []


def test_a_long_chain_and_a_wide_tree_take_linear_time() -> None:
    # With quadratic time, either would take minutes.
    count = 30_000
    chain = transcript(*(entry(str(i), str(i - 1) if i else None) for i in range(count)))
    assert len(chain.branch()) == count
    wide = transcript(
        prompt("p", None),
        *(call(f"c{i}", "p" if not i else f"c{i - 1}", "m", f"t{i}") for i in range(3000)),
        *(result(f"r{i}", f"c{i}", f"t{i}") for i in range(3000)),
    )
    assert len(wide.branch()) == 6001


def test_results_of_parallel_calls_belong_to_the_branch_and_another_prompt_does_not() -> None:
    made = transcript(
        prompt("p", None), call("c1", "p", "m", "t1"), call("c2", "c1", "m", "t2"), result("r1", "c1", "t1"),
        entry("h1", "r1"), result("r2", "c2", "t2"), prompt("q", "r2"), prompt("other", "c1"),
        {"type": "last-prompt", "leafUuid": "q"},
    )  # fmt: skip
    assert uuids(made.branch()) == ["p", "c1", "c2", "r1", "h1", "r2", "q"]
    # If a session is resumed in the middle of an answer, the rest of the answer is not on the branch.
    assert uuids(made.branch("other")) == ["p", "c1", "other"]
    assert [turn.prompt.uuid for turn in made.turns if turn.prompt] == ["p", "q"]


def test_the_leaf_is_the_one_that_was_named_and_what_was_written_after_it() -> None:
    named = {"type": "last-prompt", "leafUuid": "b"}
    assert transcript(entry("a", None), entry("b", "a"), named, entry("c", "b"), entry("d", "c")).tree.leaf == "d"
    # A rewound session names a leaf that already has later records.
    assert transcript(entry("a", None), entry("b", "a"), entry("c", "b"), named).tree.leaf == "b"
    assert transcript(entry("a", None), {"type": "last-prompt", "leafUuid": "gone"}).tree.leaf == "a"


def test_a_compaction_begins_a_root_and_the_branch_goes_on_before_it() -> None:
    made = t.Transcript(Decoder(t.Record).feed(next(iter(transcripts("compact").values()))))
    assert len(made.tree.roots) == 2
    assert len(made.branch()) == len(made.tree.nodes)
    after = made.branch(logical=False)
    assert isinstance(after[0], t.CompactBoundaryRecord)
    assert made.tree.parent(after[0].uuid) == after[0].logicalParentUuid


@each("scenario", scenarios(), str)
def test_recorded_sessions_have_every_result_of_every_call_on_their_branch(scenario: str) -> None:
    for data in transcripts(scenario).values():
        decoder = Decoder(t.Record)
        made = t.Transcript([*decoder.feed(data), *decoder.close()])
        branch = made.branch()
        if scenario != "resume_at":
            assert len(branch) == len(made.tree.nodes)
        calls = [block.id for each in branch if isinstance(each, t.AssistantRecord) for block in each.message.content
                 if hasattr(block, "input")]  # fmt: skip
        results = [
            block.tool_use_id for each in branch if isinstance(each, t.UserRecord) for block in each.tool_results
        ]
        assert sorted(calls) == sorted(results)
        prompts = [turn.prompt for turn in made.turns if turn.prompt is not None]
        assert len(prompts) == sum(isinstance(each, t.UserRecord) and each.is_prompt for each in branch)


def test_both_branches_of_a_session_that_was_resumed_in_the_middle_are_there() -> None:
    (data,) = transcripts("resume_at").values()
    made = t.Transcript(Decoder(t.Record).feed(data))
    texts = [turn.prompt.message.content for turn in made.turns if turn.prompt]
    assert texts == ["one", "another second prompt", "third on the new branch"]
    left = {*made.tree.nodes} - {*uuids(made.branch())}
    (leaf,) = [uuid for uuid in left if uuid not in made.tree.children]
    assert [each.message.content for each in made.branch(leaf) if isinstance(each, t.UserRecord)] == ["one", "two"]


def test_permissions_the_queue_and_subagents_are_told(tmp_path: Path) -> None:
    (data,) = transcripts("permission_denied").values()
    made = t.Transcript(Decoder(t.Record).feed(data))
    (denied,) = made.permissions
    assert (denied.tool, denied.allowed, denied.denial) == ("Bash", False, "permission-rule")
    assert [each.operation for each in made.queue] == ["enqueue", "dequeue"]
    (path,) = unpack("subagent_nested", tmp_path).glob("*/*.jsonl")
    nested = t.Transcript.load(path)
    assert sorted(agent.meta.spawnDepth or 0 for agent in nested.subagents.values()) == [1, 2]
    for id, agent in nested.subagents.items():
        assert agent.meta.toolUseId == id
        assert {record.agentId for record in agent.load().branch() if isinstance(record, t.Entry)} == {agent.id}
    with pytest.raises(ValueError, match="more than max_bytes=100"):
        t.Transcript.load(path, max_bytes=100)
    with pytest.raises(ValueError, match="more than max_bytes=100"):  # like a file that grows while it is read
        list(transcript_module.decoded(itertools.repeat(b"{}\n"), 100))
    assert repr(nested) == f"<Transcript {path.stem}: 32 records, 0 invalid lines>"


def test_subagents_are_bounded_in_number_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = unpack("subagent_parallel", tmp_path).glob("*/*.jsonl")
    folder = path.with_suffix("") / "subagents"
    assert len(t.Transcript.load(path).subagents) == 2
    (folder / "agent-torn.meta.json").write_bytes(b'{"toolUseId')
    (folder / "agent-huge.meta.json").write_bytes(b'{"toolUseId":"' + b"x" * (transcript_module.MAX_META_BYTES) + b'"}')
    assert len(t.Transcript.load(path).subagents) == 2
    monkeypatch.setattr(transcript_module, "MAX_SUBAGENTS", 1)
    assert len(t.Transcript.load(path).subagents) == 1
