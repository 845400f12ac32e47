"""One of the supervisor's sessions: a CLI, its journal, its ledger, and the attached clients.

The session writes a chunk of output to the journal, then sends it to each client, then passes it to the ledger. One
thread does all three, so clients and ledger see the lines in the journal's order. No client needs ``order.jsonl``, the
file with the time of each line, so the session writes it later, in batches.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from claude_wire.codec import Decoder, encode
from claude_wire.messages import (
    ControlRequest,
    ControlResponse,
    InitializeRequest,
    InitMessage,
    ResultMessage,
    StatusMessage,
    UserMessage,
    from_dict,
)
from claude_wire.support import LONGEST_ID
from claude_wire_kit.supervisor.cost import CostLimit
from claude_wire_kit.supervisor.disk.journal import Place
from claude_wire_kit.supervisor.disk.parts import blocks
from claude_wire_kit.supervisor.disk.review import review
from claude_wire_kit.supervisor.frames import (
    INITIALIZE_ID,
    NOTHING,
    Accepted,
    Attached,
    Blocked,
    Driver,
    Life,
    Limited,
    Refused,
    Serves,
    SessionInfo,
    Stderr,
)
from claude_wire_kit.supervisor.ledger import MARKS, Ledger, Taken, Verdict, is_missed
from claude_wire_kit.supervisor.stdin_writer import StdinWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_wire_kit.supervisor.child import Child
    from claude_wire_kit.supervisor.disk.folder import StateFolder
    from claude_wire_kit.supervisor.disk.journal import Journal
    from claude_wire_kit.supervisor.disk.record import Record

#: Maximum bytes in one read from a CLI: the size of its pipe.
CHUNK_BYTES = 64 * 1024
#: Maximum bytes to read from the pipe of a CLI that has exited: a pipe cannot be larger.
MAX_PIPE_BYTES = 1024 * 1024
#: Seconds between attempts to write to a full disk.
RETRY_SECONDS = 1.0
#: The rows of ``order.jsonl`` are written once this many lines wait for theirs, and when a tick of the supervisor
#: chooses this session. Writing a row after each line would take a fifth more processor time per line.
MAX_UNORDERED = 64
#: The ledger ignores lines that begin like this. Most reads return one line, and for one line this check is faster than
#: the decoder's filter.
PASSED_OVER = (b'{"type":"stream_event",', b'{"type":"assistant",', b'{"type":"user",')
#: Maximum bytes of the CLI's standard error in ``supervisor_ended``: the last ones.
TAIL_BYTES = 8 * 1024

#: Decodes lines for the ledgers of all sessions. Each session feeds whole lines, so the decoder keeps no state between
#: calls.
_decoder: Decoder[Any] = Decoder(only=MARKS, on_invalid="return")


class SessionClient(Protocol):
    """A client that is attached to a session."""

    @property
    def part_number(self) -> int | None:
        """The number of the journal part that the client reads from; None if the client has all lines."""
        ...

    def on_output(self, chunk: bytes | None, start: int, /) -> None:
        """Send new whole lines. If ``chunk`` is None, read them from the journal at offset ``start``."""

    def send_frame(self, frame: Any, /, *, behind: Place = ...) -> None:
        """Send a frame after the journal's lines before the place ``behind``. By default, send it before all lines that
        are still waiting.
        """

    def disconnect_slow(self, reason: str, /) -> None:
        """Disconnect the client because it reads too slowly. The client may attach again."""

    def read_on(self) -> None:
        """Read from the client only while the CLI has room for its lines."""

    def close(self) -> None:
        """Disconnect the client."""


class ManagedSession:
    """A session whose files are open, because its CLI runs or a client is attached.

    Args:
        record: the session's record on disk.
        journal: the session's journal. This object closes it.
        folder: the state folder, for its log.
        ended: called when the CLI has exited.
    """

    __slots__ = (
        "_child",
        "_cost",
        "_delivered_end",
        "_ended",
        "_folder",
        "_inlet",
        "_loop",
        "_mode",
        "_model",
        "_news_line",
        "_part_number",
        "_retry",
        "_source",
        "_stderr",
        "_turn_line",
        "clients",
        "driver",
        "journal",
        "ledger",
        "next_line",
        "record",
    )

    def __init__(
        self, record: Record, journal: Journal, folder: StateFolder, ended: Callable[[ManagedSession], object]
    ) -> None:
        self.record: Record = record
        self.journal: Journal = journal
        self.ledger: Ledger = Ledger(record.mcp)
        self.clients: tuple[SessionClient, ...] = ()
        self.driver: SessionClient | None = None
        self._folder = folder
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._child: Child | None = None
        # The part number and the offset in `delivered_position`.
        self._part_number, self._delivered_end = journal.number, journal.last.output.end if journal.number else 0
        #: The number of the next line to deliver to the ledger and the clients: the line at :attr:`delivered_position`.
        self.next_line: int = journal.next
        # `_news_line`: the first line of the latest delivery. `_turn_line`: the first line of the latest delivery with
        # a result message; tool calls before `_turn_line` have results.
        self._turn_line = self._news_line = journal.next
        self._cost: CostLimit | None = None
        # The model and the permission mode; None until one of the CLI's messages names them.
        self._model: str | None = None
        self._mode: str | None = None
        self._inlet: StdinWriter | None = None
        # The descriptor of the CLI's output while the session reads it, else None.
        self._source: int | None = None
        self._stderr = b""  # the last bytes of standard error
        self._retry: asyncio.TimerHandle | None = None

    # --- state

    @property
    def id(self) -> str:
        """The session's id in the supervisor."""
        return self.record.id

    @property
    def epoch(self) -> int:
        return self.record.epoch

    @property
    def delivered_position(self) -> Place:
        """The end of the last line delivered to the ledger and the clients."""
        return Place(self._part_number, self._delivered_end)

    @property
    def life(self) -> Life:
        return self.record.life if self._child is None else self.ledger.life

    @property
    def runs(self) -> bool:
        return self._child is not None

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    @property
    def info(self) -> SessionInfo:
        return msgspec.structs.replace(
            self.record.info,
            life=self.life,
            line=self.journal.next - 1,
            bytes=self.journal.size,
            pid=self.pid,
            clients=len(self.clients),
            driver=self.driver is not None,
        )

    # --- the CLI

    def start(self, child: Child) -> None:
        """Begin to read a new CLI's output, and send ``initialize``. Call :meth:`Journal.begin` first.

        Raises:
            OSError: the journal cannot be written. The caller must close the process.
            ValueError: the record's ``initialize`` is invalid.
        """
        request = from_dict(InitializeRequest, self.record.initialize)
        line = encode(ControlRequest(request_id=INITIALIZE_ID, request=request))
        self.journal.add_input(line)
        self._child = child
        self._inlet = StdinWriter(child, self._drained)
        self._part_number, self._delivered_end = self.journal.number, 0
        self.next_line = self._turn_line = self._news_line = self.journal.next
        self.ledger.process_started()
        self._model = self._mode = None
        self._stderr = b""
        self.limit_cost()
        try:
            self._read()
            self._loop.add_reader(child.stderr, self._on_stderr, child)
            self._loop.add_reader(child.pidfd, self._on_exit, child)
            self._inlet.write(line)
        except BaseException:
            self._let_go(child)
            raise

    def limit_cost(self) -> None:
        """Start watching the CLI's cost if the record has a limit."""
        if self._cost is None and self.record.cost_usd is not None:
            self._cost = CostLimit(self.record.cost_usd, self._write, self._cost_reached, self.ledger.works)

    def _read(self) -> None:
        """Read the CLI's output, except while the journal is blocked or too many questions are open."""
        child = self._child
        if child is None or child.stdout is None:
            return
        wanted = not self.journal.is_blocked and not self.ledger.is_full
        if wanted and self._source is None:
            self._loop.add_reader(child.stdout, self._on_output)
            self._source = child.stdout
        elif not wanted and self._source is not None:
            self._loop.remove_reader(child.stdout)
            self._source = None

    def _on_output(self) -> None:
        assert self._source is not None
        try:
            data = os.read(self._source, CHUNK_BYTES)
        except BlockingIOError:
            return
        if data:
            self._received(data)
        elif self._child is not None:  # the pidfd reports the exit
            self._loop.remove_reader(self._source)
            self._source = None
            self._child.end_output()

    def _received(self, data: bytes) -> None:
        """Write a chunk of output to the journal and deliver it, and write the order if many lines wait for theirs.
        With b"", try again to write the bytes that did not fit on the disk.
        """
        try:
            self.journal.add_output(data)
        except OSError as error:
            self._blocked(error)
            return
        self._deliver(data)
        output = self.journal.last.output
        if output.count - output.ordered >= MAX_UNORDERED:
            self.write_order()

    def write_order(self) -> None:
        """Write the rows of ``order.jsonl`` for the lines since the last call, unless the disk is full."""
        if not self.journal.is_blocked:
            try:
                self.journal.add_order()
            except OSError as error:
                self._blocked(error)

    def _deliver(self, data: bytes = b"") -> None:
        """Deliver newly completed journal lines: first to the clients, then to the ledger.

        No frame may be sent to any client before all clients have these lines.

        Args:
            data: the bytes just written to the journal.
        """
        journal = self.journal
        part = journal.last
        output = part.output
        if journal.number != self._part_number:  # all lines of the previous part have been delivered
            self._part_number, self._delivered_end = journal.number, 0
            self._disconnect_slowest()
        start, end, size = self._delivered_end, output.end, output.size
        if end == start:
            return
        self._delivered_end = end
        # The file ends with `data`. If a line began before `data`, only the file has its beginning.
        chunk = (data if end == size else data[: end - start]) if size - len(data) == start else None
        for client in self.clients:
            client.on_output(chunk, start)
        self._news_line = line = self.next_line
        self.next_line = part.info.first + output.count  # what journal.next returns, which takes longer
        if chunk is not None and self.next_line == line + 1 and chunk.startswith(PASSED_OVER):
            return
        for block in (chunk,) if chunk is not None else blocks(output.descriptor, start, end):
            for message in _decoder.feed(block):
                try:
                    self._received_mark(message)
                except Exception as error:
                    self._folder.log_error(error, session=self.id)
        if self.ledger.is_full:
            self._read()

    def _received_mark(self, message: Any) -> None:
        answer = self.ledger.received(message)
        if is_missed(message):
            self._folder.log("not-understood", session=self.id)
        if answer is not None:
            with suppress(OSError):  # if the disk is full, the CLI waits for an answer until its timeout
                self._write(answer)
        match message:
            case InitMessage():
                self._model, self._mode = message.model or self._model, message.permissionMode or self._mode
                if message.session_id and len(message.session_id) <= LONGEST_ID:
                    self.record.cli_session_id = message.session_id
            case ResultMessage():
                self._turn_line = self._news_line
            case StatusMessage():
                self._mode = message.permissionMode or self._mode
            case ControlResponse() if message.payload.keys() == {"model"}:  # the answer to set_model
                self._model = str(message.payload["model"])
            case _:
                pass
        if self._cost is not None:
            self._cost.received(message)

    def _cost_reached(self, spent: float) -> None:
        self._folder.log("limit-reached", session=self.id, limit="cost_usd", value=spent)
        self._send_all(Limited("cost_usd", spent, f"the session has cost ${spent:.2f}: the turn is interrupted"))

    def _blocked(self, error: OSError) -> None:
        if self._retry is None:
            self._folder.log("journal-blocked", session=self.id, error=error.strerror)
            self._send_all(Blocked(f"the journal cannot be written: {error.strerror}"))
        self._read()
        self._retry = self._loop.call_later(RETRY_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._received(b"")
        self.write_order()
        if not self.journal.is_blocked:
            self._retry = None
            self._send_all(Blocked(""))
            self._read()

    def _disconnect_slowest(self) -> None:
        if self.journal.held_by_readers:
            held = [client.part_number for client in self.clients if client.part_number is not None]
            for client in self.clients:
                if client.part_number == min(held, default=None):
                    client.disconnect_slow("the client reads so slowly that the journal is above twice its budget")

    def _on_stderr(self, child: Child) -> None:
        with suppress(BlockingIOError):
            data = os.read(child.stderr, CHUNK_BYTES)
            if not data:
                self._loop.remove_reader(child.stderr)
                return
            self._stderr = (self._stderr + data)[-TAIL_BYTES:]
            with suppress(OSError):  # on a full disk, lose standard error rather than output lines
                self.journal.last.add_stderr(data)
            self._send_all(Stderr(data.decode(errors="replace")))

    def _on_exit(self, child: Child) -> None:
        """Handle the CLI's exit: read the rest of its pipes, without waiting for end of file. A process that the CLI
        started may still hold the pipes open.
        """
        if child is not self._child:  # already closed
            return
        self._loop.remove_reader(child.pidfd)
        self._drain(child)
        if self.journal.is_blocked and not child.is_killed:  # read the rest once the disk has room
            self._loop.call_later(RETRY_SECONDS, self._on_exit, child)
            return
        self._on_stderr(child)
        self._let_go(child)
        self._end(child.poll())

    def _drain(self, child: Child) -> None:
        with suppress(BlockingIOError):
            for _ in range(MAX_PIPE_BYTES // CHUNK_BYTES):
                if child is not self._child or child.stdout is None or self.journal.is_blocked:
                    return
                data = os.read(child.stdout, CHUNK_BYTES)
                if not data:
                    return
                self._received(data)

    def _end(self, code: int | None) -> None:
        """End an unfinished last line in the journal, and send ``supervisor_ended`` to the clients."""
        part = self.journal.last
        dropped = self.journal.give_up()
        if dropped:  # the disk is full, but a client stopped the session anyway
            self._folder.log("output-dropped", session=self.id, bytes=dropped)
        with suppress(OSError):
            part.end_process(code)
        self._deliver()
        ended = self.ledger.process_ended(code)
        calls: list[str] = []
        if ended.unfinished:
            with suppress(OSError, LookupError):
                calls = review(self.journal, max(self._turn_line, self.journal.first))[0].calls
        ended = msgspec.structs.replace(ended, calls=calls, stderr=self._stderr.decode(errors="replace"))
        self.record.ended = ended
        for client in self.clients:
            client.send_frame(ended, behind=self.delivered_position)
        self._ended(self)

    def _let_go(self, child: Child) -> None:
        for descriptor in (child.stdout, child.stderr, child.pidfd):
            if descriptor is not None:
                self._loop.remove_reader(descriptor)
        if self._inlet is not None:
            self._inlet.close()
        if self._cost is not None:
            self._cost.close()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._source = None
        self._child = self._inlet = None
        child.close()
        self._drained()

    def stop(self, grace: float) -> None:
        """Stop the CLI: close its input, then send SIGTERM, then SIGKILL, ``grace`` seconds apart."""
        if self._child is not None and self._inlet is not None:
            self._inlet.end()
            self._child.insist(grace)

    def close(self) -> None:
        """Kill a running CLI, disconnect all clients, and close the journal. A second call does nothing."""
        if self._child is not None:
            self._let_go(self._child)
        for client in self.clients:
            client.close()
        self.journal.close()

    # --- the CLI's input

    def _write(self, line: bytes) -> None:
        """Write a line to the journal, then send it to the CLI.

        Raises:
            OSError: the journal cannot be written. Nothing is sent.
        """
        if self._inlet is not None and not self._inlet.ends:
            self.journal.add_input(line)
            self._inlet.write(line)

    def _drained(self) -> None:
        if self.driver is not None:
            self.driver.read_on()

    def waits_for(self, client: SessionClient) -> bool:
        """Return True if the supervisor must not read from this client now, because its lines fill the CLI's input."""
        return client is self.driver and self._inlet is not None and self._inlet.is_behind

    def sent(self, client: SessionClient, number: int, line: bytes) -> None:
        """Handle a client's line: write it to the CLI or refuse it, and send :class:`Accepted` or :class:`Refused`.

        Args:
            number: the 1-based number of the line in the client's connection.
        """
        taken = self.ledger.look_at(line, is_driver=client is self.driver)
        reason = taken.reason
        if taken.verdict is Verdict.END_INPUT and self._inlet is not None:
            self._inlet.end()
        elif taken.verdict is Verdict.WRITE:
            reason = self._take(taken, line)
        client.send_frame(Refused(number, reason) if reason else Accepted(number))

    def _take(self, taken: Taken, line: bytes) -> str:
        """Write a line from the driver to the CLI. Return the reason if the session refuses the line, else ""."""
        if self._inlet is None:
            return "the CLI has ended; resume the session first"
        if self._inlet.ends:
            return "the CLI takes no more input"
        if self._cost is not None and isinstance(taken.message, UserMessage) and self._cost.reason:
            return self._cost.reason
        try:
            self._write(line)
        except OSError as error:
            return f"the journal cannot be written: {error.strerror}"
        was_full = self.ledger.is_full
        self.ledger.written(taken.message)
        if was_full:
            self._read()
        return ""

    # --- clients

    def attached(self, *, after: int, drives: bool) -> Attached:
        """Return the answer to a client that attaches after the line ``after``."""
        ledger = self.ledger
        return Attached(
            id=self.id,
            epoch=self.epoch,
            after=after,
            line=self.next_line - 1,
            role="driver" if drives else "viewer",
            driver=drives or self.driver is not None,
            life=self.life,
            turn=ledger.protocol.run.turn,
            subagents=ledger.protocol.run.background.subagents.strings(),
            open=[msgspec.Raw(encode(request)[:-1]) for request in ledger.open],
            settled=ledger.last_settled,
            owed=ledger.owed,
            model=self._model,
            permission_mode=self._mode,
            initialized=NOTHING if ledger.initialized is None else msgspec.Raw(ledger.initialized),
            handshakes=ledger.handshakes,
            ended=None if self.runs else self.record.ended,
            started=self.record.started,
        )

    def add(self, client: SessionClient, *, drives: Serves | None) -> None:
        """Add a client. Unless ``drives`` is None, it becomes the driver with these hooks and MCP servers."""
        self.clients += (client,)
        if drives is None:
            return
        old, self.driver = self.driver, client
        for other in self.clients[:-1]:
            other.send_frame(Driver("viewer", driver=True))
        if old is not None:
            old.read_on()
        self._serve(drives)

    def remove(self, client: SessionClient) -> None:
        """Remove a client. If it was the driver, the session has no driver afterwards."""
        self.clients = tuple(other for other in self.clients if other is not client)
        if client is self.driver:
            self.driver = None
            self._serve(None)
            self._send_all(Driver("viewer", driver=False))
            self._folder.log("driver-left", session=self.id)

    def _serve(self, serves: Serves | None) -> None:
        for line in self.ledger.drive(serves):
            if self._child is not None:
                with suppress(OSError):
                    self._write(line)
        self._read()

    def _send_all(self, frame: Any) -> None:
        for client in self.clients:
            client.send_frame(frame)
