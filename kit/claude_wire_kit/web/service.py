"""Carry out HTTP clients' requests with commands to the supervisor: list, prompt, answer, interrupt, …

The service keeps no state except the sessions' feeds, and it can create them again. So you can restart the service at
any time.
"""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.lowlevel

from claude_wire.codec import decode, encode
from claude_wire.errors import AnswerError
from claude_wire.messages import (
    CancelAsyncMessageRequest,
    CanUseToolRequest,
    ControlError,
    ControlRequest,
    ControlResponse,
    InterruptRequest,
    SetModelRequest,
    SetPermissionModeRequest,
    TextBlock,
    UserMessage,
)
from claude_wire.support import fields_of, items_of, short_id
from claude_wire_kit.events.bridge import Bridge
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import Accepted, Attach, Cursor, Ended, Refused
from claude_wire_kit.web.events import Batch, EventId, Place, Source, last_of
from claude_wire_kit.web.feed import BEAT_SECONDS, MAX_OLDER, TAIL_BYTES, Feed
from claude_wire_kit.web.files import find_files
from claude_wire_kit.web.lines import Lines
from claude_wire_kit.web.past import list_past, past_events
from claude_wire_kit.web.search import Search

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from anyio.abc import TaskGroup

    from claude_wire.messages import ImageBlock
    from claude_wire_kit.supervisor.attach import Supervisor
    from claude_wire_kit.supervisor.frames import SessionFrame, SessionInfo
    from claude_wire_kit.web.config import Config, Profile
    from claude_wire_kit.web.events import Event
    from claude_wire_kit.web.past import PastId, PastPage, PastSession

A = TypeVar("A")

#: Maximum number of feeds without a connection. Above this number, the service closes the feed unused for the
#: longest time.
MAX_IDLE_FEEDS = 16
#: Maximum size in bytes of all feeds' events. Each feed has an equal share, and always keeps its newest event.
MAX_KEPT_IN_ALL = 64 * 1024 * 1024
#: Maximum number of concurrent searches for files or for sessions on disk.
MAX_SEARCHES = 2
#: The supervisor must acknowledge a line within this many seconds.
TAKE_SECONDS = 10.0


