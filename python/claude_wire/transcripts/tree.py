"""A session's records as a tree, which shows which record follows which, and which branch is active.

The tree accepts any file: uuids may be repeated, and parents may be missing or form a circle. Every method takes at
most linear time in the number of records.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import pairwise

from claude_wire.messages import ToolUseBlock, UnknownMessage
from claude_wire.transcripts.records.base import Entry, Record
from claude_wire.transcripts.records.conversation import AssistantRecord, AttachmentRecord, UserRecord
from claude_wire.transcripts.records.state import LastPromptRecord
from claude_wire.transcripts.records.system import CompactBoundaryRecord, SystemRecord

#: A record of the tree: an Entry, or a record of an unknown type that has the envelope.
Node = Entry | UnknownMessage


def uuid_of(record: Record | UnknownMessage) -> str | None:
    """Return a record's uuid, or None if the record does not belong to the tree."""
    if isinstance(record, Entry):
        return record.uuid
    uuid = record.get("uuid") if isinstance(record, UnknownMessage) else None
    return uuid if isinstance(uuid, str) else None


def _parent_of(record: Node) -> str | None:
    parent = record.parentUuid if isinstance(record, Entry) else record.get("parentUuid")
    return parent if isinstance(parent, str) else None


def _calls(node: Node) -> list[str]:
    """Return the ids of a record's tool calls."""
    if not isinstance(node, AssistantRecord):
        return []
    return [block.id for block in node.message.content if isinstance(block, ToolUseBlock)]


def _writer(node: Node) -> tuple[bool, str | None] | None:
    """Return a value that identifies the agent that wrote a record, or None if unknown."""
    return (bool(node.isSidechain), node.agentId) if isinstance(node, Entry) else None


#: The rank of a message from the user or the model in the main conversation; see :func:`_rank`.
MAIN = 4


def _rank(node: Node) -> int:
    """Return how well a record shows the active branch, from 1 to :data:`MAIN`, or 0 if it is not a message.

    Messages of subagents, which older CLIs wrote into the file of the session, rank lower than other messages. So does
    text that the CLI adds (``isMeta``), which may follow a message of an abandoned branch.
    """
    if isinstance(node, AttachmentRecord):
        return (2 if node.isSidechain else MAIN) if node.message is not None else 0
    if not isinstance(node, (UserRecord, AssistantRecord)):
        return 0
    added = isinstance(node, UserRecord) and node.isMeta
    return (1 if added else 2) if node.isSidechain else (3 if added else MAIN)


