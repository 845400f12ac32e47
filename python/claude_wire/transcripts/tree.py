"""The records of a session by their uuids: who follows whom, and the branch that is active.

Knows records; not files. Nothing is taken for granted: uuids may come twice, parents may be missing or go round in a
circle. Every question is answered in a time that grows with the number of records and no faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from claude_wire.messages import UnknownMessage
from claude_wire.transcripts.records.base import Entry, Record
from claude_wire.transcripts.records.conversation import AssistantRecord, AttachmentRecord, UserRecord
from claude_wire.transcripts.records.state import LastPromptRecord
from claude_wire.transcripts.records.system import CompactBoundaryRecord, SystemRecord

__all__ = ["Node", "Tree", "uuid_of"]

#: A record of the tree: one with a class, or one of an unknown type that has the envelope.
Node = Entry | UnknownMessage


def uuid_of(record: Record | UnknownMessage) -> str | None:
    """The uuid of a record of the tree; None for one beside it."""
    if isinstance(record, Entry):
        return record.uuid
    uuid = record.get("uuid") if isinstance(record, UnknownMessage) else None
    return uuid if isinstance(uuid, str) else None


def _parent_of(record: Node) -> str | None:
    parent = record.parentUuid if isinstance(record, Entry) else record.get("parentUuid")
    return parent if isinstance(parent, str) else None


class Tree:
    """The records of one file as a tree.

    Of two records with the same uuid the first counts, as in a file to which a copy was added.

    Attributes:
        nodes: the records of the tree by their uuids, in the order of the file.
        children: the uuids of the records after each uuid, in the order of the file.
        roots: the uuids of records whose parent is null or missing. Each but the first begins after a compaction, in
            files that are whole.
        missing: the uuids of parents that no record has.
        leaf: the uuid with which the active branch ends, or None if there are no records. It is what the last
            ``last-prompt`` names, and what was written after it since; without one it is the last record of the file.
    """

    def __init__(self, records: Iterable[Record | UnknownMessage]) -> None:
        self.nodes: dict[str, Node] = {}
        self.children: dict[str, list[str]] = {}
        self._places: dict[str, int] = {}
        named, named_at, last = None, 0, None
        for place, record in enumerate(records):
            if isinstance(record, LastPromptRecord):
                if record.leafUuid is not None:
                    named, named_at = record.leafUuid, place
                continue
            uuid = uuid_of(record)
            if uuid is None or uuid in self.nodes or not isinstance(record, (Entry, UnknownMessage)):
                continue
            self.nodes[uuid], self._places[uuid], last = record, place, uuid
            parent = _parent_of(record)
            if parent is not None:
                self.children.setdefault(parent, []).append(uuid)
        self.missing: set[str] = self.children.keys() - self.nodes.keys()
        parents = ((uuid, _parent_of(node)) for uuid, node in self.nodes.items())
        self.roots: list[str] = [uuid for uuid, parent in parents if parent is None or parent in self.missing]
        self.leaf: str | None = self._newest(named, named_at) if named in self.nodes else last

    def _newest(self, leaf: str | None, since: int) -> str | None:
        """What was written after a leaf that was named at a place of the file: that name lags, after a kill say."""
        seen: set[str] = set()
        while leaf is not None and leaf not in seen:
            seen.add(leaf)
            later = [uuid for uuid in self.children.get(leaf, ()) if self._places[uuid] > since]
            if not later:
                break
            leaf = later[-1]
        return leaf

    def parent(self, uuid: str, *, logical: bool = True) -> str | None:
        """The uuid of the record before one; None for a root.

        With ``logical`` that of a compaction's boundary is the record that the summary takes the place of.
        """
        node = self.nodes[uuid]
        parent = _parent_of(node)
        if parent is None and logical and isinstance(node, CompactBoundaryRecord):
            parent = node.logicalParentUuid
        return parent if parent in self.nodes else None

    def path(self, leaf: str, *, logical: bool = True) -> list[str]:
        """The uuids from a root to a leaf; it ends where a parent is missing, or comes a second time."""
        path: dict[str, None] = {}
        at: str | None = leaf
        while at is not None and at not in path:
            path[at] = None
            at = self.parent(at, logical=logical)
        return list(reversed(path))

    def branch(self, leaf: str | None = None, *, logical: bool = True) -> list[Node]:
        """The records of a branch, the active one if no leaf is given, in the order of the file.

        The result of a tool call hangs on the record of its call, and so does the next block of the same answer. So
        where several tools are called at once, some results lead nowhere: they belong to the branch, too.

        Raises:
            KeyError: there is no such leaf.
        """
        leaf = self.leaf if leaf is None else leaf
        if leaf is None:
            return []
        path = self.path(leaf, logical=logical)
        taken = dict.fromkeys(path)
        for uuid, after in pairwise(path):
            node, next_node = self.nodes[uuid], self.nodes[after]
            if isinstance(node, AssistantRecord) and self._goes_on(node, next_node):
                taken.update(dict.fromkeys(self._beside(node, uuid, taken)))
        return [self.nodes[uuid] for uuid in sorted(taken, key=self._places.__getitem__)]

    @staticmethod
    def _goes_on(node: AssistantRecord, after: Node) -> bool:
        """Whether a record after one of an answer is of the same answer, or a result of its calls."""
        if isinstance(after, AssistantRecord):
            return after.message.id is not None and after.message.id == node.message.id
        return isinstance(after, UserRecord) and bool(after.tool_results)

    def _beside(self, answer: AssistantRecord, uuid: str, taken: dict[str, None]) -> Iterator[str]:
        """The rest of an answer, the results of its calls, and what the CLI has added to these, off the path."""
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