class Service:
    """Carries out all HTTP clients' requests.

    Args:
        supervisor: the supervisor that runs the sessions.
        config: which sessions clients can start.
    """

    def __init__(self, supervisor: Supervisor, config: Config) -> None:
        self._supervisor = supervisor
        self._config = config
        # The feeds that new connections can join; the most recently used is last. A session may have several feeds:
        # with and without details, and with different first lines.
        self._feeds: list[Feed] = []
        # All feeds still reading a session, including feeds that new connections cannot join.
        self._running: set[Feed] = set()
        self._raw: set[Lines] = set()
        # Session -> the lock to hold while attached as its driver, because a session has only one driver.
        self._driving: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._searching = anyio.Semaphore(MAX_SEARCHES)
        self._reading_older = anyio.Semaphore(MAX_OLDER)
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Run the feeds in the background while the context is entered."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._beat)
            yield
            self._tasks.cancel_scope.cancel()

    # --- sessions

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """Name -> profile."""
        return self._config.profiles

    async def sessions(self) -> list[SessionInfo]:
        """Return all of the supervisor's sessions. Raises SupervisorError."""
        return (await self._supervisor.list()).sessions

    async def session(self, id: str) -> SessionInfo:
        """Return one session.

        Raises:
            SupervisorError: no session has this id, or the supervisor does not answer.
        """
        for info in await self.sessions():
            if info.id == id:
                return info
        raise SupervisorError("unknown", "the session does not exist")

    async def past(self) -> list[PastSession]:
        """Return the sessions that the CLI keeps on disk."""
        async with self._searching:
            return await anyio.to_thread.run_sync(list_past, self._config)

    async def past_events(self, id: str, before: PastId | None, count: int) -> PastPage:
        """Return events of a session that the CLI keeps on disk; see :func:`.past.past_events`.

        Raises:
            SupervisorError: no session has this id, or its file cannot be read.
        """
        try:
            async with self._searching:
                page = await anyio.to_thread.run_sync(past_events, self._config, id, before, count)
        except (OSError, ValueError) as error:
            raise SupervisorError("unreadable", f"the session cannot be read: {error}") from error
        if page is None:
            raise SupervisorError("unknown", "the session does not exist")
        return page

    async def go_on(self, id: str) -> SessionInfo:
        """Start a CLI that resumes a session on disk, in a new supervisor session. Raises the same errors as
        :meth:`create`.
        """
        for one in await self.past():
            if one.id == id:
                chosen = self._profile(one.profile)
                return await self._supervisor.start(chosen.spec(chosen.folder(one.cwd), one.title, one.id))
        raise SupervisorError("unknown", "the session does not exist")

    async def create(
        self, profile: str, folder: str, name: str | None, chosen: Mapping[str, Any] | None = None
    ) -> SessionInfo:
        """Start a CLI in a new session.

        Args:
            profile: the name of the profile.
            folder: see :meth:`.config.Profile.folder`.
            name: the session's name in lists.
            chosen: field of ``ClaudeOptions`` -> value that the client chose.

        Raises:
            ChoiceError: the profile does not offer a chosen value.
            FolderError: the folder is not below the profile's roots.
            SupervisorError, CLINotFoundError: the CLI cannot be started.
        """
        named = self._profile(profile)
        named.check(chosen or {})
        return await self._supervisor.start(named.spec(named.folder(folder), name, chosen=chosen))

    async def resume(self, id: str, profile: str | None) -> SessionInfo:
        """Start a CLI that resumes an ended session.

        Args:
            profile: the profile that defines the CLI's environment; None for the previous environment. A restarted
                supervisor does not have it.

        Raises:
            FolderError: the session's folder is not below the profile's roots.
            SupervisorError, CLINotFoundError: the CLI cannot be started.
        """
        info = await self.session(id)
        env = None
        if profile is not None:
            chosen = self._profile(profile)
            env = chosen.spec(chosen.folder(info.cwd), None).env
        return await self._supervisor.restart(id, env=env)

    async def files(self, id: str, sought: str) -> list[str]:
        """Find files below a session's folder; see :func:`find_files`. Raises SupervisorError."""
        info = await self.session(id)
        async with self._searching:
            return await anyio.to_thread.run_sync(find_files, info.cwd, sought)

    async def search(self, sought: str) -> Search:
        """Search the names, folders, prompts and answers of all sessions. Raises SupervisorError."""
        search = Search(self._supervisor, sought)
        async with self._searching:
            await search.run(await self.sessions())
        return search

    async def rename(self, id: str, name: str | None) -> None:
        """Change a session's name; None removes it. Raises SupervisorError."""
        await self._supervisor.rename(id, name)

    async def stop(self, id: str) -> None:
        """Stop a session's CLI. Raises SupervisorError."""
        await self._supervisor.stop((await self.session(id)).id)

    async def remove(self, id: str) -> None:
        """Remove an ended session and its journal. Raises SupervisorError."""
        await self._supervisor.remove(id)

    def _profile(self, name: str) -> Profile:
        found = self._config.profiles.get(name)
        if found is None:
            raise SupervisorError("profile", "the profile does not exist")
        return found

    # --- to a session

    async def prompt(self, id: str, text: str, given: str | None, images: Sequence[ImageBlock] = ()) -> str:
        """Send a prompt, and return its uuid. If an earlier prompt had this uuid, the CLI does not get it again.

        Args:
            given: the uuid; None for a new one.

        Raises:
            SupervisorError: the supervisor refuses the prompt.
        """
        chosen = given or str(uuid.uuid4())
        content: str | list[ImageBlock | TextBlock] = text
        if images:
            content = [*images, *([TextBlock(text)] if text else [])]
        async with self._drive(id) as lines:
            await _send(lines, encode(UserMessage.of(content, uuid=chosen)))
        return chosen

    async def withdraw(self, id: str, uuid: str) -> None:
        """Remove a prompt from the CLI's queue.

        Raises:
            SupervisorError: the prompt is no longer in the queue (``taken``), or the supervisor refuses the request.
        """
        answer = await self._request(id, CancelAsyncMessageRequest(message_uuid=uuid))
        if not answer.get("cancelled"):
            raise SupervisorError("taken", "the prompt is no longer in the queue")

    async def set(self, id: str, model: str | None, mode: str | None) -> None:
        """Set the model or the permission mode.

        Raises:
            SupervisorError: the CLI or the supervisor refuses the request (``refused``).
        """
        if mode is not None:
            await self._request(id, SetPermissionModeRequest(mode=mode))
        if model is not None:
            await self._request(id, SetModelRequest(model=model))

    async def _request(
        self, id: str, request: CancelAsyncMessageRequest | SetModelRequest | SetPermissionModeRequest
    ) -> dict[str, Any]:
        """Send a request, and return the payload of the CLI's answer."""
        request_id = f"claude_wire_serve_{uuid.uuid4()}"
        async with self._drive(id) as lines:
            return await _ask(lines, ControlRequest(request_id=request_id, request=request))

    async def interrupt(self, id: str) -> None:
        """Interrupt the current turn. Raises SupervisorError."""
        request = ControlRequest(request_id=f"claude_wire_serve_{uuid.uuid4()}", request=InterruptRequest())
        async with self._drive(id) as lines:
            await _send(lines, encode(request))

    async def answer(
        self,
        id: str,
        request_id: str | float,
        allow: bool,
        option: int,
        message: str | None,
        answers: dict[str, str] | None = None,
    ) -> None:
        """Answer a permission question.

        Args:
            allow, option, message: see :meth:`~claude_wire_kit.events.Bridge.answer`.
            answers: question -> answer, for the tool ``AskUserQuestion``.

        Raises:
            AnswerError: the question is unknown, or already settled.
            ValueError: the question does not have this option, or the tool did not ask the questions in ``answers``.
            SupervisorError: the supervisor refuses the answer.
        """
        async with self._drive(id) as lines:
            answer = lines.answer
            ui = Bridge()
            asked: CanUseToolRequest | None = None
            for raw in answer.open:
                request = decode(bytes(raw))
                if isinstance(request, ControlRequest) and _shown(request.request_id) == request_id:
                    ui.add(request)
                    asked = request.request if isinstance(request.request, CanUseToolRequest) else asked
            if asked is None:
                raise AnswerError(settled=request_id in map(_shown, answer.settled))
            said: dict[str, Any] = {} if message is None else {"message": message}
            if answers is not None:
                said["updated_input"] = _with_answers(asked, answers)
            await _send(lines, encode(ui.answer(request_id, allow, option, **said)))
        for feed in self._running:
            if feed.session == id:
                feed.settle(request_id)

    @asynccontextmanager
    async def _drive(self, id: str) -> AsyncGenerator[Lines]:
        """Attach to a session as its driver, to send one line. The CLI's questions stay open meanwhile."""
        async with self._driving.setdefault(id, anyio.Lock()):
            info = await self.session(id)
            after = Cursor(info.id, info.epoch, info.line)
            async with Lines(self._supervisor, Attach(attach=id, after=after, role="driver")) as lines:
                yield lines

    # --- from a session

    @asynccontextmanager
    async def feed(
        self, id: str, details: bool = False, *, after: EventId | None = None, is_tail: bool = False
    ) -> AsyncGenerator[Feed]:
        """Join a session's running feed, or start one. Entering waits for the supervisor's answer to ``attach``.

        Args:
            details: whether the events have details.
            after: the id of an event. The feed must begin at the first line named in this id.
            is_tail: accept a running feed with any first line, or start one near the end of the journal.

        Call :meth:`Feed.check` first: it raises an error if the supervisor refused to attach.
        """
        first = 1 if after is None else after.first
        feed = self._find(id, details, first, is_tail)
        if feed is None:
            assert self._tasks is not None
            attach = Attach(attach=id)
            if is_tail:
                attach = Attach(attach=id, tail=TAIL_BYTES)
            elif after is not None and first > 1:
                attach = Attach(attach=id, after=Cursor(id, after.epoch, first - 1))
            feed = Feed(self._supervisor, attach, self._room, details)
            self._tasks.start_soon(self._run, feed)
        self._feeds.append(feed)
        feed.users += 1
        try:
            await feed.answered.wait()
            yield feed
        finally:
            feed.users -= 1
            if not feed.users and feed not in self._feeds:  # a new feed replaced this one
                feed.close()
            self._drop_idle()

    def _find(self, id: str, details: bool, first: int, is_tail: bool) -> Feed | None:
        """Return a feed that a new connection can join. Remove it, and ended feeds like it, from the list."""
        for feed in reversed(self._feeds):
            if feed.session == id and feed.details == details:
                fits = feed.begins == first if first > 1 else feed.is_whole
                if (feed.is_tail or feed.is_level) if is_tail else fits:
                    self._feeds.remove(feed)
                    if feed.error is None and not feed.is_stale:
                        return feed
        return None

    async def older(self, id: str, before: EventId, count: int) -> tuple[Batch, EventId | None]:
        """Return the last ``count`` events before an id, and the id to send for earlier events; None if there are none.

        Raises:
            SupervisorError: the id belongs to another journal, or the supervisor refuses to attach.
        """
        last = before.place.line - (before.place.k == 0)
        events: list[Event] = []
        if last < 1:
            return Batch(), None
        try:
            async with (
                self._reading_older,
                Lines(self._supervisor, Attach(attach=id, tail=TAIL_BYTES, before=last + 1)) as lines,
            ):
                if lines.answer.epoch != before.epoch:
                    raise SupervisorError("epoch", "the id belongs to another journal")
                number, first = lines.answer.after, lines.answer.after + 1
                source = Source(before.epoch, first, before.details)
                while number < last and (received := await lines.receive()):
                    for one in received:
                        if isinstance(one, tuple) and one[0] <= last:
                            number = one[0]
                            events += [event for event in source.add(*one) if event.place < before.place]
                    await anyio.lowlevel.checkpoint()
        except SupervisorError as error:
            if error.error == "gone":
                return Batch(), None
            raise
        found, place = last_of(events, count)
        if first == 1 and (place is None or place == events[0].place):
            return found, None
        return found, EventId(before.epoch, first, place or Place(first, 0), before.details)

    def _room(self) -> int:
        return MAX_KEPT_IN_ALL // max(1, len(self._running))

    async def _run(self, feed: Feed) -> None:
        self._running.add(feed)
        for other in self._running:
            other.trim()
        await feed.run()
        self._running.discard(feed)

    async def _beat(self) -> None:
        """Make all connections send a ``beat`` at intervals. One timer serves all of them."""
        while True:
            await anyio.sleep(BEAT_SECONDS)
            for feed in self._running:
                feed.beat()

    @asynccontextmanager
    async def lines(self, id: str, after: Cursor | None) -> AsyncGenerator[Lines]:
        """Attach to a session as a viewer, to get the lines after a cursor, or all lines.

        Raises:
            SupervisorError: the supervisor refuses to attach.
        """
        async with Lines(self._supervisor, Attach(attach=id, after=after)) as lines:
            self._raw.add(lines)
            try:
                yield lines
            finally:
                self._raw.discard(lines)

    def close(self) -> None:
        """Close all feeds and raw connections, because the service is stopping."""
        for feed in {*self._feeds, *self._running}:
            feed.close()
        for lines in self._raw:
            lines.close()

    def _drop_idle(self) -> None:
        for feed in list(self._feeds):
            if (feed.error is not None or feed.is_stale) and not feed.users:
                self._feeds.remove(feed)
                feed.close()
        idle = [feed for feed in self._feeds if not feed.users]
        for feed in idle[: max(0, len(idle) - MAX_IDLE_FEEDS)]:
            self._feeds.remove(feed)
            feed.close()


