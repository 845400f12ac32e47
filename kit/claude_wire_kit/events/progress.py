"""Find progress in text, such as "Running test 5 of 20".

The model writes the text, so a rule's time must be proportional to the text's length, for any text. A regular
expression with bounded repetitions finds the numbers. Then the rule reads the hundred characters before and after them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from claude_wire.support import one_line, prose


class Step(NamedTuple):
    """A step that a rule found.

    Attributes:
        at: the offset in the text, in characters. If there are several steps, the last one counts.
        name: the name of the work, such as ``Running tests``.
        completed: how many steps are done, from 0 to ``total``.
        total: how many steps there are, at least 1.
    """

    at: int
    name: str
    completed: int
    total: int


#: Returns the steps in text, in any order. A step counts only if 0 <= ``completed`` <= ``total`` and ``total`` > 0.
ProgressRule: TypeAlias = Callable[[str], Iterable[Step]]

#: The rules read at most this many characters, at the end of the text. So even hostile text takes at most 0.2 s.
MAX_READ = 128 * 1024
#: Maximum number of characters in a step's name.
NAME_CHARS = 80
#: A rule reads this many characters before and after the numbers.
LOOKED_AT = 100
#: A rule searches for the first number in this many characters before "of" or the slash.
NUMBER_CHARS = 16

#: Code in Markdown: a fenced block (to the end of the text if not closed), or a code span.
_CODE = re.compile(
    r"^ {0,3}(`{3,8}|~{3,8})(?![^\n]*`)[\s\S]*?(?:\n {0,3}\1|\Z)|`[^`\n]{1,200}`",
    re.MULTILINE,
)
#: The end of "5 of 20" and of "5/20", unless the next characters show a path, a date, a decimal or an amount. The
#: patterns begin with fixed characters, so the search takes 1 ns a character; with a lookbehind it would take 25 ns.
_OF = re.compile(r" of (\d{1,9})(?![\w%]|[.,:/-]\d|/)")
_SLASH = re.compile(r"/ ?(\d{1,9})(?![\w%]|[.,:/-]\d|/)")
#: The first number of text like "3 of 10" or "3/10". A rule searches for it before the "of" or the slash.
_NUMBER = re.compile(r"(?<![^\s(*#])#?([0-9]{1,9}) ?(?:out)?$")
#: "[5/20]", unless it is part of a link, an index or a path.
_BRACKETS = re.compile(r"\[(?<![\w\])/.[]\[) {0,3}(\d{1,9}) ?/ ?(\d{1,9}) {0,3}\](?![(\[\]/\w])")
#: "Testing took 5 of 20 minutes" counts minutes: the noun after the second number says what is counted.
_PLURAL = re.compile(r" [a-z]{2,30}[a-rt-z]s\b", re.IGNORECASE)
_UNIT = (
    r"(?:case|check|chunk|commit|component|epoch|file|frame|image|item|iteration|job|migration|module|package|page|phase"
    r"|record|request|row|shard|stage|step|suite|table|target|task|test)s?|batch(?:es)?|entry|entries|query|queries"
)
#: A unit of work, such as "files". "5 of 20 files" is progress; "5 of 20 points" may be a score.
_IS_UNIT = re.compile(_UNIT, re.IGNORECASE)
#: " tests" after the numbers.
_UNITS = re.compile(rf" (?:[a-z]{{2,20}} )?({_UNIT})\b", re.IGNORECASE)
#: " tests are complete" after the numbers, and " complete".
_DONE = re.compile(
    rf"(?: (?:[a-z]{{2,20}} )?({_UNIT}))?(?: (?:is|are|have|has|been|now|already)){{0,3}}"
    r" (?:complete|completed|done|finished|processed|so far)\b",
    re.IGNORECASE,
)
#: The text after "test 5 of 20" if the sentence reports progress: its end, a colon, or a word such as "passed".
_ENDS = re.compile(
    r"[*.!)\u2026 ]*(?:$|[:;,\u2013\u2014-]|(?<=[.!\u2026] )"
    r"|(?:(?:is|has|was) )?(?:now )?(?:complete|completed|done|failed|finished|in progress|ok|passed|running)\b)",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"%( (?:complete|completed|done|finished)\b(?! with))?", re.IGNORECASE)
_PERCENT_NUMBER = re.compile(r"(?<![^\s(*~])([0-9]{1,3})(?:\.[0-9]{1,9})? ?$")
#: Verbs that say, before "5 of 20 tests", that five tests are done.
_PAST = frozenset(
    ("completed", "converted", "downloaded", "finished", "migrated", "processed", "ran", "updated", "uploaded")
)
#: Words that may come between the beginning of a sentence and "step 5 of 20".
_OPENINGS = frozenset(("-", "*", "at", "currently", "now", "on", "with"))
#: Words in -ing that do not describe an activity.
_NO_VERBS = frozenset(
    (
        *("anything", "being", "during", "everything", "evening", "existing", "failing", "following", "having"),
        *("including", "meeting", "missing", "morning", "nothing", "regarding", "remaining", "something", "spring"),
        *("string", "thing", "warning"),
    )
)
#: Words that negate the verb after them, and words that begin a clause which does not report progress.
_DENIALS = frozenset(("avoid", "be", "cannot", "failed", "never", "no", "not", "only", "skip", "skipped", "stopped"))
_CONDITIONS = frozenset(("after", "before", "if", "once", "unless", "until", "when", "without"))
#: Characters to strip from the ends of a word or a name: emphasis, quotation marks, separators.
_DASHES = ("-", "\u2013", "\u2014")
_AROUND = " \t\r:;,.*_>\"'()“”" + "".join(_DASHES)


def find_step(text: str, rules: Iterable[ProgressRule]) -> Step | None:
    """Return the last valid step that the rules find in text, outside code; None if they find no step.

    The rules read only the last :data:`MAX_READ` characters.
    """
    text = text[-MAX_READ:]
    found = _last(text, rules)
    if found is not None and ("`" in text or "~~~" in text):
        found = _last(_CODE.sub(" ", text), rules)
    return found


def _last(text: str, rules: Iterable[ProgressRule]) -> Step | None:
    last: Step | None = None
    for rule in rules:
        for step in rule(text):
            if 0 <= step.completed <= step.total and step.total > 0 and (last is None or step.at >= last.at):
                last = step
    return last


def numbers_in_words(text: str) -> Iterator[Step]:
    """Find "Running test 5 of 20", "Test 5/20 passed", "Completed 5 of 20 tests" and "5/20 tests"."""
    for pattern in (_OF, _SLASH):
        for match in pattern.finditer(text):
            start, end = match.span()
            line = text[max(0, start - LOOKED_AT) : start].rpartition("\n")[2]
            number = _NUMBER.search(line, len(line) - NUMBER_CHARS)
            if number is not None:
                after = text[end : end + LOOKED_AT].partition("\n")[0]
                name = _counted(line[: number.start()], number[1], after, pattern is _SLASH)
                if name:
                    yield Step(start, name, int(number[1]), int(match[1]))


def _counted(before: str, number: str, after: str, slash: bool) -> str:
    """Return what the two numbers count, according to the rest of their line. Empty if they do not count work."""
    words = before.rstrip(" (:*.\u2026").split()
    noun = words[-1].strip(_AROUND).lower() if words else ""
    is_unit = noun == "progress" or _IS_UNIT.fullmatch(noun) is not None
    done, units = _DONE.match(after), _UNITS.match(after)
    if done is not None and (done[1] or not is_unit):
        return "" if _is_denied(words) else _doing(words) or _name(done[1] or "Working")
    if units is not None:
        alone = not words and not after[units.end() :].strip(_AROUND)
        says = words and words[-1].lower().strip(_AROUND) in _PAST and not _is_denied(words[:-1])
        if alone or says:
            return _name(units[1])
    if not words or _PLURAL.match(after):
        return ""
    name = _doing(words) if is_unit or not slash else ""
    if name or not is_unit or not _ENDS.match(after) or not _opens(words[:-1]):
        return name
    if noun == "progress":
        return "Working"
    return _rest_of_line(after, 0) or (_name(noun) if noun.endswith("s") else f"{_name(noun)} {number}")


def _opens(words: list[str]) -> bool:
    """Return True if a sentence begins after these words, or with them, as in "Now on step 5 of 20"."""
    last = words[-1].lower() if words else ""
    return (not last or last in _OPENINGS or last[-1] in ".!?:;,") and not _is_denied(words)


def percentages(text: str) -> Iterator[Step]:
    """Find "25% complete" and "Progress: 25%". A subagent's percentage does not count."""
    for match in _PERCENT.finditer(text):
        start = match.start()
        line = text[max(0, start - LOOKED_AT) : start].rpartition("\n")[2]
        number = _PERCENT_NUMBER.search(line, len(line) - NUMBER_CHARS)
        if number is None or "agent" in line.lower():
            continue
        words = line[: number.start()].split()
        if not _is_denied(words) if match[1] else words and words[-1].strip(_AROUND).lower() == "progress":
            yield Step(start, "Working", int(number[1]), 100)


