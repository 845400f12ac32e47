"""The table of scenarios: the task of the host, what the agent does, and the rules that the host must keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from claude_wire import ClaudeOptions
from claude_wire_kit.conform import plays, rules
from claude_wire_kit.conform.evidence import Object
from claude_wire_kit.conform.plays import Play
from claude_wire_kit.conform.rules import Rule

SUCCESS, FAILURE = ("success", False), ("error_during_execution", True)
#: The id of the session that the host resumes in ``resume_replays``.
RESUMED = "5f0c8b52-6d0f-4c6e-9d0a-2f1f6f3c7a11"
SCHEMA: Object = {"type": "object", "properties": {"words": {"type": "integer"}}, "required": ["words"]}
ALLOWS: Object = {"behavior": "allow"}
DENIES: Object = {"behavior": "deny", "message": "Not today."}
CHANGES: Object = {"behavior": "allow", "updatedInput": {"command": "ls -l"}}
REFUSES: Object = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "No shell today.",
    }
}
ADDS: Object = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "The user is tired."}}
BASH: tuple[str, Object] = ("Bash", {"command": "touch a.txt"})


@dataclass(frozen=True)
class Scenario:
    """A situation in which a host is checked.

    Attributes:
        name: the name on the command line.
        does: what the agent does, in words.
        source: the recording that has this situation, or the rule that the scenario tests.
        play: the function that does what the agent does.
        task: what the host is asked to do, as docs/how-to/conform.md specifies.
        own: the rules of this scenario, besides those of every scenario.
        fails: True if the host must or may report an error.
        exits: True if the agent exits by itself, before its host stops it.
        lingers: True if the agent keeps running after the end of its input.
    """

    name: str
    does: str
    source: str
    play: Play
    task: Object
    own: tuple[Rule, ...]
    fails: bool = False
    exits: bool = False
    lingers: bool = False

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules: first those of every scenario, then those of this scenario."""
        return (*self._common(), *self.own)

    def _common(self) -> Iterator[Rule]:
        yield rules.starts()
        yield rules.ends()
        yield rules.prints_lines()
        yield rules.writes_messages()
        flags = dict(self._flags)
        flags.pop("json_schema", None)  # a host may also give the schema in `initialize`
        yield rules.flags(**flags)
        yield rules.prompts(*(act["send"] for act in self.task["acts"] if "send" in act))
        if not self.exits:
            yield rules.terminates() if self.lingers else rules.leaves()
        if not self.fails:
            yield rules.no_error()

    @property
    def _flags(self) -> Object:
        """The fields of :class:`~claude_wire.ClaudeOptions` that the task needs."""
        task = self.task
        wanted = {
            "include_partial_messages": "partial" in task,
            "permission_prompt_tool": "stdio" if "permission" in task else None,
            "resume": task.get("resume"),
            "replay_user_messages": "replay" in task,
            "json_schema": task.get("schema"),
        }
        return {name: value for name, value in wanted.items() if value}

    def task_as_json(self) -> str:
        """Return the task as JSON for the host, with the flags of the CLI that it needs."""
        return json.dumps({"scenario": self.name, **self.task, "flags": ClaudeOptions(**self._flags).arguments()})

    def asks(self) -> str:
        """Describe the task of the host in words."""
        said = [_in_words(act) for act in self.task["acts"]]
        permission = self.task.get("permission")
        if permission is not None:
            changed = ", with another input" if "updatedInput" in permission else ""
            said.append(f"{permission['behavior']} permission requests{changed}")
        said += [f"have a hook for {event}" for event in self.task.get("hooks", ())]
        asked = {
            "partial": "ask for partial messages",
            "mcp": "serve the MCP server calc",
            "schema": "ask for structured output",
            "resume": "resume a session",
            "replay": "ask for prompts to be sent back",
        }
        said += [words for key, words in asked.items() if self.task.get(key)]
        return "; ".join(said)


def _in_words(act: Object) -> str:
    if "send" in act:
        return f"send {act['send']!r}"
    if "until" in act:
        return f"wait until a line of type {act['until']} is printed"
    return "interrupt"


def _sends(*texts: str, **more: Any) -> Object:
    return {"acts": [{"send": text} for text in texts], **more}


def _interrupts(until: str) -> Object:
    again = [{"interrupt": True}, {"until": "result"}, {"send": "Again."}]
    return {"acts": [{"send": "Go."}, {"until": until}, *again], "partial": True}