async def _ask(lines: Lines, request: ControlRequest) -> dict[str, Any]:
    """Send a request, and return the payload of the CLI's answer.

    Raises:
        SupervisorError: the CLI refuses the request, or for the reasons listed at :func:`_exchange`.
    """

    def answer_in(one: tuple[int, bytes] | SessionFrame) -> ControlResponse | None:
        message = decode(one[1]) if isinstance(one, tuple) and b'"control_response"' in one[1] else None
        return message if isinstance(message, ControlResponse) and message.request_id == request.request_id else None

    answer = await _exchange(lines, encode(request), answer_in, "the CLI has not answered")
    if isinstance(answer.response, ControlError):
        raise SupervisorError("refused", answer.response.error)
    return answer.payload


def _with_answers(asked: CanUseToolRequest, answers: dict[str, str]) -> dict[str, Any]:
    """Return the input of ``AskUserQuestion`` with a person's answers. ``answers`` maps questions to answers."""
    questions = {fields_of(one).get("question") for one in items_of(asked.input.get("questions"))}
    if asked.tool_name != "AskUserQuestion" or not answers.keys() <= questions:
        raise ValueError("the tool has not asked these questions")
    return {**asked.input, "answers": answers}


async def _send(lines: Lines, line: bytes) -> None:
    """Send a line, and wait until the supervisor accepts it. Raises the same errors as :func:`_exchange`."""
    await _exchange(lines, line, lambda one: isinstance(one, Accepted), "the supervisor has not accepted the line")


async def _exchange(
    lines: Lines, line: bytes, answer_in: Callable[[tuple[int, bytes] | SessionFrame], A | None], late: str
) -> A:
    """Send a line, and return the first true result of ``answer_in``, which gets each received line and frame.

    Args:
        late: the beginning of the error after a timeout, such as "the CLI has not answered".

    Raises:
        SupervisorError: the supervisor refuses the line, the CLI exits, the connection ends, or the wait times out.
    """
    if lines.answer.ended is not None:
        raise SupervisorError("ended", "the CLI of the session has ended")
    with anyio.move_on_after(TAKE_SECONDS):
        await lines.send(line)
        while received := await lines.receive():
            for one in received:
                if answer := answer_in(one):
                    return answer
                if isinstance(one, Refused):
                    raise SupervisorError("refused", one.reason)
                if isinstance(one, Ended):
                    raise SupervisorError("ended", "the CLI of the session has ended")
        raise SupervisorError("lost", "the supervisor has ended the connection")
    raise SupervisorError("timeout", f"{late} within {TAKE_SECONDS:g} seconds")


def _shown(id: object) -> object:
    return short_id(id) if isinstance(id, str) else id
