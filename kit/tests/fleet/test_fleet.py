"""A fleet runs on two local Ray nodes. One node is killed, its clients get an error, and the other node continues."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from all_sessions import needed
from children import in_own_process
from folders import ROOT
from pages import blocks, matches
from supervisors import agent

needed("ray")
needed("pyarrow")

#: The memory in bytes of a session, and of a node. A node has room for two sessions.
SESSION, NODE = 100_000_000, 250_000_000
#: Seconds until a client must get the error of a lost node: the time-out of a silent node, and time for a slow machine.
TOLD_SECONDS = 60.0


def in_cluster(folder: str) -> None:
    # Ray sends no usage statistics, and writes only to `folder`, not to the home folder.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", HOME=folder, RAY_TMPDIR=folder)
    os.makedirs(os.path.join(folder, "ray"))
    import ray
    from ray.cluster_utils import Cluster

    # Ray rejects 127.0.0.1, because other machines cannot reach it.
    options = {"num_cpus": 1, "memory": NODE, "object_store_memory": 80_000_000, "node_ip_address": "127.0.0.2"}
    one, two = ({"CLAUDE_WIRE_SUPERVISOR": os.path.join(folder, name)} for name in ("one", "two"))
    cluster = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False, "env_vars": one})
    try:
        second = cluster.add_node(**options, env_vars=two)
        ray.init(address=cluster.address, _node_ip_address="127.0.0.2", log_to_driver=False, configure_logging=False)
        asyncio.run(scenario(lambda: cluster.remove_node(second, allow_graceful=False)))
    finally:
        ray.shutdown()
        cluster.shutdown()


async def scenario(kill_second: Callable[[], None]) -> None:
    import ray

    from claude_wire import AssistantMessage
    from claude_wire_kit.fleet import Fleet, NodeLostError, client
    from claude_wire_kit.supervisor.attach import spec_of
    from claude_wire_kit.supervisor.errors import DetachedError, SupervisorError

    client.ROOM_SECONDS = 2.0
    spec = spec_of(agent())
    fleet = Fleet(session_bytes=SESSION)
    assert len(await fleet.deploy()) == 2

    # Fill both nodes with sessions.
    ids = [(await fleet.start(spec)).id for _ in range(4)]
    where = await fleet.nodes()
    assert sorted(len(listed.sessions) for listed in where.values()) == [2, 2]
    with pytest.raises(SupervisorError, match="no node has had 100,000,000 bytes") as refused:
        await fleet.start(spec)
    assert refused.value.error == "limit"
    head = ray.get_runtime_context().get_node_id()
    second = next(node for node in where if node != head)
    mine = next(one.id for one in where[head].sessions)
    theirs, also_theirs = (one.id for one in where[second].sessions)

    # Attach a client to one session of each node. Many lines arrive complete and in order, and a long prompt is sent.
    async with fleet.attach(mine) as first, fleet.attach(theirs) as other:
        await other.query(json.dumps({"lines": 3000, "more": "x" * 1000}), uuid="p1")
        texts = [message.text async for message in other.receive_run() if isinstance(message, AssistantMessage)]
        numbers = [int(text.partition(" ")[0]) for text in texts]
        assert numbers == list(range(3000))
        assert (await first.ask("y" * 1_000_000)).ok

        # A cancelled read loses nothing, and does not end the connection.
        with anyio.move_on_after(0.05) as given_up:
            await first.__anext__()
        assert given_up.cancelled_caught
        assert (await first.ask("after that")).ok

        # A client on the node that will be killed follows the session of the other node.
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        @ray.remote(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(second, soft=False), max_retries=0)
        def follow(session: str) -> None:
            async def run() -> None:
                async with Fleet(session_bytes=SESSION).attach(session, role="viewer") as viewer:
                    async for _ in viewer:
                        pass

            asyncio.run(run())

        follower = follow.remote(mine)

        async def clients() -> int:
            (found,) = [one.clients for one in (await fleet.list()).sessions if one.id == mine]
            return found

        await until(lambda: is_so(clients, 2))

        # A driver and a call of `watch` both get the error.
        pids = [one.pid for one in where[second].sessions] + [where[second].pid]
        watched: list[NodeLostError] = []

        async def watch() -> None:
            with pytest.raises(NodeLostError) as caught:
                await fleet.watch()
            watched.append(caught.value)

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            kill_second()
            with anyio.fail_after(TOLD_SECONDS), pytest.raises(DetachedError) as told:
                async for _ in other:
                    pass
            assert told.value.cursor == other.cursor
            lost = told.value.__cause__
            assert isinstance(lost, NodeLostError)
            with anyio.fail_after(TOLD_SECONDS):
                assert (await first.ask("go on")).ok
            group.cancel_scope.deadline = anyio.current_time() + TOLD_SECONDS
        for error in (lost, *watched):
            assert (error.error, error.node) == ("lost", second)
            assert {cursor.id for cursor in error.sessions} == {theirs, also_theirs}
        assert len(watched) == 1
        (cursor,) = [cursor for cursor in watched[0].sessions if cursor.id == theirs]
        assert cursor.line >= 3000
        await until(lambda: is_gone(pids))

        # The relay of the follower ends with its node. The fleet forgets that node, and the other node is still full.
        await until(lambda: is_so(clients, 1))
        assert (await first.ask("and on")).ok
        assert list(await fleet.nodes()) == [head]
        with pytest.raises(SupervisorError) as unknown:
            await fleet.attach(theirs).__aenter__()
        assert unknown.value.error == "unknown"
        del follower
    (spare,) = set(ids) - {mine, theirs, also_theirs}
    await fleet.stop(spare)
    client.ROOM_SECONDS = 30.0  # the actor looks for ended sessions every few seconds
    async with fleet.create(spec) as third:
        assert (await third.ask("hi")).ok
        assert third.cursor is not None
        placed = third.cursor.id
    await fleet.stop(placed)
    async with fleet.resume(third.cursor) as again:
        assert (await again.ask("hi")).ok
    assert repr(fleet) == "<Fleet: 'claude-wire'>"
    for command in fleet.prewarm(spec), fleet.stop(None):
        with pytest.raises(SupervisorError, match="on one node"):
            await command
    left = [one.pid for one in (await fleet.supervisor(head).list()).sessions if one.pid is not None]
    await fleet.end()
    await until(lambda: is_gone(left))


async def is_so(ask: Callable[[], Awaitable[Any]], expected: Any) -> bool:
    return bool(await ask() == expected)


async def is_gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(TOLD_SECONDS):
        while not await condition():
            await anyio.sleep(0.05)


def test_a_node_is_lost_and_the_rest_goes_on() -> None:
    # Ray creates sockets in this folder. The path of a socket may have at most 107 bytes, so pytest's is too long.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        in_own_process(in_cluster, folder)


@pytest.mark.parametrize(("page", "printed"), [("how-to", None), ("reference", "You said: Hi\n")])
def test_the_program_of_fleet_md_prints_what_stands_beneath_it(page: str, printed: str | None, tmp_path: Path) -> None:
    found = blocks(ROOT / "docs" / page / "fleet.md")
    (at,) = [at for at, block in enumerate(found) if "test" in block.said]
    (tmp_path / "program.py").write_text(found[at].text)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as own:
        ray = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        done = subprocess.run(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env={
                **os.environ,
                **ray,
                "RAY_TMPDIR": own,
                "HOME": own,
                "PATH": path,
                "CLAUDE_WIRE_SUPERVISOR": f"{own}/host",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    assert matches(found[at + 1].text if printed is None else printed, done.stdout), done.stdout
