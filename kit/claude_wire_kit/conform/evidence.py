"""The evidence of a scenario: the lines that the host printed, and the lines that it wrote to the agent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from claude_wire.agent import AgentOptions
from claude_wire.support import fields_of, items_of, one_line
from claude_wire.testing import Recording

Object = dict[str, Any]

#: The types of lines that a host prints, and the keys that each type must have, as in docs/how-to/conform.md.
PRINTED: dict[str, tuple[str, ...]] = {
    "init": ("session_id",),
    "text": ("text",),
    "delta": ("text",),
    "thinking": ("thinking",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content"),
    "user": ("text",),
    "result": ("subtype", "is_error"),
    "rate_limit": ("status",),
    "unknown": ("name",),
    "error": ("message",),
    "permission": ("tool_name", "input"),
    "hook": ("hook_event_name",),
    "mcp": ("name", "arguments"),
}


@dataclass(frozen=True)
class Evidence:
    """What a host did in one scenario.

    Attributes:
        stdout: what the host printed.
        code: the host's exit code. None if it was killed at the time limit.
        seconds: how long the host ran.
        limit: the time limit in seconds.
        recording: the agent's recording. None if the host did not start the agent.
        stderr: the end of the host's standard error.
    """

    stdout: bytes
    code: int | None
    seconds: float
    limit: float
    recording: Recording | None
    stderr: str = ""

    @cached_property
    def _lines(self) -> tuple[list[Object], list[bytes]]:
        printed: list[Object] = []
        wrong: list[bytes] = []
        for line in self.stdout.splitlines():
            value = _object(line)
            keys = PRINTED.get(value["type"]) if value is not None and isinstance(value.get("type"), str) else None
            if value is None or keys is None or not value.keys() >= {*keys}:
                wrong.append(line)
            else:
                printed.append(value)
        return printed, wrong

    @property
    def printed(self) -> list[Object]:
        """The lines that the host printed, except the wrong ones."""
        return self._lines[0]

    @property
    def wrong_lines(self) -> list[bytes]:
        """The lines that the host should not have printed, because they do not match :data:`PRINTED`."""
        return self._lines[1]

    def of(self, kind: str) -> list[Object]:
        """The printed lines of the type ``kind``."""
        return [line for line in self.printed if line["type"] == kind]

    # --- on the wire

    @property
    def _recorded(self) -> Recording:
        assert self.recording is not None  # rules about the agent are only checked if the host started it
        return self.recording

    @cached_property
    def sent_lines(self) -> list[bytes]:
        """The lines that the host wrote to the agent, except blank ones."""
        return [line for line in self._recorded.stdin.split(b"\n") if line.strip()]

    @cached_property
    def sent(self) -> list[Object]:
        """The lines that the host wrote to the agent, if they are JSON objects."""
        return [value for value in map(_object, self.sent_lines) if value is not None]

    @property
    def prompts(self) -> list[str]:
        """The texts of the prompts that the host wrote to the agent."""
        return [_text_of(line.get("message")) for line in self.sent if line.get("type") == "user"]

    def requests(self, subtype: str) -> list[Object]:
        """The host's control requests of this subtype."""
        return [body for body in map(_request, self.sent) if body.get("subtype") == subtype]

    @cached_property
    def answers(self) -> dict[str, list[Object]]:
        """The host's answers by request id, each like ``{"subtype": "success", "response": {...}}``, or an error."""
        found: dict[str, list[Object]] = {}
        for line in self.sent:
            if line.get("type") == "control_response":
                response = fields_of(line.get("response"))
                found.setdefault(str(response.get("request_id")), []).append(response)
        return found

    def asked(self, subtype: str) -> list[tuple[str, Object]]:
        """The agent's control requests of this subtype, each as (id, body)."""
        found: list[tuple[str, Object]] = []
        for line in self._recorded.stdout.split(b"\n"):
            value = _object(line) if b'"control_request"' in line[:200] else None
            if value is not None and _request(value).get("subtype") == subtype:
                found.append((str(value["request_id"]), _request(value)))
        return found

    @cached_property
    def options(self) -> AgentOptions | None:
        """The flags that the host started the agent with. None if they cannot be read."""
        try:
            return AgentOptions.parse(["claude", *self._recorded.argv], {})
        except ValueError:
            return None

    @property
    def end(self) -> Object:
        """The agent's exit code ``rc``, and ``input_ended``. Empty if the agent was killed or did not exit."""
        return _object(self._recorded.files.get("exit.json", b"")) or {}

    # --- in words

    @property
    def stderr_lines(self) -> list[str]:
        """The last lines of the host's standard error, made safe to print."""
        return [one_line(line, 200) for line in self.stderr.splitlines() if line.strip()]

    def summary(self) -> str:
        """Describe in one line what the host did."""
        kinds = ((kind, len(list(lines))) for kind, lines in groupby(line["type"] for line in self.printed))
        printed = ", ".join(kind if count == 1 else f"{count} of {kind}" for kind, count in kinds)
        wire = f"wrote {len(self.sent_lines)} lines to the agent" if self.recording else "did not start the agent"
        how = "was killed at the time limit" if self.code is None else f"ended with exit code {self.code}"
        return f"{wire}; printed {printed or 'nothing'}; {how}"


def _object(line: bytes) -> Object | None:
    try:
        value: Object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if fields_of(value) is value else None


def _request(line: Object) -> Object:
    return fields_of(line.get("request")) if line.get("type") == "control_request" else {}


def _text_of(message: Any) -> str:
    content: Any = fields_of(message).get("content")
    if isinstance(content, str):
        return content
    return "".join(str(fields_of(block).get("text", "")) for block in items_of(content))
