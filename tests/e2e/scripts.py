"""What the model says in these tests: one script for each conversation, named in the prompt as ``[[name]]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fake_api import Failure, Reply, Step, deltas, text, thinking, tool

__all__ = ["DELTAS", "HUGE", "SCRIPTS", "UNICODE"]

#: Deltas of the long reply.
DELTAS = 2_000
#: Characters of the huge reply.
HUGE = 3_000_000
#: CJK, an emoji, an emoji cut into two deltas, a half that never meets its other half, line separators, NUL and DEL.
UNICODE = (
    "漢字かな ",
    "\U0001f600 and a cut one: \ud83d",
    "\ude00, a lone \ud83d half",
    " \ude00 and another\u2028next\u2029\x00\x7f\x85 ",
    "fin é",
)


def bash(command: str) -> Reply:
    """One call of Bash."""
    return Reply(text("I will run a command."), tool("Bash", command=command, description="For the test"))


SCRIPTS: Mapping[str, Sequence[Step]] = {
    "simple": [Reply(text("Hello, ", "world."))],
    "again": [Reply(text("Hello ", "again."))],
    "thinking": [Reply(thinking("First this, ", "then that."), text("Done thinking."))],
    "long": [Reply(deltas(DELTAS))],
    "huge": [Reply(text(*["x" * (HUGE // 100)] * 100))],
    "huge_at_once": [Reply(text("y" * HUGE))],
    "unicode": [Reply(text(*UNICODE))],
    # Three calls: one is allowed, one refused, one changed by whoever is asked.
    "permission": [
        bash("touch allowed && echo made"),
        bash("touch refused && echo made"),
        Reply(tool("Write", file_path="changed.txt", content="as the model wanted it")),
        Reply(text("All three asked.")),
    ],
    "hooks": [bash("echo hooked"), bash("echo forbidden"), Reply(text("Hooks ran."))],
    "mcp": [Reply(tool("mcp__calc__add", a=20, b=22)), Reply(tool("mcp__calc__fail")), Reply(text("Added."))],
    "read": [Reply(tool("Read", file_path="notes.txt")), Reply(text("I have read it."))],
    # Says something, then nothing: until it is interrupted or the server stops.
    "stall": [Reply(text("One ", "two "), deltas(2, pause=120))],
    # Long enough for messages that are sent meanwhile to be queued.
    "slow": [Reply(text("Slowly."), stall=1.0)],
    "endless": [bash(f"echo {turn}") for turn in range(9)],
    "error_400": [Failure(400, "invalid_request_error", "This cannot be done")],
    "error_401": [Failure(401, "authentication_error", "invalid x-api-key")],
    "error_429": [[Failure(429, "rate_limit_error", "Slow down", retry_after=0), Reply(text("After the limit."))]],
    "error_500": [Failure(500, "api_error", "Internal server error")],
    "overloaded": [[Reply(text("This is ", "cut ", "off here"), cut=5), Reply(text("At the second try."))]],
}
