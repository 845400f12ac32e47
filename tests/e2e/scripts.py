"""The scripts of the fake model, one for each conversation. A prompt selects its script with ``[[name]]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from offline.fake_api import Failure, Reply, Step, deltas, text, thinking, tool

__all__ = ["DELTAS", "HOOK_SECONDS", "HUGE", "REPORT", "SCHEMA", "SCRIPTS", "SESSION_ID", "UNICODE", "UUIDS"]

#: Number of deltas in the long reply.
DELTAS = 2_000
#: Number of characters in the huge reply.
HUGE = 3_000_000
#: CJK, an emoji, an emoji split across two deltas, a lone surrogate, line separators, NUL and DEL.
UNICODE = (
    "漢字かな ",
    "\U0001f600 and a cut one: \ud83d",
    "\ude00, a lone \ud83d half",
    " \ude00 and another\u2028next\u2029\x00\x7f\x85 ",
    "fin é",
)


#: The JSON Schema for the output of the script `structured`.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
#: The id of the session that a test resumes and forks.
SESSION_ID = "0e5c1a54-6a5c-4a6c-9a54-0d3c2a1b0f9e"
#: Uuids for prompts that the host sends with a uuid.
UUIDS = tuple(f"{number}0000000-0000-4000-8000-000000000000" for number in (1, 2, 3))
#: Timeout of a hook in seconds. After it, the CLI cancels the hook.
HOOK_SECONDS = 1.0
#: The answer that each scripted subagent returns to its parent conversation.
REPORT = "All is quiet here."


def bash(command: str, **more: Any) -> Reply:
    """Return a reply that calls the Bash tool with this command."""
    return Reply(text("I will run a command."), tool("Bash", command=command, description="For the test", **more))


def agent(script: str, **more: Any) -> Reply:
    """Return a reply that starts a subagent, which then follows the named script."""
    prompt = f"[[{script}]] Look around."
    return Reply(tool("Agent", description="Look around", prompt=prompt, subagent_type="general-purpose", **more))


SCRIPTS: Mapping[str, Sequence[Step]] = {
    "simple": [Reply(text("Hello, ", "world."))],
    "again": [Reply(text("Hello ", "again."))],
    "thinking": [Reply(thinking("First this, ", "then that."), text("Done thinking."))],
    "long": [Reply(deltas(DELTAS))],
    "huge": [Reply(text(*["x" * (HUGE // 100)] * 100))],
    "huge_at_once": [Reply(text("y" * HUGE))],
    "unicode": [Reply(text(*UNICODE))],
    # Three calls: the host allows the first, refuses the second and changes the third.
    "permission": [
        bash("touch allowed && echo made"),
        bash("touch refused && echo made"),
        Reply(tool("Write", file_path="changed.txt", content="as the model wanted it")),
        Reply(text("All three asked.")),
    ],
    "hooks": [bash("echo hooked"), bash("echo forbidden"), Reply(text("Hooks ran."))],
    # In the scripts that end in "_handed_over", the second call waits until the test has replaced the first host.
    "hooks_handed_over": [
        bash("echo hooked"),
        Reply(*bash("echo forbidden").blocks, gate="handed_over"),
        Reply(text("Hooks ran.")),
    ],
    "mcp": [Reply(tool("mcp__calc__add", a=20, b=22)), Reply(tool("mcp__calc__fail")), Reply(text("Added."))],
    "mcp_handed_over": [
        Reply(tool("mcp__calc__add", a=20, b=22)),
        Reply(tool("mcp__calc__fail"), gate="handed_over"),
        Reply(text("Added.")),
    ],
    # If the host sends back the suggestion of the first question, the CLI does not ask about the second call.
    "permission_kept": [bash("touch first"), bash("touch second"), Reply(text("Asked once."))],
    # The host never answers this question, or denies it and interrupts the turn.
    "permission_open": [bash("touch refused")],
    "permission_raises": [bash("touch refused"), Reply(text("Nobody could be asked."))],
    # The host's hooks allow the first call, block the second and change the third. The fourth hook exceeds its
    # timeout, the fifth raises, and the sixth raises where an exception blocks the call.
    "hooks_decide": [
        bash("touch allowed"),
        bash("touch forbidden"),
        bash("touch changed"),
        bash("touch slow"),
        bash("touch raised"),
        Reply(tool("Write", file_path="guarded.txt", content="as the model wanted it")),
        Reply(text("Hooks decided.")),
    ],
    "hooks_overrun": [*(bash(f"touch overrun{number}") for number in range(10)), Reply(text("All refused."))],
    # Forty calls in a row. Each appends the time at which it runs to a file.
    "ticks": [*[bash(f"date +%s.%N >> ticks; touch tick{number}") for number in range(40)], Reply(text("Ticked."))],
    # A command that runs until the host interrupts it.
    "long_bash": [bash("touch begun; until [ -e never ]; do sleep 0.1; done")],
    # Background tasks that end when the host creates a file or opens a gate, after the first turn has ended.
    "background_bash": [
        bash("until [ -e go ]; do sleep 0.05; done; echo finished", run_in_background=True),
        Reply(text("It runs.")),
        Reply(text("It has ended.")),
    ],
    "background_stopped": [
        bash("until [ -e never ]; do sleep 0.1; done", run_in_background=True),
        Reply(text("It runs.")),
        Reply(text("It was stopped.")),
    ],
    # A command that runs in the foreground until the host sends it to the background.
    "sent_away": [bash("echo so far; touch begun; until [ -e never ]; do sleep 0.1; done"), Reply(text("It runs."))],
    "background_agent": [
        agent("scout", run_in_background=True),
        Reply(text("It is on its way.")),
        Reply(text("It is back.")),
    ],
    # A subagent that runs for 20 seconds and creates a file; a command that runs for 8 seconds; a subagent whose reply
    # uses up the budget and starts a command that never ends.
    "long_agent": [
        agent("marker", run_in_background=True),
        Reply(text("It is on its way.")),
        Reply(text("It is back.")),
    ],
    "marker": [bash("sleep 20; touch marker"), Reply(text(REPORT))],
    "shell_of_8": [
        bash("sleep 8; touch ran", run_in_background=True),
        Reply(text("It runs.")),
        Reply(text("It has ended.")),
    ],
    "spending_agent": [
        agent("spender", run_in_background=True),
        Reply(text("It is on its way.")),
        Reply(text("Never.")),
    ],
    "spender": [
        Reply(text("x" * 200_000), *bash("until [ -e never ]; do sleep 0.1; done").blocks, gate="spender"),
        Reply(text(REPORT)),
    ],
    "background_agents": [
        Reply(*(block for _ in range(3) for block in agent("envoy", run_in_background=True).blocks)),
        Reply(text("They are on their way.")),
        *(Reply(text("One is back.")) for _ in range(3)),
    ],
    "envoy": [Reply(text(REPORT), gate="envoy")],
    "scout": [Reply(*bash("echo scouted").blocks, gate="scout"), Reply(text(REPORT))],
    "agent": [agent("worker", run_in_background=False), Reply(text("The worker has reported."))],
    "worker": [bash("echo worked > worker.txt"), Reply(text(REPORT))],
    "structured": [
        Reply(tool("StructuredOutput", name="Ada", age="no number")),
        Reply(tool("StructuredOutput", name="Ada", age=36)),
    ],
    "unstructured": [Reply(text("In plain words.")) for _ in range(9)],
    "never_fits": [Reply(tool("StructuredOutput", name="Ada", age="no number")) for _ in range(9)],
    "summary": [Reply(text("<summary>They said hello.</summary>"))],
    "mcp_asks": [Reply(tool("mcp__calc__ask")), Reply(text("Asked."))],
    "mcp_elicits": [Reply(tool("mcp__asker__who")), Reply(text("Answered."))],
    "read": [Reply(tool("Read", file_path="notes.txt")), Reply(text("I have read it."))],
    # The model writes two words and then stalls, until the host interrupts it or the server stops.
    "stall": [Reply(text("One ", "two "), deltas(2, pause=120))],
    "write": [Reply(tool("Write", file_path="written.txt", content="written")), Reply(text("I have written it."))],
    "held": [Reply(text("Held no more."), gate="held")],
    # The reply takes a second, so the CLI queues prompts that the host sends meanwhile.
    "slow": [Reply(text("Slowly."), stall=1.0)],
    "endless": [bash(f"echo {turn}") for turn in range(9)],
    "error_400": [Failure(400, "invalid_request_error", "This cannot be done")],
    "error_401": [Failure(401, "authentication_error", "invalid x-api-key")],
    "error_429": [[Failure(429, "rate_limit_error", "Slow down", retry_after=0), Reply(text("After the limit."))]],
    "error_500": [Failure(500, "api_error", "Internal server error")],
    # The API answers every request with 429.
    "limited": [Failure(429, "rate_limit_error", "Slow down", retry_after=0)],
    "error_529": [Failure(529, "overloaded_error", "Overloaded")],
    "overloaded": [[Reply(text("This is ", "cut ", "off here"), cut=5), Reply(text("At the second try."))]],
}
