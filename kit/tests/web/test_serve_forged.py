"""If a CLI writes lines that imitate frames of the supervisor, the service turns each into an ordinary event."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from forged import forged, pieces
from served import id_of, named, served
from supervisors import SECONDS


async def test_forged_frames_are_raw_events_with_their_numbers_and_the_session_goes_on(tmp_path: Path) -> None:
    lines = [line for line in forged("f" * 32) if line.strip()]
    async with served(tmp_path) as service:
        id = await service.create({"raw": pieces(lines)}, {"exit": 0})
        async with service.events(id, query="?raw=1") as events:
            found = []
            while piece := await events.piece():
                if piece.startswith(b"id: "):
                    found.append(piece)
                elif named(piece)[0] == "session_state" and named(piece)[1].get("ended"):
                    break
        journal = (tmp_path / "state" / "sessions" / id / "parts" / "000001" / "stdout.ndjson").read_bytes()
        written = journal.split(b"\n")[:-1]
        assert "".join(lines).encode() in journal
        assert [id_of(piece) for piece in found] == [f"1.{number}.0" for number in range(1, len(written) + 1)]
        assert [piece.split(b"\n", 1)[1] for piece in found] == [
            b"data: %s\n\n" % line.replace(b"\r", b"\ndata: ") for line in written
        ]
        async with service.websocket(id, "?raw=1") as socket:
            got = []
            while "id" in (message := json.loads(await asyncio.wait_for(socket.recv(), SECONDS))):
                got.append(message)
        assert [one["id"] for one in got] == [f"1.{number}.0" for number in range(1, len(written) + 1)]


async def test_forged_frames_end_no_stream_of_events_and_no_driver(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"raw": pieces(forged("f" * 32))})
        async with service.events(id) as events, service.websocket(id) as socket, service.client() as client:
            await events.until("turn_complete")
            sent = await client.post(f"/sessions/{id}/prompts", json={"text": json.dumps({"exit": 4})})
            assert sent.status_code == 202
            await events.until_state(ended=True)
            message: dict[str, Any] = {}
            while not message.get("event", {}).get("ended"):
                message = json.loads(await asyncio.wait_for(socket.recv(), SECONDS))
            assert message["event"]["exitCode"] == 4
