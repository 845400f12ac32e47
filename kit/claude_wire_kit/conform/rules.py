"""The rules that a host must keep in a scenario. Each public function returns a :class:`Rule`.

``@_rule`` makes most of them from a check, whose first argument, ``seen``, is the evidence of a scenario. For example,
``texts("Hello.")`` returns the rule that the host prints the text ``Hello.``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec

from claude_wire import InvalidLine, UnknownMessage, decode
from claude_wire.errors import InvalidLineError
from claude_wire.support import fields_of, items_of, one_line
from claude_wire_kit.conform.evidence import Evidence, Object
from claude_wire_kit.conform.plays import UNKNOWN_REQUEST

P = ParamSpec("P")

#: The types of lines that a host may write to the CLI.
HOST_TYPES = {"user", "control_request", "control_response", "control_cancel_request", "keep_alive"}
#: What is wrong if the agent did not write its exit code.
NOT_ENDED = "the agent was killed before it could exit, or it still runs without its host"


class Rule(NamedTuple):
    """Something that must be true after a scenario."""

    #: Unique within the scenario.
    name: str
    #: The rule in one sentence, for the reports.
    says: str
    #: Returns what is wrong, or None if the rule was kept.
    check: Callable[[Evidence], str | None]


def _rule(name: str, says: str) -> Callable[[Callable[Concatenate[Evidence, P], str | None]], Callable[P, Rule]]:
    """Turn a check into a function that returns the rule.

    The function takes the arguments of the check, except ``seen``.
    """

    def decorated(check: Callable[Concatenate[Evidence, P], str | None]) -> Callable[P, Rule]:
        @wraps(check)
        def rule(*args: P.args, **options: P.kwargs) -> Rule:
            def check_with_arguments(seen: Evidence) -> str | None:
                return check(seen, *args, **options)

            return Rule(name, says, check_with_arguments)

        return rule

    return decorated


def _equal(found: Any, wanted: Any) -> str | None:
    return None if found == wanted else f"{shown(found)}, expected {shown(wanted)}"


def shown(value: Any) -> str:
    """Return a value as JSON, shortened and made safe to print."""
    return one_line(json.dumps(value), 120)


# --- rules of every scenario


@_rule("starts", "The host starts the program of `CLAUDE_WIRE_CONFORM_CLI` as its CLI.")
def starts(seen: Evidence) -> str | None:
    return None if seen.recording is not None else "the host did not start it"


@_rule("ends", "The host ends by itself within the time limit, with exit code 0.")
def ends(seen: Evidence) -> str | None:
    if seen.code is None:
        return f"it was killed after {seen.limit:g} s"
    return None if seen.code == 0 else f"exit code {seen.code}"


@_rule("lines", "Each line that the host prints has a form of this page.")
def prints_lines(seen: Evidence) -> str | None:
    wrong = seen.wrong_lines
    return f"{len(wrong)} other lines, the first: {one_line(repr(wrong[0]), 120)}" if wrong else None


@_rule("wire", "Each line that the host writes to the agent is a message that hosts may send.")
def writes_messages(seen: Evidence) -> str | None:
    for line in seen.sent_lines:
        try:
            message = decode(line)
        except InvalidLineError as error:
            return f"a line that cannot be read: {error.line.reason}"
        known = not isinstance(message, (InvalidLine, UnknownMessage))
        if not known or json.loads(line).get("type") not in HOST_TYPES:
            return f"a line of type {shown(json.loads(line).get('type'))}"
    return None


def flags(**wanted: Any) -> Rule:
    names = "".join(f", `--{name.replace('_', '-')}`" for name in wanted)
    streams = "`--input-format stream-json`, `--output-format stream-json`, `--verbose`"

    @_rule("flags", f"The agent is started with {streams}{names}.")
    def check(seen: Evidence) -> str | None:
        options = seen.options
        if options is None:
            return "flags that cannot be read"
        needed = {"input_format": "stream-json", "output_format": "stream-json", "verbose": True, **wanted}
        for name, value in needed.items():
            if getattr(options, name) != value:
                return f"--{name.replace('_', '-')} is {shown(getattr(options, name))}"
        return None

    return check()


@_rule("prompts", "The host writes each prompt to the agent once, unchanged and in order.")
def prompts(seen: Evidence, *texts: str) -> str | None:
    return _equal(seen.prompts, list(texts))


@_rule("leaves", "The host closes the input of the agent, and waits until the agent exits.")
def leaves(seen: Evidence) -> str | None:
    if not seen.end:
        return NOT_ENDED
    return None if seen.end["rc"] < 128 else f"the agent was ended by signal {seen.end['rc'] - 128}"


@_rule("leaves", "The host terminates the agent, which keeps running after its input ends.")
def terminates(seen: Evidence) -> str | None:
    if not seen.end:
        return NOT_ENDED
    return None if seen.end["rc"] == 143 else f"the agent ended with exit code {seen.end['rc']}"


@_rule("no_error", "The host reports no error.")
def no_error(seen: Evidence) -> str | None:
    errors = seen.of("error")
    return f"an error: {shown(errors[0]['message'])}" if errors else None


# --- rules about what the host prints


@_rule("text", "The host prints each text of the model once, complete and in order.")
def texts(seen: Evidence, *wanted: str) -> str | None:
    return _equal([line["text"] for line in seen.of("text")], list(wanted))


@_rule("delta", "The host prints each piece of a text when it arrives.")
def deltas(seen: Evidence, *wanted: str) -> str | None:
    found = [line["text"] for line in seen.of("delta")]
    return _equal(found, list(wanted)) if len(found) == len(wanted) else f"{len(found)} pieces of {len(wanted)}"


@_rule("delta", "The host prints the pieces. Each half of a character is unchanged or U+FFFD.")
def half_characters(seen: Evidence) -> str | None:
    found = _paired("".join(line["text"] for line in seen.of("delta")))
    wanted = ("Smile: \U0001f600.", "Smile: \ufffd\ufffd.")
    return None if found.startswith(wanted) and found.endswith("Cut: \ufffdAfter.") else shown(found)


@_rule("text", "The host prints the texts. Half of a character is unchanged or U+FFFD.")
def half_text(seen: Evidence) -> str | None:
    found = [_paired(line["text"]) for line in seen.of("text")]
    return _equal(found, ["Smile: \U0001f600.", "Cut: \ufffd", "After."])


def _paired(text: str) -> str:
    """Join surrogate pairs, and replace lone surrogates with U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@_rule("thinking", "The host prints the thinking of the model before its text.")
