"""A session on disk: its records, tree, turns, permission decisions and subagents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from claude_wire.codec.decoder import Decoder
from claude_wire.limits import BLOCK_BYTES
from claude_wire.messages import InvalidLine, MessageParam, ToolUseBlock, UnknownMessage, from_dict
from claude_wire.messages.base import Wire
from claude_wire.support.text import printable
from claude_wire.transcripts.files import open_regular, read_small
from claude_wire.transcripts.recognise import Head
from claude_wire.transcripts.records.base import Record
from claude_wire.transcripts.records.conversation import (
    AssistantRecord,
    AttachmentRecord,
    PermissionOutcome,
    UserRecord,
)
from claude_wire.transcripts.records.state import QueueOperationRecord
from claude_wire.transcripts.tree import Node, Tree

if TYPE_CHECKING:
    from typing_extensions import Self

#: Default limit for the size of a loaded file. The records take several times as much memory.
MAX_BYTES = 1 << 30

#: At most this many subagents of a session are found.
MAX_SUBAGENTS = 10_000

#: A ``.meta.json`` above this size is not read. Those of the CLI have 0.5 KB.
MAX_META_BYTES = 1 << 20


class Turn(NamedTuple):
    """A prompt, and the records that followed it, in the order of the file."""

    #: None for the records before the first prompt.
    prompt: UserRecord | None
    #: All records of the turn, the prompt first.
    records: list[Node]

    @property
    def prompts(self) -> list[MessageParam]:
        """The prompt that began the turn, and prompts that were sent during the turn and became part of it."""
        said = (record for record in self.records if isinstance(record, (UserRecord, AttachmentRecord)))
        return [record.message for record in said if record.is_prompt and record.message is not None]


class Permission(NamedTuple):
    """The permission decision about a tool call."""

    tool_use_id: str
    #: The name of the tool; None if the call is not in the file.
    tool: str | None
    #: True if the call was allowed; None if the record does not say.
    allowed: bool | None
    #: Who decided, and why.
    outcome: PermissionOutcome | None
    #: Why a call was not allowed: ``interrupted``, ``user-rejected``, ``permission-rule`` or another word.
    denial: str | None


class SubagentMeta(Wire, kw_only=True, frozen=True):
    """The ``.meta.json`` of a subagent.

    ``toolUseId`` is the call that started it, in the file of its session or, at a ``spawnDepth`` above 1, in that of
    the subagent ``parentAgentId``. The CLI leaves this out for a skill; :attr:`Transcript.subagents` fills it in.
    """

    agentType: str | None = None
    isBuiltIn: bool | None = None
    launchedWithDefaults: bool | None = None
    description: str | None = None
    toolUseId: str | None = None
    parentAgentId: str | None = None
    spawnDepth: int | None = None
    # one of foreground, background
    requestShape: str | None = None
    requestNonInteractive: bool | None = None
    model: str | None = None
    modelNotNamed: bool | None = None
    pickedEffortModel: str | None = None
    worktreePath: str | None = None
    worktreeBranch: str | None = None
    spawnedWithWorktree: bool | None = None
    finished: bool | None = None


class Subagent(NamedTuple):
    """A subagent of a session."""

    id: str
    meta: SubagentMeta
    #: The path of its own transcript, which may be missing.
    path: Path

    def load(self, max_bytes: int = MAX_BYTES) -> Transcript:
        """Load its transcript. Raises the errors of :meth:`Transcript.load`."""
        return Transcript.load(self.path, max_bytes=max_bytes)


class Transcript:
    """A session, made of its records.

    Args:
        lines: the output of a decoder of records.
        path: the session's file. Subagents are found in its folder.

    Attributes:
        path: the session's file, or None.
        records: all records, in the order of the file, unknown types included.
        invalid: the lines that are not one JSON object, such as a line that a crash has cut, each with its number and
            its offset in bytes. All other lines are still used.
        tree: the records as a tree.
    """

    def __init__(
        self, lines: Iterable[Record | UnknownMessage | InvalidLine], path: str | os.PathLike[str] | None = None
    ) -> None:
        self.path: Path | None = None if path is None else Path(path)
        self.records: list[Record | UnknownMessage] = []
        self.invalid: list[InvalidLine] = []
        for line in lines:
            if isinstance(line, InvalidLine):
                self.invalid.append(line)
            else:
                self.records.append(line)
        self.tree: Tree = Tree(self.records)

    def __repr__(self) -> str:
        name = "" if self.path is None else f" {printable(self.path.stem, keep='')[:80]}"
        return f"<Transcript{name}: {len(self.records):,} records, {len(self.invalid):,} invalid lines>"

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Self:
        """Load the file of a session, or of a subagent.

        Raises:
            OSError: the file cannot be read, or is no regular file.
            ValueError: it is larger than ``max_bytes``, or becomes so while it is read; or it is the output of a CLI.
        """
        head = Head()
        try:
            with open_regular(path) as file:
                whole = os.fstat(file.fileno()).st_size
                chunks = _shown(iter(partial(file.read, BLOCK_BYTES), b""), head)
                transcript = cls(decoded(chunks, max_bytes, whole), path)
        except IsADirectoryError as error:
            what = "a folder: Transcript.load() takes one file; find_sessions(folder) lists those of a folder"
            raise IsADirectoryError(error.errno, what, error.filename) from None
        if head.dialect == "stream":
            raise ValueError("this is no transcript but the output of a CLI: claude_wire.read() reads it")
        return transcript

    @property
    def session_id(self) -> str | None:
        """The session id in the records; None if no record has one."""
        return next(
            (record.sessionId for record in self.records if isinstance(record, Record) and record.sessionId), None
        )

    def branch(self, leaf: str | None = None, *, logical: bool = True) -> list[Node]:
        """The records of the active branch, or of the branch that ends with ``leaf``; see :meth:`Tree.branch`."""
        return self.tree.branch(leaf, logical=logical)

    @cached_property
    def turns(self) -> list[Turn]:
        """Split the active branch into turns."""
        turns: list[Turn] = []
        for record in self.branch():
            prompt = record if isinstance(record, UserRecord) and record.is_prompt else None
            if prompt is not None or not turns:
                turns.append(Turn(prompt, []))
            turns[-1].records.append(record)
        return turns

    @property
    def queue(self) -> list[QueueOperationRecord]:
        """The operations on the queue of prompts (put in, taken out), in the order of the file."""
        return [record for record in self.records if isinstance(record, QueueOperationRecord)]

    @cached_property
    def permissions(self) -> list[Permission]:
        """The permission decisions about tool calls, in the order of the file, on all branches."""
        tools = {
            block.id: block.name
            for record in self.records
            if isinstance(record, AssistantRecord)
            for block in record.message.content
            if isinstance(block, ToolUseBlock)
        }
        return [
            Permission(
                result.tool_use_id,
                tools.get(result.tool_use_id),
                None if record.permissionDecision is None else record.permissionDecision.decision == "accept",
                record.permissionDecision,
                record.toolDenialKind,
            )
            for record in self.records
            if isinstance(record, UserRecord) and (record.permissionDecision or record.toolDenialKind)
            for result in record.tool_results
        ]

    @cached_property
    def subagents(self) -> dict[str, Subagent]:
        """The subagents of the session, and those of its subagents, by the tool call that started each.

        They are found beside the file, in ``SESSION/subagents/agent-ID.meta.json``. A fork has none: the files stay
        with the original. The subagent of a skill (``context: fork``) has no call in that file: the call is the one
        whose result names the subagent, so this subagent is found when the skill has ended.
        """
        if self.path is None:
            return {}
        folder = self.path.with_suffix("") / "subagents"
        found: dict[str, Subagent] = {}
        for file in sorted(folder.glob("agent-*.meta.json"))[:MAX_SUBAGENTS]:
            meta = _meta(file)
            name = file.name.removesuffix(".meta.json")
            id = name.removeprefix("agent-")
            if meta is not None and meta.toolUseId is None:
                meta = msgspec.structs.replace(meta, toolUseId=self._calls_by_agent.get(id))
            if meta is not None and meta.toolUseId is not None:
                found[meta.toolUseId] = Subagent(id, meta, folder / f"{name}.jsonl")
        return found

    @cached_property
    def _calls_by_agent(self) -> dict[str, str]:
        """The tool call of each subagent that a result names."""
        return {
            agent: result.tool_use_id
            for record in self.records
            if isinstance(record, UserRecord) and isinstance(agent := _agent_of(record.toolUseResult), str)
            for result in record.tool_results
        }


def _agent_of(result: Any) -> object:
    """The id of the subagent that a tool result on disk names."""
    return cast("dict[str, Any]", result).get("agentId") if isinstance(result, dict) else None


def _shown(chunks: Iterable[bytes], head: Head) -> Iterator[bytes]:
    for chunk in chunks:
        head.feed(chunk)
        yield chunk


def decoded(
    chunks: Iterable[bytes], max_bytes: int = MAX_BYTES, whole: int = 0
) -> Iterator[Record | UnknownMessage | InvalidLine]:
    """The lines of a transcript.

    Args:
        whole: how many bytes there should be, if that is known.

    Raises:
        ValueError: there are more than ``max_bytes``.
    """
    size = 0
    with Decoder(Record) as decoder:
        for chunk in chunks:
            size += len(chunk)
            if max(size, whole) > max_bytes:
                raise ValueError(f"the transcript has more than max_bytes={max_bytes:,} bytes")
            yield from decoder.feed(chunk)
        yield from decoder.close()


def _meta(file: Path) -> SubagentMeta | None:
    """The content of a ``.meta.json``; None if the file is damaged, too large or missing."""
    try:
        return from_dict(SubagentMeta, msgspec.json.decode(read_small(file, MAX_META_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