class Tree:
    """One file's records as a tree.

    If several records have the same uuid, the first one counts: later ones are copies.

    Attributes:
        nodes: uuid -> record of the tree, in the order of the file.
        children: uuid -> uuids of the record's children, in the order of the file.
        roots: the uuids of records whose parent is null or missing. In a complete file, each root except the first
            is the boundary of a compaction.
        missing: the uuids of parents that are not in the file.
        leaf: the uuid of the last record of the active branch; None if there are no records. The active branch goes
            through the newest message since the last ``last-prompt`` or, if there is no such message, through the
            record that this ``last-prompt`` names, and ends with its last descendant.
    """

    def __init__(self, records: Iterable[Record | UnknownMessage]) -> None:
        self.nodes: dict[str, Node] = {}
        self.children: dict[str, list[str]] = {}
        self._places: dict[str, int] = {}
        # uuid of a record -> uuids of the compaction boundaries after it. A boundary has no parent, but names the
        # record in `logicalParentUuid`.
        self._boundaries: dict[str, list[str]] = {}
        named, named_at = None, -1
        for place, record in enumerate(records):
            if isinstance(record, LastPromptRecord):
                if record.leafUuid is not None:
                    named, named_at = record.leafUuid, place
                continue
            uuid = uuid_of(record)
            if uuid is None or uuid in self.nodes or not isinstance(record, (Entry, UnknownMessage)):
                continue
            self.nodes[uuid], self._places[uuid] = record, place
            parent = _parent_of(record)
            if parent is not None:
                self.children.setdefault(parent, []).append(uuid)
            elif isinstance(record, CompactBoundaryRecord) and record.logicalParentUuid is not None:
                self._boundaries.setdefault(record.logicalParentUuid, []).append(uuid)
        self.missing: set[str] = self.children.keys() - self.nodes.keys()
        parents = ((uuid, _parent_of(node)) for uuid, node in self.nodes.items())
        self.roots: list[str] = [uuid for uuid, parent in parents if parent is None or parent in self.missing]
        self.leaf: str | None = self._end(named, named_at) if named in self.nodes else self._end(None, -1)

    # --- the end of the active branch ---------------------------------------------------------------------------------

    def _end(self, named: str | None, named_at: int) -> str | None:
        """Return the uuid of the active branch's last record.

        Lines are not always in the order of the conversation: results of parallel calls are written in the order in
        which the tools finish, and a subagent's answer may be written before its parent. So the newest message decides
        which branch is active, and the tree decides where the branch ends.

        Args:
            named: the uuid that the last ``last-prompt`` names; None if there is none.
            named_at: the position of this ``last-prompt`` in the file.
        """
        newest, rank = None, 0
        for uuid, node in reversed(self.nodes.items()):
            if self._places[uuid] < named_at:
                break
            found = _rank(node)
            if found > rank:
                newest, rank = uuid, found
            if rank == MAIN:
                break
        if named is not None and rank != MAIN:
            return self._last(named, named_at)
        if newest is None:
            return next(reversed(self.nodes), None)
        call = self._call_elsewhere(newest)
        if call is not None:
            leaf = self._last(call, -1)
            if any(node is self.nodes[newest] for node in self.branch(leaf)):
                return leaf
        return self._last(newest, -1)

    def _call_elsewhere(self, uuid: str) -> str | None:
        """Return the tool call for a record with the tool's result, if the call is not on the path to the record."""
        node = self.nodes[uuid]
        ids = {result.tool_use_id for result in node.tool_results} if isinstance(node, UserRecord) else set[str]()
        if not ids:
            return None
        for each in reversed(self.path(uuid)):
            if not ids.isdisjoint(_calls(self.nodes[each])):
                return None
        return next((each for each in reversed(self.nodes) if not ids.isdisjoint(_calls(self.nodes[each]))), None)

    def _last(self, uuid: str, since: int) -> str:
        """Return a record's last descendant among the records after the position ``since``."""
        seen: set[str] = set()
        while True:
            answer = self._answer(uuid)
            seen.update(answer)
            after = [
                child
                for each in answer
                for child in (*self.children.get(each, ()), *self._boundaries.get(each, ()))
                if child not in seen and self._places[child] > since
            ]
            if not after:
                break
            # Prefer a record with children, which continues the branch.
            uuid = max(after, key=lambda child: (child in self.children, self._places[child]))
        within = [each for each in answer if self._places[each] > since and each not in self.children]
        return max(within, key=self._places.__getitem__, default=uuid)

    def _answer(self, uuid: str) -> list[str]:
        """Return the records and tool results of the answer that a record belongs to, or only the record itself.

        Each of them may have children.
        """
        start = uuid
        node = self.nodes[uuid]
        seen = {uuid}
        while isinstance(node, (AssistantRecord, UserRecord)):
            parent = _parent_of(node)
            before = None if parent is None else self.nodes.get(parent)
            if parent is None or parent in seen or not isinstance(before, AssistantRecord):
                break
            if not self._goes_on(before, node):
                break
            start, node = parent, before
            seen.add(parent)
        return [start, *self._beside(node, start, ())] if isinstance(node, AssistantRecord) else [uuid]

    # --- branches -----------------------------------------------------------------------------------------------------

    def parent(self, uuid: str, *, logical: bool = True) -> str | None:
        """Return the uuid of a record's parent, or None for a root.

        With ``logical``, the parent of a compaction boundary is the last record that the summary replaces.
        """
        node = self.nodes[uuid]
        parent = _parent_of(node)
        if parent is None and logical and isinstance(node, CompactBoundaryRecord):
            parent = node.logicalParentUuid
        return parent if parent in self.nodes else None

    def path(self, leaf: str, *, logical: bool = True) -> list[str]:
        """Return the uuids from a root to a leaf. The path begins after a missing or repeated parent."""
        path: dict[str, None] = {}
        at: str | None = leaf
        while at is not None and at not in path:
            path[at] = None
            at = self.parent(at, logical=logical)
        return list(reversed(path))

    def branch(self, leaf: str | None = None, *, logical: bool = True) -> list[Node]:
        """Return the records of a branch in the order of the file. Without ``leaf``, this is the active branch.

        A parent comes before its children, even if it is later in the file.

        The record of a tool call is the parent of its result, and also of the next block of the answer. So after
        parallel calls, some results are not on the path to the leaf. They still belong to the branch, like a result
        whose parent is missing or is not its call.

        Raises:
            KeyError: there is no such leaf.
        """
        leaf = self.leaf if leaf is None else leaf
        if leaf is None:
            return []
        path = self.path(leaf, logical=logical)
        # uuid -> the record's position in the file, but at least the parent's position, which sorts parents first.
        places: dict[str, int] = {}
        place = -1
        for uuid in path:
            place = places[uuid] = max(place, self._places[uuid])
        for uuid, after in pairwise(path):
            node, next_node = self.nodes[uuid], self.nodes[after]
            if isinstance(node, AssistantRecord) and self._goes_on(node, next_node):
                for beside in self._beside(node, uuid, places):
                    parent = _parent_of(self.nodes[beside]) or ""
                    places[beside] = max(places.get(parent, -1), self._places[beside])
        for stray, call in self._strays(places).items():
            places[stray] = max(places[call], self._places[stray])
        return [self.nodes[uuid] for uuid in sorted(places, key=places.__getitem__)]

    def _strays(self, branch: Iterable[str]) -> dict[str, str]:
        """Map each tool result's uuid to its call's uuid, for calls of a branch whose result has another parent.

        This finds results only for calls that have no result on the branch, and whose id is in no other answer. A
        result below its call in the tree does not count, because it belongs to another branch.
        """
        waiting: dict[str, str] = {}
        answered: set[str] = set()
        for uuid in branch:
            node = self.nodes[uuid]
            waiting.update(dict.fromkeys(_calls(node), uuid))
            if isinstance(node, UserRecord):
                answered.update(result.tool_use_id for result in node.tool_results)
        for id in answered & waiting.keys():
            del waiting[id]
        if not waiting:
            return {}
        after = self._after(waiting.values())
        found: list[tuple[str, UserRecord]] = []
        for uuid, node in self.nodes.items():
            if isinstance(node, UserRecord) and uuid not in after:
                found.append((uuid, node))
            for id in _calls(node):
                if id in waiting and not self._same_answer(uuid, waiting[id]):
                    del waiting[id]
        strays: dict[str, str] = {}
        for uuid, node in found:
            for result in node.tool_results:
                call = waiting.get(result.tool_use_id)
                if call is not None and _writer(node) == _writer(self.nodes[call]):
                    strays[uuid] = call
                    del waiting[result.tool_use_id]
        return strays

    def _same_answer(self, uuid: str, other: str) -> bool:
        node, after = self.nodes[uuid], self.nodes[other]
        return uuid == other or (isinstance(node, AssistantRecord) and self._goes_on(node, after))

    def _after(self, uuids: Iterable[str]) -> set[str]:
        waiting = list(uuids)
        seen = set(waiting)
        while waiting:
            for child in self.children.get(waiting.pop(), ()):
                if child not in seen:
                    seen.add(child)
                    waiting.append(child)
        return seen

    @staticmethod
    def _goes_on(node: AssistantRecord, after: Node) -> bool:
        """Return True if ``after`` belongs to the same answer as ``node``, or is a tool result."""
        if isinstance(after, AssistantRecord):
            return after.message.id is not None and after.message.id == node.message.id
        return isinstance(after, UserRecord) and bool(after.tool_results)

    def _beside(self, answer: AssistantRecord, uuid: str, taken: Container[str]) -> Iterator[str]:
        """Yield the records of an answer that are not on the path: blocks, tool results, and additions by the CLI."""
        seen = {uuid}
        waiting = [uuid]
        while waiting:
            for child in self.children.get(waiting.pop(), ()):
                node = self.nodes[child]
                if child in taken or child in seen:
                    continue
                if isinstance(node, (AttachmentRecord, SystemRecord)) or self._goes_on(answer, node):
                    seen.add(child)
                    waiting.append(child)
                    yield child
