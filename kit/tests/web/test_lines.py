"""The service reads numbered lines from a supervisor."""

from __future__ import annotations

from pathlib import Path

import anyio

from claude_wire_kit.supervisor.attach import connect
from claude_wire_kit.supervisor.frames import Attach
from claude_wire_kit.web.lines import Lines
from supervisors import hosting


def test_leaving_ends_the_connection_also_while_somebody_keeps_the_object(tmp_path: Path) -> None:
    async def main() -> None:
        async with hosting(tmp_path / "h") as running:
            _, attached = await running.create()
            supervisor = connect(tmp_path / "h")
            lines = Lines(supervisor, Attach(attach=attached["id"]))

            async def clients() -> int:
                [session] = (await supervisor.list()).sessions
                return session.clients

            async with lines:
                assert await clients() == 2
            with anyio.fail_after(60):
                while await clients() > 1:
                    await anyio.sleep(0.01)

    anyio.run(main)
