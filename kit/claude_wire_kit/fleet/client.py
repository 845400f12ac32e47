# pyright: basic, reportMissingImports=false
# These files are type-checked without Ray.
"""The client of a fleet, which runs sessions on a Ray cluster.

Ray chooses each session's node, transports the bytes, and reports which actors died.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import ray
from anyio import create_task_group, sleep
from anyio.to_thread import run_sync
from ray.exceptions import RayError
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from claude_wire.errors import HandleError
from claude_wire.support import move_on_after, require_int, require_seconds, running_trio
from claude_wire_kit.fleet.node import BEAT_SECONDS, CHUNK_BYTES, START_SECONDS, Node
from claude_wire_kit.supervisor.attach import Supervisor
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import Create, Cursor, Listed, Resume

if TYPE_CHECKING:
    from claude_wire.streams import Chunks
    from claude_wire_kit.supervisor.frames import Command

#: The memory in bytes that a session's CLI needs. Ray chooses a node with this much free memory.
SESSION_BYTES = 200_000_000
#: A node that sends nothing for this many seconds counts as lost, even if Ray has not reported its loss.
LOST_SECONDS = 3 * BEAT_SECONDS
#: When this many relayed items (each at most ``CHUNK_BYTES``) are waiting for a client, the relay stops reading.
MAX_ITEMS = 16
#: Maximum number of lost nodes to remember until :meth:`Fleet.nodes` reports them.
MAX_UNTOLD = 256
#: Maximum number of calls that an actor runs at the same time. A supervisor's clients (at most 1,024) need fewer.
MAX_CALLS = 4096
#: How many seconds Ray has to find a node with enough memory for a session.
ROOM_SECONDS = 20.0


class NodeLostError(SupervisorError, ConnectionError):
    """A node of the fleet, or the actor on it, died together with its CLIs.

    The sessions' journals are on that node's disk. When the node is back, :meth:`Fleet.resume` can resume the sessions.

    Attributes:
        node: the node's id in Ray.
        sessions: the last known position in each of the node's sessions.
    """

    def __init__(self, node: str, sessions: list[Cursor], why: str) -> None:
        SupervisorError.__init__(self, "lost", f"the node {node} is lost with its {len(sessions)} sessions: {why}")
        self.node: str = node
        self.sessions: list[Cursor] = sessions


class _Node:
    def __init__(self, id: str, actor: Any) -> None:
        self.id = id
        self.actor = actor
        self.sessions: dict[str, Cursor] = {}
        self.why_lost = ""

    @property
    def error(self) -> NodeLostError:
        return NodeLostError(self.id, list(self.sessions.values()), self.why_lost)


class Fleet(Supervisor):
    """All of a cluster's supervisors, used like one :class:`~claude_wire_kit.supervisor.attach.Supervisor`.

    An actor on each node runs a supervisor. Call ``ray.init()`` first. All programs that use the same name share the
    actors. The actors keep running when the programs exit. A command goes to the node that has the session. For a new
    session, Ray chooses a node with enough free memory.

    Args:
        name: the name of the fleet.
        folder: the state folder on each node. The default is the node's ``$CLAUDE_WIRE_SUPERVISOR``, or its user's
            folder.
        session_bytes: how much memory Ray reserves for each session while its CLI runs.
        timeout: the same as for :func:`~claude_wire_kit.supervisor.attach.connect`.

    Raises:
        NodeLostError: raised by any command whose node is lost.
        SupervisorError: raised for the same reasons as by a Supervisor.
    """

    def __init__(
        self,
        name: str = "claude-wire",
        *,
        folder: str | None = None,
        session_bytes: int = SESSION_BYTES,
        timeout: float = START_SECONDS + LOST_SECONDS,
    ) -> None:
        require_seconds("timeout", timeout, or_none=False)
        require_int("session_bytes", session_bytes, 1)
        self.folder = folder
        self._name = name
        self._bytes = session_bytes
        self._timeout = timeout
        self._nodes: dict[str, _Node] = {}
        self._untold: deque[NodeLostError] = deque(maxlen=MAX_UNTOLD)
        # The node for all commands. If None, each command goes to the node of its session.
        self._node: _Node | None = None

    def __repr__(self) -> str:
        return f"<Fleet: {self._name!r}>" if self._node is None else f"<Fleet: {self._name!r}, node {self._node.id!r}>"

    # --- nodes

    async def deploy(self) -> list[str]:
        """Start an actor with a supervisor on each live node, and return the Ray ids of these nodes.

        Call this method after adding nodes, or after nodes come back. The first command also calls it, and so does
        starting a session on a node without an actor.

        Raises:
            NodeLostError, SupervisorError: as :meth:`nodes`.
        """
        await run_sync(self._deploy)
        return list(await self.nodes())

    def _deploy(self) -> None:
        options = {"lifetime": "detached", "namespace": "claude-wire", "get_if_exists": True, "num_cpus": 0}
        for id in [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["NodeID"] not in self._nodes]:
            here = NodeAffinitySchedulingStrategy(id, soft=False)
            named = {"name": f"{self._name}:{id}", "max_concurrency": MAX_CALLS, "scheduling_strategy": here}
            self._nodes[id] = _Node(id, ray.remote(Node).options(**options, **named).remote(self.folder, id))

    def supervisor(self, node: str) -> Supervisor:
        """Return the supervisor of one node. It carries out every command, and starts new sessions on that node.

        Args:
            node: the node's id in Ray.

        Raises:
            SupervisorError: the fleet has no actor on that node.
        """
        if node not in self._nodes:
            raise SupervisorError("unknown", f"the fleet has no actor on a node {node}; use deploy() to start it")
        one = copy.copy(self)
        one._node = self._nodes[node]
        return one

    async def nodes(self) -> dict[str, Listed]:
        """Return the sessions of each node, by the node's Ray id.

        Raises:
            NodeLostError: a node is lost. Raised once for each node; later calls return the other nodes.
            SupervisorError: a supervisor does not answer, or cannot be started.
        """
        if not self._nodes:
            await run_sync(self._deploy)
        found: dict[str, Listed] = {}
        refused: list[SupervisorError] = []

        async def ask(node: _Node) -> None:
            try:
                found[node.id] = listed = await self.supervisor(node.id).list()
                node.sessions = {one.id: Cursor(one.id, one.epoch, one.line) for one in listed.sessions}
            except SupervisorError as error:
                refused.append(error)

        async with create_task_group() as group:
            for node in list(self._nodes.values()):
                group.start_soon(ask, node)
        if self._untold:
            raise self._untold.popleft()
        if refused:
            raise refused[0]
        return found

    async def list(self) -> Listed:
        """List the sessions of all nodes. Raises the errors of :meth:`nodes`."""
        if self._node is not None:
            return await super().list()
        each = list((await self.nodes()).values())
        return msgspec.structs.replace(each[0], sessions=[session for listed in each for session in listed.sessions])

    async def watch(self) -> NoReturn:
        """Call :meth:`nodes` at intervals, so :class:`NodeLostError` has recent positions when a node is lost.

        Raises:
            NodeLostError, SupervisorError: as :meth:`nodes`.
        """
        while True:
            await self.nodes()
            await sleep(BEAT_SECONDS)

    async def end(self) -> None:
        """Stop all supervisors, their sessions and the actors.

        Raises:
            NodeLostError, SupervisorError: as :meth:`nodes`.
        """
        for id in await self.nodes():
            await self.supervisor(id).stop(None)
            ray.kill(self._nodes.pop(id).actor)

    # --- for connections

    async def wait(self, node: _Node, what: Any, seconds: float = LOST_SECONDS) -> Any:
        """Wait for the result of an actor's method.

        Raises:
            NodeLostError: the actor died, or does not answer in time.
        """
        error: Exception | None = None
        with move_on_after(seconds):
            try:
                return await what
            except RayError as failure:
                error = failure
        if not node.why_lost:
            node.why_lost = f"it was silent for {seconds:g} s" if error is None else str(error).partition("\n")[0]
            self._untold.append(node.error)
            if self._nodes.get(node.id) is node:
                del self._nodes[node.id]
        raise node.error from error

    def _transport(self, command: Command) -> _RayTransport:
        return _RayTransport(self, command)

    async def relay(self, command: Command, client: str) -> tuple[_Node, bytes, Any]:
        """Start a relay for a command. Return the node, the first item, and an iterator over the other items.

        Raises:
            NodeLostError: the node of the command is lost.
            SupervisorError: no node has the session, or no node has enough memory left for a new session.
        """
        memory = self._bytes if isinstance(command, (Create, Resume)) else 0
        while True:
            node = self._node or (await self._placed() if isinstance(command, Create) else await self._found(command))
            if node is None:
                continue
            relay = node.actor.relay.options(num_returns="streaming", _generator_backpressure_num_objects=MAX_ITEMS)
            items = relay.remote(client, ray.get_runtime_context().get_node_id(), memory)
            try:
                first = await self.wait(node, _next(items), START_SECONDS + LOST_SECONDS)
            except BaseException:
                ray.cancel(items)
                raise
            if first is not None:
                return node, first, items
            if self._node is not None or not isinstance(command, Create):
                raise SupervisorError(
                    "limit", f"the node {node.id} has no {memory:,} bytes of memory left for a session"
                )

    async def _found(self, command: Command) -> _Node:
        """Return the node that has the session named in a command."""
        keys = [key for key in ("attach", "resume", "stop", "remove") if getattr(command, key, None) is not None]
        if not keys:
            raise SupervisorError("command", "this command works on one node: call supervisor() to get its supervisor")
        id = getattr(command, keys[0])
        if not any(id in node.sessions for node in self._nodes.values()):
            await self.nodes()
        for node in self._nodes.values():
            if id in node.sessions:
                return node
        raise SupervisorError("unknown", f"no node of the fleet has the session {id!r}")

    async def _placed(self) -> _Node | None:
        """Return the node that Ray chooses for a session, or None if the node has disappeared since then."""
        id = await run_sync(self._place)
        if id not in self._nodes:
            await self.deploy()
        return self._nodes.get(id)

    def _place(self) -> str:
        # This reservation only finds a node. The actor there reserves the memory again, because Ray frees memory when
        # the process that reserved it exits.
        group = placement_group([{"memory": self._bytes}])
        try:
            if not group.wait(ROOM_SECONDS):
                what = f"no node has had {self._bytes:,} bytes of memory left within {ROOM_SECONDS:g} s"
                raise SupervisorError("limit", what)
            (id,) = placement_group_table(group)["bundles_to_node_id"].values()
            return str(id)
        finally:
            remove_placement_group(group)


async def _next(items: Any) -> Any:
    return await (await items.__anext__())


class _Chunks:
    """The items of a relay. If a receive() is cancelled, the next receive() returns its item."""

    final = (OSError,)

    def __init__(self, transport: _RayTransport) -> None:
        self._transport = transport
        self._coming: asyncio.Task[bytes] | None = None
        self._closed = False

    async def receive(self) -> bytes:
        if self._closed:
            return b""
        if self._coming is None:
            self._coming = asyncio.ensure_future(self._transport.receive())
        await asyncio.wait({self._coming})
        if self._closed:
            return b""
        coming, self._coming = self._coming, None
        return coming.result()

    async def aclose(self) -> None:
        self._closed = True
        if self._coming is not None and not self._coming.cancel() and not self._coming.cancelled():
            self._coming.exception()  # otherwise asyncio logs that the exception was never retrieved


class _RayTransport:
    """A :class:`~claude_wire_kit.supervisor.transport.Transport` that reaches a supervisor through an actor."""

    def __init__(self, fleet: Fleet, command: Command) -> None:
        self._fleet = fleet
        self._command = command
        self._client = secrets.token_hex(8)
        self._node: _Node | None = None
        self._items: Any = None
        self._answered = False
        self._first = b""
        self.chunks: Chunks = _Chunks(self)

    async def open(self) -> None:
        if running_trio():
            raise HandleError("Ray needs asyncio: a fleet has no clients in trio")
        self._node, self._first, self._items = await self._fleet.relay(self._command, self._client)

    async def receive(self) -> bytes:
        """Return the next bytes from the relay, or ``b""`` when the relay has ended.

        Raises:
            NodeLostError: the node is lost.
        """
        assert self._node is not None
        data, self._first = self._first, b""
        while not data:
            try:
                data = await self._fleet.wait(self._node, _next(self._items))
            except StopAsyncIteration:
                return b""
        if not self._answered:
            self._answered = True
            with suppress(msgspec.DecodeError):  # the answer is not about a session, or is incomplete
                session = msgspec.json.decode(data.partition(b"\n")[0], type=Cursor)
                self._node.sessions[session.id] = session
        return data

    async def send(self, data: bytes) -> None:
        for start in range(0, len(data), CHUNK_BYTES):
            piece, room = data[start : start + CHUNK_BYTES], False
            while room is False:
                if self._node is None or self._items is None:
                    raise BrokenPipeError("the connection with the supervisor is closed")
                room = await self._fleet.wait(self._node, self._node.actor.write.remote(self._client, piece))
                piece = b""
            if room is None:
                raise BrokenPipeError("the connection with the supervisor is lost")

    async def why_ended(self) -> str:
        if self._node is not None and self._node.why_lost:
            raise self._node.error
        return ""

    def drop(self) -> None:
        items, self._items = self._items, None
        if items is not None and self._node is not None and ray.is_initialized():
            self._node.actor.close.remote(self._client)

    async def aclose(self) -> None:
        await self.chunks.aclose()
        self.drop()
