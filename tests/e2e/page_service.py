"""``claude-wire serve`` as a user starts it, with the real CLI in its profile; tabs are compared with its journals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from difflib import ndiff
from pathlib import Path
from typing import Any

import httpx

from browsing import Tab
from offline import sandbox
from offline.fake_api import FakeAPI
from page_rows import ROWS, Row, journal_rows, journaled
from page_scripts import make_folder
from places import CLI

__all__ = ["PageService", "PageSession"]

#: Seconds that a program may take to exit or to answer.
SECONDS = 60.0
#: Milliseconds between two checks of a tab or a journal, and the number of checks before the test fails.
LOOK_MS = 50
LOOKS = 1200


class PageService:
    """The service and its supervisor, in two separate processes.

    Args:
        folder: holds the state, the profile and the projects of both.
        api: the fake API that the CLI calls.
    """

    def __init__(self, folder: Path, api: FakeAPI) -> None:
        sandbox.require()
        self.api: FakeAPI = api
        self.state: Path = folder / "state"
        self.projects: Path = folder / "projects"
        self.projects.mkdir()
        self.home: Path = folder / "home"
        self.home.mkdir()
        self._environment = sandbox.environment(self.home, api.url)
        self._config = folder / "serve.toml"
        options = f'cli_path = "{CLI}"\nsystem_prompt = ""\npermission_prompt_tool = "stdio"\n'
        self._config.write_text(
            f"[profiles.work]\nroots = {json.dumps([str(self.projects)])}\nenv = {json.dumps([*self._environment])}\n"
            f"[profiles.work.options]\n{options}"
        )
        self._port = 0
        self.start()

    def start(self) -> None:
        """Start the service. A restart uses the same port again."""
        arguments = ["serve", "--config", str(self._config), "--folder", str(self.state), "--port", str(self._port)]
        self._child = subprocess.Popen(
            [sys.executable, "-m", "claude_wire_kit", *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._child.stdout is not None
        #: The URL of the page, with the token.
        self.entry = self._child.stdout.readline().split()[-1]
        self.url, _, token = self.entry.partition("/#token=")
        self._port = int(self.url.rpartition(":")[2])
        self._headers = {"Authorization": f"Bearer {token}"}

    def stop(self) -> None:
        """Stop the service with SIGINT, like Ctrl-C. Its supervisor keeps running with all sessions."""
        self._child.send_signal(signal.SIGINT)
        self._child.communicate(timeout=SECONDS)
        assert self._child.returncode == 0

    def close(self) -> None:
        """Stop the service and its supervisor."""
        try:
            self.stop()
        finally:
            self.end("--all")

    def end(self, what: str) -> None:
        """Kill the CLI of a session, by id, with ``claude-wire supervisor stop``; ``--all`` ends the supervisor."""
        arguments = ["supervisor", "stop", what, "--folder", str(self.state), "--grace", "0"]
        command = [sys.executable, "-m", "claude_wire_kit", *arguments]
        subprocess.run(command, env=self._environment, check=True, timeout=SECONDS, capture_output=True)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the service, and return its answer."""
        answer = httpx.request(
            method, self.url + path, json=body, headers=self._headers, timeout=SECONDS, trust_env=False
        )
        answer.raise_for_status()
        return answer.json()

    def create(self, script: str, name: str | None = None, *, folder: str | None = None) -> PageSession:
        """Start a session in a new project folder. By default the folder has the name of the script."""
        made = make_folder(self.projects / (folder or script), script)
        body = {"profile": "work", "folder": made.name, **({"name": name} if name else {})}
        return self.session(self.call("POST", "/sessions", body)["id"])

    def session(self, id: str) -> PageSession:
        """Return the existing session with this id."""
        (info,) = (one for one in self.call("GET", "/sessions")["sessions"] if one["id"] == id)
        return PageSession(self, id, Path(info["cwd"]))


class PageSession:
    """A session of the service.

    Args:
        service: the service that runs the session.
        id: the id of the session.
        folder: the working directory of the CLI.
    """

    def __init__(self, service: PageService, id: str, folder: Path) -> None:
        self._service = service
        self.id: str = id
        self.folder: Path = folder

    @property
    def entry(self) -> str:
        """Return the URL that opens the session's page in a browser without a cookie."""
        return f"{self._service.entry}&session={self.id}"

    def lines(self) -> list[tuple[str, bytes]]:
        """Return the lines of the session's journal with their directions."""
        return journaled(self._service.state, self.id)

    def sent(self, type: str) -> list[dict[str, Any]]:
        """Return the messages of this type in the journal that were sent to the CLI."""
        return self._messages("in", type)

    def said(self, type: str) -> list[dict[str, Any]]:
        """Return the messages of this type in the journal that the CLI has written."""
        return self._messages("out", type)

    def _messages(self, direction: str, type: str) -> list[dict[str, Any]]:
        found = (json.loads(line) for one, line in self.lines() if one == direction)
        return [message for message in found if message["type"] == type]

    def answers(self) -> list[tuple[str, Any]]:
        """Return the answers to permission questions in order: the behavior and the permission updates of each."""
        given = [answer["response"]["response"] for answer in self.sent("control_response")]
        return [(one["behavior"], one.get("updatedPermissions")) for one in given]

    def results(self) -> list[tuple[str, bool]]:
        """Return the tool results in order, as pairs of the text and whether it is an error."""
        # Skip prompts that the CLI echoes: their content is a string, not a list of blocks.
        contents = [message["message"]["content"] for message in self.said("user")]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        return [(block["content"], bool(block.get("is_error"))) for block in blocks if block["type"] == "tool_result"]

    def rows(self) -> list[Row]:
        """The rows that a page must show for this session now."""
        lines = self.lines()
        rows = journal_rows(lines)
        whole = journal_rows(lines, partial=False)
        assert [row for row in rows if row in whole] == whole, "deltas give the same texts as messages"
        return rows

    def is_shown(self, tab: Tab) -> None:
        """Wait until a tab shows every row of the journal once and in order."""
        for _ in range(LOOKS):
            wanted, shown = self.rows(), tab.page.evaluate(ROWS)
            if shown == wanted:
                return
            tab.page.wait_for_timeout(LOOK_MS)
        differences = ndiff([*map(repr, wanted)], [*map(repr, shown)])
        raise AssertionError("\n".join(["the page does not show what the journal has:", *differences]))

    def waits_for(self, type: str, count: int) -> None:
        """Wait until the CLI has written this number of messages of a type."""
        wait_until(lambda: len(self.said(type)) >= count, f"the CLI has not written {count} messages of type {type}")

    def is_transcribed(self, text: str) -> None:
        """Wait until the CLI's transcript contains a text. The CLI writes its transcript with a delay."""
        folders = f".claude/projects/*-{self.folder.name}/*.jsonl"
        wait_until(
            lambda: any(text in path.read_text() for path in self._service.home.glob(folders)),
            f"the transcript does not contain {text!r}",
        )


def wait_until(condition: Callable[[], bool], otherwise: str) -> None:
    """Wait until a condition is true. Raise AssertionError with the text `otherwise` if it stays false."""
    for _ in range(LOOKS):
        if condition():
            return
        time.sleep(LOOK_MS / 1000)
    raise AssertionError(otherwise)