_TABLE = (
    Scenario(
        "prompt",
        "It sends one text.",
        "recording 01_simple_bidi_init",
        plays.prompt,
        _sends("Hello."),
        (rules.texts("You said: Hello."), rules.results(SUCCESS, text="You said: Hello.")),
    ),
    Scenario(
        "deltas",
        "It sends a text in five pieces.",
        "recording 02_long_partial",
        plays.deltas,
        _sends("Count.", partial=True),
        (
            rules.deltas("One ", "two ", "three ", "four ", "five."),
            rules.texts("One two three four five."),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "thinking",
        "It thinks, and sends a text.",
        "recording 03_think_partial",
        plays.thinking,
        _sends("Think."),
        (rules.thinking("Forty-two, I think."), rules.texts("42"), rules.results(SUCCESS)),
    ),
    Scenario(
        "parallel_tools",
        "It uses two tools in one message. The second result comes first.",
        "recording 04_tools_bypass_partial",
        plays.parallel_tools,
        _sends("Read both."),
        (
            rules.tool_uses(("Read", {"file_path": "a.txt"}), ("Read", {"file_path": "b.txt"})),
            rules.tool_results(("content of b", False), ("content of a", False), of=(1, 0)),
            rules.texts("Both are read."),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "permission_allowed",
        "It asks for permission to use a tool, and uses it.",
        "recording 05_perm_allow_deny",
        plays.bash,
        _sends("Touch a.txt.", permission=ALLOWS),
        (
            rules.called("permission", {"tool_name": "Bash", "input": BASH[1]}),
            rules.answered(
                "can_use_tool", "The answer allows the tool, with its input or without one.", {"behavior": "allow"}
            ),
            rules.tool_uses(BASH),
            rules.tool_results(("ran: touch a.txt", False)),
            rules.texts("It ran."),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "permission_denied",
        "It asks for permission to use a tool, and passes the answer of the host to the model.",
        "recording 05_perm_allow_deny",
        plays.bash,
        _sends("Touch a.txt.", permission=DENIES),
        (
            rules.called("permission", {"tool_name": "Bash", "input": BASH[1]}),
            rules.answered("can_use_tool", "The answer denies the tool, with the message of the task.", DENIES),
            rules.tool_uses(BASH),
            rules.tool_results(("Not today.", True)),
            rules.texts("It did not run."),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "permission_changed",
        "It asks for permission to use a tool, and uses it with the input from the answer.",
        "recording 05_perm_allow_deny",
        plays.bash,
        _sends("Touch a.txt.", permission=CHANGES),
        (
            rules.called("permission", {"tool_name": "Bash", "input": BASH[1]}),
            rules.answered("can_use_tool", "The answer allows the tool with the input of the task.", CHANGES),
            rules.tool_uses(BASH),
            rules.tool_results(("ran: ls -l", False)),
            rules.texts("It ran."),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "hook_blocks",
        "It calls the hook before it uses a tool, and does not ask for permission if the hook denies the tool.",
        "recording 06_hooks",
        plays.bash,
        _sends("Touch a.txt.", permission=ALLOWS, hooks={"PreToolUse": REFUSES}),
        (
            rules.called("hook", {"hook_event_name": "PreToolUse"}),
            rules.answered("hook_callback", "The answer is the output of the task.", REFUSES),
            rules.tool_uses(BASH),
            rules.tool_results(("PreToolUse:Bash hook error: No shell today.", True)),
            rules.texts("It did not run."),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "hook_context",
        "It calls the hook before the prompt, and sends the text that the hook adds.",
        "recording 06_hooks",
        plays.hook_context,
        _sends("Hello.", hooks={"UserPromptSubmit": ADDS}),
        (
            rules.called("hook", {"hook_event_name": "UserPromptSubmit"}),
            rules.answered("hook_callback", "The answer is the output of the task.", ADDS),
            rules.texts("The hook told me: The user is tired."),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "mcp_tool",
        "It connects to the MCP server in the host, and calls one tool that works and one that fails.",
        "recording 07_mcp",
        plays.mcp_tool,
        _sends("Add.", mcp=True),
        (
            rules.called("mcp", {"name": "add", "arguments": {"a": 2, "b": 3}}, {"name": "fail", "arguments": {}}),
            rules.tool_uses(("mcp__calc__add", {"a": 2, "b": 3}), ("mcp__calc__fail", {})),
            rules.tool_results(("5", False), (None, True)),
            rules.texts("Calculated."),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "interrupt_text",
        "It is interrupted while it sends a text, and answers the next prompt.",
        "recording 08_interrupt",
        plays.interrupt_text,
        _interrupts("delta"),
        (
            rules.interrupted(),
            rules.deltas("Counting...", "Still here."),
            rules.texts("Counting...", "Still here."),
            rules.results(FAILURE, SUCCESS, text="Still here."),
        ),
    ),
    Scenario(
        "interrupt_tool",
        "It is interrupted while a tool runs, and answers the next prompt.",
        "recording 16_interrupt_bash",
        plays.interrupt_tool,
        _interrupts("tool_use"),
        (
            rules.interrupted(),
            rules.tool_uses(("Bash", {"command": "sleep 1000"})),
            rules.texts("Still here."),
            rules.results(FAILURE, SUCCESS, text="Still here."),
        ),
    ),
    Scenario(
        "busy_prompts",
        "It works until two more prompts have arrived, and answers both in one turn.",
        "recording 12_multi_noreplay",
        plays.busy_prompts,
        {
            "acts": [
                {"send": "First."},
                {"until": "text"},
                {"send": "Second."},
                {"send": "Third."},
            ]
        },
        (
            rules.texts("Working.", "Both came meanwhile.", "Then you said: Second.\nThird."),
            rules.results(SUCCESS, SUCCESS),
        ),
    ),
    Scenario(
        "background",
        "A subagent works on after the first result. Its tool calls the hook, and its end starts another turn.",
        "recording 15_subagent_background",
        plays.background,
        _sends("Look around.", hooks={"PreToolUse": REFUSES}),
        (
            rules.answered("hook_callback", "The hook is answered after the first result.", REFUSES),
            rules.texts(
                "It looks around.",
                "The subagent is back. The hook said: PreToolUse:Bash hook error: No shell today.",
            ),
            rules.results(SUCCESS, SUCCESS),
        ),
    ),
    Scenario(
        "structured",
        "It sends structured output.",
        "recording 13_struct_bidi",
        plays.structured,
        _sends("How many words?", schema=SCHEMA),
        (rules.schema(SCHEMA), rules.results(SUCCESS, output={"words": 2})),
    ),
    Scenario(
        "structured_failure",
        "It fails to produce structured output.",
        "recording 13_struct_invalid_input",
        plays.structured_failure,
        _sends("How many words?", schema=SCHEMA),
        (
            rules.schema(SCHEMA),
            rules.texts("I cannot."),
            rules.results(("error_max_structured_output_retries", True)),
        ),
        fails=True,
    ),
    Scenario(
        "failed_turn",
        "Its turn fails.",
        "recording 09_err500_retries",
        plays.failed_turn,
        _sends("Go."),
        (rules.texts("I begin."), rules.results(FAILURE)),
        fails=True,
    ),
    Scenario(
        "rate_limit",
        "It reports the usage of the rate limit.",
        "session rate_limit_events",
        plays.rate_limit,
        _sends("Go."),
        (rules.rate_limit("allowed_warning"), rules.texts("Before.", "After."), rules.results(SUCCESS)),
    ),
    Scenario(
        "resume_replays",
        "It resumes a session, and sends the prompt back.",
        "recordings 12_multi_replay and 16_resume_b",
        plays.resume_replays,
        _sends("Go on.", resume=RESUMED, replay=True),
        (
            rules.session(RESUMED),
            rules.users("Go on."),
            rules.texts(f"Session {RESUMED} goes on."),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "unknown_type",
        "Between its texts, it sends a message of an unknown type and one of an unknown subtype.",
        "rule: every release of the CLI adds types",
        plays.unknown_type,
        _sends("Go."),
        (
            rules.texts("Before.", "After."),
            rules.unknown("weather_report", "system/weather_changed"),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "unknown_block",
        "One message has an unknown block and a text.",
        "recording 16_unknown_block",
        plays.unknown_block,
        _sends("Go."),
        (rules.texts("Beside it.", "After."), rules.unknown("hologram"), rules.results(SUCCESS)),
    ),
    Scenario(
        "unknown_event",
        "Between the pieces of a text, it sends an event and a delta of unknown types.",
        "rule: the API adds events",
        plays.unknown_event,
        _sends("Go.", partial=True),
        (
            rules.deltas("One ", "two."),
            rules.texts("One two."),
            rules.unknown("content_block_shimmer", "aroma_delta"),
            rules.results(SUCCESS),
        ),
    ),
    Scenario(
        "unknown_key",
        "A message has unknown keys at each level, and an unknown value for a known key.",
        "rule: every release of the CLI adds fields",
        plays.unknown_key,
        _sends("Go."),
        (rules.texts("Spiced."), rules.results(SUCCESS)),
    ),
    Scenario(
        "unknown_request",
        "It sends a control request of an unknown subtype, and waits for the answer.",
        "rule: the CLI waits for an answer to each of its requests",
        plays.unknown_request,
        _sends("Go.", permission=ALLOWS),
        (rules.refused_unknown(), rules.texts("Answered."), rules.results(SUCCESS)),
    ),
    Scenario(
        "long_line",
        "It sends a text of 20 MiB in one line.",
        "recording 11_huge",
        plays.long_line,
        _sends("Go."),
        (rules.texts("x" * plays.LONG, "After."), rules.results(SUCCESS)),
    ),
    Scenario(
        "many_deltas",
        "It sends 10,000 pieces of a text without a pause.",
        "recording 19_slowread_long_6",
        plays.many_deltas,
        _sends("Go.", partial=True),
        (rules.deltas(*plays.MANY), rules.texts("".join(plays.MANY)), rules.results(SUCCESS)),
    ),
    Scenario(
        "half_emoji",
        "Two pieces each have one half of a character, and a text ends with half a character.",
        "recording 10_unicode",
        plays.half_emoji,
        _sends("Go.", partial=True),
        (rules.half_characters(), rules.half_text(), rules.results(SUCCESS)),
    ),
    Scenario(
        "noise",
        "Between its lines, it writes plain text, blank lines, and a message that ends with CRLF.",
        "rule: programs that the CLI starts may write to its output",
        plays.noise,
        _sends("Go."),
        (rules.texts("Before.", "With a carriage return.", "After."), rules.results(SUCCESS)),
    ),
    Scenario(
        "not_objects",
        "Between its lines, it writes JSON that is not an object.",
        "rule: a message is an object",
        plays.not_objects,
        _sends("Go."),
        (rules.texts("Before.", "After."), rules.results(SUCCESS)),
        fails=True,
    ),
    Scenario(
        "garbage",
        "Between its lines, it writes the first half of a message.",
        "rule: nothing after garbage is lost",
        plays.garbage,
        _sends("Go."),
        (rules.texts("Before.", "After."), rules.results(SUCCESS)),
        fails=True,
    ),
    Scenario(
        "not_utf8",
        "Between its lines, it writes a message with bytes that are not UTF-8.",
        "rule: nothing after garbage is lost",
        plays.not_utf8,
        _sends("Go."),
        (rules.texts("Before.", "After."), rules.results(SUCCESS)),
        fails=True,
    ),
    Scenario(
        "stderr_flood",
        "It writes 8 MiB to its standard error in the middle of a turn.",
        "recording 16_anthropic_log_debug",
        plays.stderr_flood,
        _sends("Go."),
        (rules.texts("Before.", "After."), rules.results(SUCCESS)),
    ),
    Scenario(
        "stall",
        "It pauses for three seconds in the middle of a line.",
        "recording 18_hold",
        plays.stall,
        _sends("Go."),
        (rules.texts("In two halves.", "After."), rules.results(SUCCESS)),
    ),
    *(
        Scenario(
            f"exit_{code}",
            f"It exits in the middle of a turn, with exit code {code}.",
            "rule: a turn without a result has failed",
            plays.exits(code),
            _sends("Go."),
            (rules.texts("Half of it."), rules.no_result(), rules.error()),
            fails=True,
            exits=True,
        )
        for code in (0, 1, 130)
    ),
    Scenario(
        "cut_line",
        "Its output ends in the middle of a line.",
        "rule: a turn without a result has failed",
        plays.cut_line,
        _sends("Go."),
        (rules.texts("Before."), rules.no_result(), rules.error()),
        fails=True,
        exits=True,
    ),
    Scenario(
        "no_line_feed",
        "Its output ends with the result, without a line feed.",
        "rule: a complete line counts even without its line feed",
        plays.no_line_feed,
        _sends("Go."),
        (rules.texts("Before."), rules.results(SUCCESS)),
        exits=True,
    ),
    Scenario(
        "will_not_end",
        "It keeps running after its input ends.",
        "rule: a host first closes the input of its CLI, then sends SIGTERM",
        plays.will_not_end,
        _sends("Go."),
        (rules.texts("I stay."), rules.results(SUCCESS)),
        lingers=True,
    ),
)

#: All scenarios by name, in the order in which they run.
SCENARIOS = {scenario.name: scenario for scenario in _TABLE}