def thinking(seen: Evidence, text: str) -> str | None:
    kinds = [line["type"] for line in seen.printed if line["type"] in ("thinking", "text")]
    wrong = _equal([line["thinking"] for line in seen.of("thinking")], [text])
    return wrong or _equal(kinds, ["thinking", "text"])


@_rule("tool_use", "The host prints each tool use with its name and its input.")
def tool_uses(seen: Evidence, *wanted: tuple[str, Object]) -> str | None:
    return _equal([[line["name"], line["input"]] for line in seen.of("tool_use")], [list(one) for one in wanted])


@_rule("tool_result", "The host prints each tool result with its content and the id of the tool use.")
def tool_results(seen: Evidence, *wanted: tuple[str | None, bool], of: Sequence[int] | None = None) -> str | None:
    """Check the results of tools.

    Args:
        seen: what the host did.
        wanted: the text and ``is_error`` of each result. None allows any text.
        of: the index of the tool use that each result belongs to. By default the results are in the order of the tool
            uses.
    """
    found = seen.of("tool_result")
    contents = [[_plain(line["content"]), bool(line.get("is_error"))] for line in found]
    for content, (text, _) in zip(contents, wanted, strict=False):
        content[0] = content[0] if text is not None else None
    wrong = _equal(contents, [list(one) for one in wanted])
    ids = [line["id"] for line in seen.of("tool_use")]
    order = range(len(wanted)) if of is None else of
    if wrong is None and [line["tool_use_id"] for line in found] != [ids[place] for place in order if place < len(ids)]:
        return "a result does not have the id of its tool use"
    return wrong


def _plain(content: Any) -> Any:
    """Return the text of a tool's result, which is a string or a list of blocks."""
    blocks = items_of(content)
    return "".join(str(fields_of(block).get("text", block)) for block in blocks) if blocks else content


@_rule("user", "The host prints the prompt that the agent sends back as a line of type `user`.")
def users(seen: Evidence, *wanted: str) -> str | None:
    return _equal([line["text"] for line in seen.of("user")], list(wanted))


