# pyright: basic, reportMissingImports=false
# These files are type-checked without Ray.
"""The actor on a node. It starts a supervisor, and relays bytes between the supervisor and clients in the cluster.

The supervisor is this module, run as a program: ``python -m claude_wire_kit.fleet.node FOLDER``. The program exits
when its standard input is closed. It is a separate process, because the kernel kills a CLI when the thread that started
the CLI exits, and Ray runs an actor in changing threads.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import closing, suppress
from typing import Any

from claude_wire_kit.supervisor.attach import connect
from claude_wire_kit.supervisor.daemon import Daemon
from claude_wire_kit.supervisor.disk.folder import StateFolder, default_folder
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import Failed, Life, line_of

#: Maximum number of bytes in one relayed item. Ray does not need its object store for objects below 100 kB.
CHUNK_BYTES = 64 * 1024
#: After this many seconds without data, a relay sends an empty item. The actor looks for ended sessions equally often.
BEAT_SECONDS = 5.0
#: How many seconds a new supervisor has to start.
START_SECONDS = 30.0


class Node:
    """The Ray actor on a node.

    Args:
        folder: the supervisor's state folder. The default is the folder of the node's user.
        node: the node's id.
    """

    def __init__(self, folder: str | None, node: str) -> None:
        self._folder = os.path.abspath(folder or default_folder())
        self._node = node
        self._starting = asyncio.Lock()
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._clients: dict[str, tuple[str, asyncio.StreamWriter]] = {}
        # The memory that Ray reserved here, one entry for each running CLI.
        self._reserved: list[Any] = []
        self._looking: asyncio.Task[None] = asyncio.ensure_future(self._look())

    async def relay(self, client: str, node: str, memory: int) -> AsyncGenerator[bytes | None, None]:
        """Connect to the supervisor, and yield the bytes that it sends.

        The first item is ``b""`` once the connection is open, or None if the node has too little memory. After
        :data:`BEAT_SECONDS` without data, the relay also yields ``b""``. These items let Ray notice a lost client,
        and let the client notice a lost node.

        Args:
            client: a name for the connection, for :meth:`write` and :meth:`close`.
            node: the id of the node where the client runs. If that node is lost, the relay must end by itself, because
                Ray does not end it.
            memory: how many bytes to reserve for the session that the client's command starts. 0 for other commands.
        """
        reserved: Any = None
        data = b""
        try:
            if memory and (reserved := await self._room(memory)) is None:
                yield None
                return
            await self._serve()
            reader, writer = await asyncio.open_unix_connection(f"{self._folder}/socket")
            self._clients[client] = node, writer
            while True:
                yield data
                try:
                    data = await asyncio.wait_for(reader.read(CHUNK_BYTES), BEAT_SECONDS)
                except asyncio.TimeoutError:
                    data = b""
                    continue
                if not data:
                    return
                if reserved is not None:  # the command was answered
                    self._reserved.append(reserved)
                    reserved = None
        except (SupervisorError, OSError) as error:
            yield line_of(Failed(error=getattr(error, "error", "system"), message=str(error)))
        finally:
            if client in self._clients:
                self._clients.pop(client)[1].close()
            if reserved is not None:
                asyncio.get_running_loop().run_in_executor(None, _release, reserved)

    async def write(self, client: str, data: bytes) -> bool | None:
        """Send at most :data:`CHUNK_BYTES` bytes to the supervisor.

        Returns:
            True if more can be sent. False while the supervisor is not reading: call again with no bytes to wait.
            None if there is no connection.
        """
        with suppress(asyncio.TimeoutError):
            try:
                self._clients[client][1].write(data)
                await asyncio.wait_for(self._clients[client][1].drain(), BEAT_SECONDS)
                return True
            except (KeyError, ConnectionError):
                return None
        return False

    async def close(self, client: str) -> None:
        """End a client's relay, unless it has already ended."""
        if client in self._clients:
            self._clients[client][1].close()

    async def _serve(self) -> None:
        """Start a supervisor for the folder, unless one is already running.

        Raises:
            SupervisorError, OSError: the supervisor cannot be started, or has another version.
        """
        async with self._starting:
            try:
                await connect(self._folder).list()
            except SupervisorError as error:
                if error.error != "absent":
                    raise
                starting = asyncio.get_running_loop().run_in_executor(None, self._start)
                try:
                    await asyncio.shield(starting)
                except asyncio.CancelledError:
                    await asyncio.wait({starting})  # otherwise the next client would start a second supervisor
                    raise
                await connect(self._folder).list()

    def _start(self) -> None:
        self._supervisor = subprocess.Popen(
            [sys.executable, "-m", __name__, self._folder],
            cwd="/",
            stdin=subprocess.PIPE,  # the supervisor exits when this process exits, because the kernel closes the pipe
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._supervisor.stdout is not None
        select.select([self._supervisor.stdout], [], [], START_SECONDS)

    # --- memory

    async def _room(self, memory: int) -> Any:
        """Call :meth:`_reserve` in a thread. If the caller is cancelled during the call, release the memory."""
        loop = asyncio.get_running_loop()

        def release(done: asyncio.Future[Any]) -> None:
            if done.exception() is None and done.result() is not None:
                loop.run_in_executor(None, _release, done.result())

        reserving = loop.run_in_executor(None, self._reserve, memory)
        try:
            return await asyncio.shield(reserving)
        except asyncio.CancelledError:
            reserving.add_done_callback(release)
            raise

    def _reserve(self, memory: int) -> Any:
        """Reserve memory on this node until it is released or this actor ends. Return None if there is too little."""
        from ray.util.placement_group import placement_group

        group = placement_group([{"memory": memory}], bundle_label_selector=[{"ray.io/node-id": self._node}])
        if group.wait(BEAT_SECONDS):
            return group
        _release(group)
        return None

    async def _look(self) -> None:
        """End the relays of clients whose node is lost, and release the memory of exited CLIs."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                await self._look_once()
            except Exception as error:  # a Ray error: the head node may be unreachable for a while
                logging.getLogger("claude_wire").warning(
                    "the actor of a node cannot find its supervisor: %s", type(error).__name__
                )

    async def _look_once(self) -> None:
        living = await asyncio.to_thread(_living) if self._clients else set[str]()
        for node, writer in list(self._clients.values()):
            if node not in living:
                writer.close()
        listed = (await connect(self._folder).list()).sessions if self._reserved else []
        running = sum(one.life not in (Life.ENDED, Life.LOST) for one in listed)
        while len(self._reserved) > running:
            await asyncio.to_thread(_release, self._reserved.pop())


def _living() -> set[str]:
    import ray

    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def _release(group: Any) -> None:
    from ray.util.placement_group import remove_placement_group

    remove_placement_group(group)


async def _supervise(folder: StateFolder) -> None:
    serving = asyncio.ensure_future(Daemon(folder).run(lambda: os.write(1, b"\n")))
    asyncio.get_running_loop().add_reader(0, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


def main() -> None:
    """Run a supervisor for a state folder, unless one is running."""
    from claude_wire_kit.supervisor.loop import SupervisorLoop  # only on Linux; clients may run on any system

    folder = StateFolder(sys.argv[1])
    with suppress(SupervisorError):
        folder.take()
        with closing(SupervisorLoop()) as loop:
            loop.run_until_complete(_supervise(folder))
    folder.release()


if __name__ == "__main__":
    main()