def numbers_in_brackets(text: str) -> Iterator[Step]:
    """Find "[5/20] Building", which build tools print. Skip "[05/20]" and "[5/2024]", which look like dates."""
    for match in _BRACKETS.finditer(text):
        completed, total = int(match[1]), int(match[2])
        if str(completed) != match[1] or str(total) != match[2] or (completed <= 12 and 1900 <= total <= 2100):
            continue
        start, end = match.span()
        before = text[max(0, start - LOOKED_AT) : start].rpartition("\n")[2]
        name = _rest_of_line(text, end, separated=False) or _name(before) or f"Step {completed}"
        yield Step(start, name, completed, total)


#: The rules that a :class:`~claude_wire_kit.events.Bridge` uses by default.
PROGRESS_RULES: tuple[ProgressRule, ...] = (numbers_in_words, percentages, numbers_in_brackets)


def _doing(words: list[str]) -> str:
    """Return the activity at the end of the words: "Running unit tests" for "... running unit test". Else return ""."""
    for index in range(len(words) - 2, max(-1, len(words) - 5), -1):
        if not words[index + 1].replace("-", "").isalpha():
            return ""
        verb = words[index].lstrip(_AROUND)
        if verb[-3:].lower() == "ing" and len(verb) > 4 and verb.isalpha():
            if verb.lower() in _NO_VERBS or _is_denied(words[:index]):
                return ""
            return _name(" ".join([verb, *words[index + 1 : -1], _plural(words[-1])]))
    return ""


def _is_denied(words: list[str]) -> bool:
    """Return True if the last words negate the text after them, or say that it will happen later."""
    for index, word in enumerate(reversed(words)):
        word = word.lower()
        if word.strip(_AROUND) in _CONDITIONS or (
            index < 2 and (word in _DENIALS or word.endswith(("n't", "n\u2019t")))
        ):
            return True
        if word[-1] in ".!?:;,":
            break
    return False


def _plural(noun: str) -> str:
    last = noun.lower()
    if last.endswith(("ss", "x", "z", "ch", "sh")):
        return noun + "es"
    if last.endswith("y") and last[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun if last.endswith("s") else noun + "s"


def _rest_of_line(text: str, at: int, separated: bool = True) -> str:
    """Return the rest of a line as a name. If ``separated``, return "" unless it begins with a colon or a dash."""
    rest = text[at : at + LOOKED_AT].partition("\n")[0]
    return "" if separated and rest.lstrip()[:1] not in (":", *_DASHES) else _name(rest)


def _name(text: str) -> str:
    name = text.strip(_AROUND)
    return one_line(name[:1].upper() + name[1:], NAME_CHARS, prose)
