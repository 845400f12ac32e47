"""Fixtures for claude-agent-sdk: a stub CLI of a few lines of Python, its home folder, and the event loops."""

from __future__ import annotations

import pathlib
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from async_backends import BACKENDS, Backend


@pytest.fixture(params=[pytest.param(backend, id=backend.id) for backend in BACKENDS])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    backend: Backend = request.param
    pytest.importorskip("uvloop" if backend.options.get("use_uvloop") else backend.name)
    return backend.name, backend.options


PRELUDE = '''
import json, os, signal, sys, time

def raw(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()

def say(message):
    raw(json.dumps(message).encode() + b"\\n")

def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def answer(request, response=None):
    say({"type": "control_response", "response": {
        "subtype": "success", "request_id": request["request_id"], "response": response or {}}})

def prompt():
    """The next prompt; control requests before it are answered. None at the end of the input."""
    while (message := hear()) is not None:
        if message["type"] == "control_request":
            answer(message)
        else:
            return message

def ask(request):
    say({"type": "control_request", "request_id": "ask", "request": request})
    while (message := hear())["type"] != "control_response":
        pass
    return message["response"]

def init(**more):
    say({"type": "system", "subtype": "init", "session_id": "s", "claude_code_version": "2.1.331", **more})

def assistant(text):
    say({"type": "assistant", "session_id": "s", "parent_tool_use_id": None,
         "message": {"role": "assistant", "model": "m", "content": [{"type": "text", "text": text}]}})

def result(**more):
    say({"type": "result", "subtype": "success", "is_error": False, "duration_ms": 1, "duration_api_ms": 1,
         "num_turns": 1, "session_id": "s", "result": "done", **more})
'''


@pytest.fixture
def cli(tmp_path: pathlib.Path) -> Callable[..., str]:
    """Return a function that writes a stub CLI from a few lines of Python and returns its path."""

    def make(script: str, name: str = "claude") -> str:
        path = tmp_path / name
        path.write_text(f"#!{sys.executable} -S\n{PRELUDE}\n{textwrap.dedent(script)}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Set HOME to a folder without credentials or settings. Put temporary files where a test can inspect them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path
