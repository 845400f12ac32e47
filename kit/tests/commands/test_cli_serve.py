"""``claude-wire serve`` as a process: the demo from start to end, and the errors when it cannot serve."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from children import exists, heed_hangups, wait_until
from claude_wire.errors import CLINotFoundError
from claude_wire.process.options import ClaudeOptions
from claude_wire_kit.commands import serve as serve_module
from claude_wire_kit.commands.guide.project import FIXED, SOURCE
from claude_wire_kit.web import load_config
from folders import ROOT
from shown import RUNNER
from supervised import SECONDS, Commands


@contextmanager
def serving(
    environment: dict[str, str], *arguments: str, ends_by: signal.Signals = signal.SIGINT
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client, Path]]:
    """Start the service. Yield the process, an HTTP client with the token, and the path of the token file."""
    command = [sys.executable, "-m", "claude_wire_kit", "serve", "--port=0", *arguments]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_hangups
    ) as process:
        assert process.stdout is not None
        try:
            url = re.fullmatch(
                r"claude-wire serves (http://127\.0\.0\.1:\d+)/#token=(\S+)\n", process.stdout.readline()
            )
            file = re.fullmatch(r"the token is also in (.+)\n", process.stdout.readline())
            assert url is not None
            assert file is not None
            assert Path(file[1]).read_text().strip() == url[2]
            headers = {"Authorization": f"Bearer {url[2]}"}
            with httpx.Client(
                base_url=url[1], headers=headers, timeout=SECONDS, trust_env=False, verify=False
            ) as client:
                yield process, client, Path(file[1])
        finally:
            process.send_signal(ends_by)
            _, err = process.communicate(timeout=SECONDS)
        code = 0 if ends_by == signal.SIGINT else 128 + signal.SIGTERM
        assert (process.returncode, re.sub(r"note: .*\n", "", err)) == (code, "")


def test_the_demo_greets_its_visitor_waits_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": os.fspath(tmp_path)}
    with serving(environment, "--demo") as (_, client, token):
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        (session,) = client.get("/sessions").json()["sessions"]
        with client.stream("GET", f"/sessions/{session['id']}/events") as reply:
            events = (json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: {"))
            said = next(one["content"] for one in events if one["type"] == "claude_response" and not one.get("partial"))
            assert said.startswith("Hello!")
            assert next(one for one in events if one["type"] == "turn_complete")["ok"]
            client.post(f"/sessions/{session['id']}/prompts", json={"text": "Fix the bug"})
            asked = next(one for one in events if one["type"] == "permission_request")
            client.post(f"/sessions/{session['id']}/answers", json={"requestId": asked["requestId"], "allow": True})
            assert next(one for one in events if one["type"] == "turn_complete")["ok"]
        assert FIXED in Path(session["cwd"], SOURCE).read_text()
        (session,) = client.get("/sessions").json()["sessions"]
        assert session["life"] == "idle"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ends_by", [signal.SIGTERM, signal.SIGHUP])
def test_the_demo_leaves_nothing_when_it_is_ended_by_a_signal(tmp_path: Path, ends_by: signal.Signals) -> None:
    environment = {**os.environ, "TMPDIR": os.fspath(tmp_path)}
    with serving(environment, "--demo", ends_by=ends_by) as (_, client, token):
        supervisor = json.loads((token.parent / "supervisor.json").read_text())["pid"]
        assert len(client.get("/sessions").json()["sessions"]) == 1
    assert list(tmp_path.iterdir()) == []
    wait_until(lambda: not exists(supervisor))


def test_the_sessions_of_the_supervisor_are_served_by_the_same_token(tmp_path: Path) -> None:
    with Commands(tmp_path / "state") as commands:
        commands.serve()
        id = commands.create(lines=1)
        tokens = set()
        for _ in range(2):
            environment = {**commands.environment, "XDG_CONFIG_HOME": os.fspath(tmp_path)}
            with serving(environment) as (_, client, token):
                tokens.add(token.read_text())
                assert [one["id"] for one in client.get("/sessions").json()["sessions"]] == [id]
        assert len(tokens) == 1


def test_without_a_configuration_sessions_start_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service runs the ``claude`` on the PATH. Here that is the demo agent."""
    cli = tmp_path / "bin" / "claude"
    cli.parent.mkdir()
    cli.write_text(f'#!/bin/sh\nexec {sys.executable} -m claude_wire_kit.commands.guide "$@"\n')
    cli.chmod(0o700)
    shop = tmp_path / "shop"
    shop.mkdir()
    monkeypatch.chdir(shop)
    with Commands(tmp_path / "state") as commands:
        path = f"{cli.parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**commands.environment, "PATH": path, "XDG_CONFIG_HOME": os.fspath(tmp_path)}
        with serving(environment) as (_, client, _):
            (profile,) = client.get("/sessions").json()["profiles"]
            assert (profile["name"], profile["roots"], profile["options"]) == ("here", [os.fspath(shop)], {})
            assert "bypassPermissions" not in profile["choices"]["permission_mode"]
            made = client.post("/sessions", json={"profile": "here"}).json()
            assert made["cwd"] == os.fspath(shop)
            assert client.post("/sessions", json={"profile": "here", "folder": ".."}).status_code == 403