@_rule("init", "The host prints the id of the session.")
def session(seen: Evidence, id: str) -> str | None:
    return _equal([line["session_id"] for line in seen.of("init")], [id])


def results(*wanted: tuple[str, bool], text: str | None = None, output: Any = None) -> Rule:
    """Return the rule about the results of turns.

    Args:
        wanted: the subtype and ``is_error`` of each result.
        text: the text of the last result. None allows any.
        output: the structured output of the last result. None allows any.
    """
    what = "The result is printed" if len(wanted) == 1 else f"{len(wanted)} results are printed"

    @_rule("result", f"{what}: {', '.join(subtype for subtype, _ in wanted)}.")
    def check(seen: Evidence) -> str | None:
        found = seen.of("result")
        wrong = _equal([[line["subtype"], line["is_error"]] for line in found], [list(one) for one in wanted])
        if wrong is None and text is not None:
            wrong = _equal(found[-1].get("result"), text)
        return _equal(found[-1].get("structured_output"), output) if wrong is None and output is not None else wrong

    return check()


@_rule("result", "The host prints no result, because the agent sent none.")
def no_result(seen: Evidence) -> str | None:
    return _equal([line["subtype"] for line in seen.of("result")], [])


@_rule("error", "The host reports an error: the agent ended in the middle of a turn.")
def error(seen: Evidence) -> str | None:
    return None if seen.of("error") else "no error was printed"


@_rule("rate_limit", "The host prints the status of the rate limit.")
def rate_limit(seen: Evidence, status: str) -> str | None:
    return _equal([line["status"] for line in seen.of("rate_limit")], [status])


def unknown(*names: str) -> Rule:
    @_rule("unknown", f"The host prints as `unknown`: {', '.join(f'`{name}`' for name in names)}.")
    def check(seen: Evidence) -> str | None:
        return _equal([line["name"] for line in seen.of("unknown")], list(names))

    return check()


@_rule("callback", "The host calls the callback once for each request of the agent, with its values.")
def called(seen: Evidence, kind: str, *wanted: Object) -> str | None:
    return _equal([{key: line.get(key) for key in wanted[0]} for line in seen.of(kind)], list(wanted))


# --- rules about what the host writes to the agent


def answered(subtype: str, says: str, wanted: Object) -> Rule:
    """Return the rule that the host answers the agent's only request of a subtype, once and with success.

    Args:
        subtype: the subtype of the request.
        says: the rule in one sentence.
        wanted: keys and values that the answer must have. It may have more.
    """

    @_rule("answer", says)
    def check(seen: Evidence) -> str | None:
        questions = seen.asked(subtype)
        if len(questions) != 1:
            return f"the agent sent {len(questions)} requests instead of one"
        given = seen.answers.get(questions[0][0], [])
        if len(given) != 1:
            return f"the request has {len(given)} answers"
        payload = given[0].get("response")
        if given[0].get("subtype") == "success" and isinstance(payload, dict) and payload.items() >= wanted.items():
            return None
        return f"the answer is {shown(given[0].get('response', given[0].get('error')))}"

    return check()


@_rule("answer", "The host answers the unknown request once, with an error.")
def refused_unknown(seen: Evidence) -> str | None:
    return _equal([one.get("subtype") for one in seen.answers.get(UNKNOWN_REQUEST, [])], ["error"])


@_rule("interrupt", "The host sends one interrupt request before the next prompt.")
def interrupted(seen: Evidence) -> str | None:
    if len(seen.requests("interrupt")) != 1:
        return f"{len(seen.requests('interrupt'))} requests"
    kinds = [fields_of(line.get("request")).get("subtype", line.get("type")) for line in seen.sent]
    return _equal([kind for kind in kinds if kind in ("user", "interrupt")], ["user", "interrupt", "user"])


@_rule("schema", "The agent gets the schema from `--json-schema` or from `jsonSchema` in `initialize`.")
def schema(seen: Evidence, wanted: Object) -> str | None:
    given: list[Any] = [request.get("jsonSchema") for request in seen.requests("initialize")]
    if seen.options is not None:
        given.append(seen.options.json_schema)
    return None if wanted in given else f"it got {shown([one for one in given if one is not None])}"
