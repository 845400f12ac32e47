"""A stand-in for the CLI whose prompts start tools as independent processes.

The prompt ``tools`` makes it call one tool after the other until it is ended, and report each call as the CLI does.
Before each call it writes the tool's id and the time to the file in ``$TOOL_LOG``. The tool writes its id to the same
file, and touches the file every 5 ms. Any other prompt gets a result immediately.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import count
from typing import Any

TOOL = """
import os, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
os.write(log, b"runs %s 0\\n" % sys.argv[2].encode())
for _ in range(3):
    os.utime(sys.argv[1])
    time.sleep(0.005)
"""


def say(**message: Any) -> None:
    """Write a message as a line to standard output."""
    os.write(1, json.dumps({**message, "session_id": "cli-1"}).encode() + b"\n")


def run_tools() -> None:
    """Call tools until the process is ended."""
    log = os.open(os.environ["TOOL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    say(type="system", subtype="init", cwd="/", tools=[], model="x")
    for n in count():
        id = f"t{os.getpid()}-{n}"
        use = {"type": "tool_use", "id": id, "name": "Bash", "input": {}}
        body = {"id": "m", "role": "assistant", "model": "x", "content": [use]}
        say(type="assistant", message=body, parent_tool_use_id=None, uuid=f"a{n}")
        os.write(log, b"begins %s %d\n" % (id.encode(), time.monotonic_ns()))
        tool = [sys.executable, "-I", "-S", "-c", TOOL, os.environ["TOOL_LOG"], id]
        subprocess.run(tool, check=True, stdin=subprocess.DEVNULL)
        result = {"type": "tool_result", "tool_use_id": id, "content": "ok"}
        say(type="user", message={"role": "user", "content": [result]}, parent_tool_use_id=None, uuid=f"u{n}")


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "control_request":
            response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            say(type="control_response", response=response)
        elif message["type"] == "user" and message["message"]["content"] == "tools":
            run_tools()
        elif message["type"] == "user":
            uuids = [message["uuid"]]
            say(type="result", subtype="success", is_error=False, result="ok", user_message_uuids=uuids)