def test_the_page_opens_in_a_browser_by_a_private_file(tmp_path: Path) -> None:
    """The token is in a private file, not in an argument of the browser, because other users can read arguments."""
    browser, arguments = tmp_path / "browser", tmp_path / "arguments"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {arguments}.new && mv {arguments}.new {arguments}\n')
    browser.chmod(0o700)
    with Commands(tmp_path / "state") as commands:
        commands.serve()
        environment = {**commands.environment, "BROWSER": f"{browser} %s", "XDG_CONFIG_HOME": os.fspath(tmp_path)}
        with serving(environment, "--open") as (_, client, token):
            wait_until(arguments.exists)
            file = Path(arguments.read_text().removeprefix("file://"))
            secret = token.read_text().strip()
            assert secret not in os.fspath(file)
            assert f"url={str(client.base_url).rstrip('/')}/#token={secret}" in file.read_text()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert client.get("/").status_code == 200
        assert not file.exists()


def test_without_a_cli_the_advice_is_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(options: ClaudeOptions) -> list[str]:
        raise CLINotFoundError("there is none; or say where it is: ClaudeOptions(cli_path=...)")

    monkeypatch.setattr(ClaudeOptions, "argv", missing)
    with RUNNER.isolation() as (_, err, _):
        config = serve_module._config_here("serve.toml")
    assert b"no session can be started: there is none" in err.getvalue()
    assert b"options.cli_path of a profile in serve.toml" in err.getvalue()
    assert list(config.profiles) == ["here"]  # the profile works once a CLI is installed


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("profiles = 1", "Expected `object`"),
        ("[profiles.a]\nroots = []", "profile 'a'"),
        ("[profiles.a]\nroots = ['/']\nshell = true", "shell"),
        ("[profiles.a]\nroot = ['/']", "profile 'a': a key must be one of"),
        ("[profiles.a]\nroot = ['/']", "not 'root' (did you mean 'roots'?)"),
        ("[profiles.a]\nroots = '/'", "profile 'a': Expected `array`, got `str` - at `$.roots`"),
        ("profile = 1", "did you mean 'profiles'?"),
        ("[profiles.a]\nroots = ['/']\noptions.model = 1", "profile 'a'"),
        ("[profiles.a]\nroots = ['/']\nargv = []", "argv is empty"),
        ("[profiles.a]\nroots = ['/']\nargv = ['x']\noptions.model = 'y'", "must have argv or options, not both"),
        ("[", "serve.toml"),
    ],
)
def test_a_configuration_that_is_wrong_is_refused(tmp_path: Path, config: str, said: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(config)
    with pytest.raises(ValueError, match=re.escape(said)):
        load_config(file)
    done = Commands(tmp_path / "state").refused("serve", "--config", os.fspath(file))
    assert said in done


def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    with Commands(tmp_path / "state") as commands, socket.create_server(("127.0.0.1", 0)) as taken:
        assert "nowhere.toml: No such file" in commands.refused("serve", "--config", "nowhere.toml")
        file = tmp_path / "serve.toml"
        file.write_text("")
        port = taken.getsockname()[1]
        err = commands.refused("serve", "--config", os.fspath(file), "--port", str(port))
        assert f"127.0.0.1 port {port}: Address already in use" in err


def test_the_example_of_the_page_is_a_configuration(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "web.md").read_text(), re.S)
    (tmp_path / "serve.toml").write_text(re.sub("(?m)^# (hosts|origins) =", r"\1 =", example))
    config = load_config(tmp_path / "serve.toml")
    assert list(config.profiles) == ["work", "agent"]
    assert isinstance(config.profiles["work"].command(), ClaudeOptions)
    assert config.origins == ["https://sessions.example"]
