"""The folder of a supervisor with a second supervisor, with another user, or with a path too long for a socket."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from claude_wire_kit.supervisor.disk.folder import StateFolder
from claude_wire_kit.supervisor.errors import SupervisorError
from supervisors import SECONDS, hosting

#: The user "nobody" of most systems.
NOBODY = 65534
#: A program that connects to a socket as another user, and prints the first line that it receives.
STRANGER = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
stranger = socket.socket(socket.AF_UNIX)
stranger.settimeout(30)
stranger.connect(sys.argv[1])
sys.stdout.write(stranger.makefile().readline())
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's tmp_path."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o711)
        yield Path(name)


async def test_a_second_supervisor_is_told_of_the_first_which_goes_on(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        with pytest.raises(
            SupervisorError, match=f"another supervisor \\(pid {os.getpid()}\\) runs the folder"
        ) as caught:
            StateFolder(os.fspath(tmp_path / "h")).take()
        assert caught.value.error == "running"
        assert (await (await supervisor.client()).ask({"list": {}}))["sessions"] == []


async def test_the_folder_can_be_taken_again_when_its_supervisor_has_ended(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h"):
        pass
    folder = StateFolder(os.fspath(tmp_path / "h"))
    folder.take()
    folder.release()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
async def test_another_user_is_refused_even_where_the_files_would_let_him_in(open_folder: Path) -> None:
    def ask() -> str:
        command = [sys.executable, "-c", STRANGER, os.fspath(open_folder / "h" / "socket"), str(NOBODY)]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout

    async with hosting(open_folder / "h") as supervisor:
        assert os.stat(supervisor.folder.socket).st_mode & 0o777 == 0o600
        assert await to_thread.run_sync(ask) == "", "the modes keep others out"
        os.chmod(open_folder / "h", 0o711)
        os.chmod(supervisor.folder.socket, 0o666)
        refused = json.loads(await to_thread.run_sync(ask))
        assert (refused["error"], refused["message"]) == ("refused", "this supervisor serves its own user only")
        assert (await (await supervisor.client()).ask({"list": {}}))["sessions"] == []


def test_a_folder_whose_path_no_socket_takes_is_refused_with_the_most_that_it_may_have(tmp_path: Path) -> None:
    with pytest.raises(SupervisorError, match="choose a folder of at most") as caught:
        StateFolder(os.fspath(tmp_path / ("x" * 120)))
    assert caught.value.error == "folder"


async def test_a_lock_that_was_removed_lets_no_second_supervisor_in(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client, _ = await supervisor.create()
        (tmp_path / "h" / "lock").unlink()
        with pytest.raises(SupervisorError, match="another supervisor"):
            StateFolder(os.fspath(tmp_path / "h")).take()
        client.prompt("p1")
        assert (await client.until("result"))[-1]["result"] == "ok"


@pytest.mark.parametrize("place", ["parts/000002", "parts", "parts/000001/part.json", "parts/000001/cmd.json"])
async def test_a_pipe_in_place_of_a_file_or_folder_holds_nobody_up(tmp_path: Path, place: str) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        _, whole = await supervisor.create()
        _, broken = await supervisor.create()
        await supervisor.end()
        path = tmp_path / "h" / "sessions" / broken["id"] / place
        if path.is_dir():
            path.rename(tmp_path / "away")
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        await supervisor.start()
        listed = await (await supervisor.client()).ask({"list": {}})
        assert whole["id"] in [session["id"] for session in listed["sessions"]]
        assert not path.parent.exists() or stat.S_ISFIFO(os.lstat(path).st_mode)
