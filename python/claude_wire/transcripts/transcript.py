"""A session on disk: its records, tree, turns, permission decisions and subagents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from claude_wire.codec.decoder import Decoder
from claude_wire.limits import BLOCK_BYTES
from claude_wire.messages import InvalidLine, MessageParam, ToolUseBlock, UnknownMessage, from_dict
from claude_wire.messages.base import Wire
from claude_wire.support.plain_json import fields_of
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

#: Default maximum size of a loaded file in bytes. The records need several times as much memory.
MAX_BYTES = 1 << 30

#: Maximum number of a session's subagents. More subagents are ignored.
MAX_SUBAGENTS = 10_000

#: Maximum size of a ``.meta.json`` in bytes. A larger file is not read. The CLI writes about 500 bytes.
MAX_META_BYTES = 1 << 20


class Turn(NamedTuple):
    """A prompt, and the records that followed it, in the order of the file."""

    prompt: UserRecord | None
    """The prompt that started the turn; None for the records before the first prompt."""
    records: list[Node]
    """All records of the turn, the prompt first."""

    @property
    def prompts(self) -> list[MessageParam]:
        """The prompt that started the turn, and prompts that were sent during the turn and became part of it."""
        said = (record for record in self.records if isinstance(record, (UserRecord, AttachmentRecord)))
        return [record.message for record in said if record.is_prompt and record.message is not None]


class Permission(NamedTuple):
    """The permission decision about a tool call."""

    tool_use_id: str
    """The ``id`` of the tool call."""
    tool: str | None
    """The tool's name; None if the call is not in the file."""
    allowed: bool | None
    """True if the call was allowed; None if the record does not say."""
    outcome: PermissionOutcome | None
    """Who decided, and why; None if the record does not say."""
    denial: str | None
    """Why the call was not allowed, as :attr:`UserRecord.toolDenialKind`; None if the record does not say."""


class SubagentMeta(Wire, kw_only=True, frozen=True):
    """A subagent's ``.meta.json``."""

    agentType: str | None = None
    """The subagent's type, such as ``general-purpose``."""
    isBuiltIn: bool | None = None
    """True if the type is built into the CLI."""
    launchedWithDefaults: bool | None = None
    """Observed: true for subagents of built-in types in the background."""
    description: str | None = None
    """The subagent's task in a few words."""
    toolUseId: str | None = None
    """The call that started the subagent; for a skill, :attr:`Transcript.subagents` sets it, not the CLI."""
    parentAgentId: str | None = None
    """The id of the subagent whose file has the call; None if the session's file has it."""
    spawnDepth: int | None = None
    """1 for a subagent of the session, 2 for its subagents, and so on."""
    # one of foreground, background
    requestShape: str | None = None
    """Whether the caller waits for the subagent."""
    requestNonInteractive: bool | None = None
    """True if nobody can answer questions, as with ``-p``."""
    model: str | None = None
    """The subagent's model: a model id, or the name in the call, such as ``haiku``."""
    modelNotNamed: bool | None = None
    """True if the call names no model."""
    pickedEffortModel: str | None = None
    """Observed: the session's model."""
    worktreePath: str | None = None
    """The git worktree in which the subagent works, or None."""
    worktreeBranch: str | None = None
    """The worktree's branch."""
    spawnedWithWorktree: bool | None = None
    """True if the CLI created the worktree for the subagent."""
    finished: bool | None = None
    """True if the subagent has ended."""


class Subagent(NamedTuple):
    """One of a session's subagents."""

    id: str
    """The subagent's id, without the file name's ``agent-``."""
    meta: SubagentMeta
    """The content of the subagent's ``.meta.json``."""
    path: Path
    """The path of the subagent's transcript. The file may be missing."""

    def load(self, max_bytes: int = MAX_BYTES) -> Transcript:
        """Load the subagent's transcript. Raises the errors of :meth:`Transcript.load`."""
        return Transcript.load(self.path, max_bytes=max_bytes)


class Transcript:
    """A session's records and their tree.

    Args:
        lines: the output of ``Decoder(Record)``.
        path: the session's file. The folder with the same name contains the subagents. None: no subagents.

    Attributes:
        path: the session's file, or None.
        records: all records, in the order of the file, unknown types included.
        invalid: the lines that are not one JSON object, such as a line that a crash cut off. Each has its number and
            its offset in bytes.
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
        """Load a session's or a subagent's file.

        Raises:
            OSError: the file cannot be read, or is not a regular file.
            ValueError: the file is larger than ``max_bytes``, or grows beyond that limit during reading; or the file is
                the CLI's output.
        """
        head = Head()
        try:
            with open_regular(path) as file:
                whole = os.fstat(file.fileno()).st_size
                chunks = _shown(iter(partial(file.read, BLOCK_BYTES), b""), head)
                transcript = cls(decoded(chunks, max_bytes, whole), path)
        except IsADirectoryError as error:
            what = "a folder: Transcript.load() takes one file; find_sessions(folder) lists the files of a folder"
            raise IsADirectoryError(error.errno, what, error.filename) from None
        if head.dialect == "stream":
            raise ValueError("this is not a transcript but the output of a CLI: use claude_wire.read()")
        return transcript

    @property
    def session_id(self) -> str | None:
        """The session id in the records; None if no record has a session id."""
        return next(
            (record.sessionId for record in self.records if isinstance(record, Record) and record.sessionId), None
        )

    def branch(self, leaf: str | None = None, *, logical: bool = True) -> list[Node]:
        """Return the records of the active branch, or of the branch ending with ``leaf``; see :meth:`Tree.branch`."""
        return self.tree.branch(leaf, logical=logical)

    @cached_property
    def turns(self) -> list[Turn]:
        """The turns of the active branch."""
        turns: list[Turn] = []
        for record in self.branch():
            prompt = record if isinstance(record, UserRecord) and record.is_prompt else None
            if prompt is not None or not turns:
                turns.append(Turn(prompt, []))
            turns[-1].records.append(record)
        return turns

    @property
    def queue(self) -> list[QueueOperationRecord]:
        """The operations on the prompt queue (enqueue, dequeue), in file order."""
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
        """Id of a tool call -> the subagent that it started, including subagents of subagents.

        The files are ``SESSION/subagents/agent-ID.meta.json``, in the folder of the session's file. A fork has no such
        files. The meta file of a skill's subagent (``context: fork``) does not name the tool call. Such a call is found
        only after the skill has ended, by the tool result that names the subagent.
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
        """Id of a subagent that a tool result names -> id of the tool call."""
        return {
            agent: result.tool_use_id
            for record in self.records
            if isinstance(record, UserRecord)
            and isinstance(agent := fields_of(record.toolUseResult).get("agentId"), str)
            for result in record.tool_results
        }


def _shown(chunks: Iterable[bytes], head: Head) -> Iterator[bytes]:
    for chunk in chunks:
        head.feed(chunk)
        yield chunk


def decoded(
    chunks: Iterable[bytes], max_bytes: int = MAX_BYTES, whole: int = 0
) -> Iterator[Record | UnknownMessage | InvalidLine]:
    """Decode a transcript's lines.

    Args:
        whole: the expected size in bytes; 0 if unknown.

    Raises:
        ValueError: the transcript has more than ``max_bytes``.
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
    """Read a ``.meta.json``. Return None if the file is damaged, too large or missing."""
    try:
        return from_dict(SubagentMeta, msgspec.json.decode(read_small(file, MAX_META_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
