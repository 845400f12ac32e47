"""How far the work is, found in text: "Running test 5 of 20". Knows text only.

The model writes the text, so each rule takes time in proportion to its length, whatever it holds. An expression looks
for two numbers; it is bounded in every repetition. Around them a rule looks at no more than some hundred characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from claude_wire.foundation.printable import one_line, prose

__all__ = ["MOST_READ", "PROGRESS_RULES", "ProgressRule", "Step", "find_step", "numbers_in_brackets", "numbers_with_of"]


class Step(NamedTuple):
    """What a rule has found.

    Attributes:
        at: where in the text, in characters. Of several steps in a text, the last one counts.
        name: what is being done, such as ``Running tests``.
        completed: how many steps, from 0 to ``total``.
        total: of how many, at least 1.
    """

    at: int
    name: str
    completed: int
    total: int


#: Finds steps in a text, in any order. A step counts only if 0 <= ``completed`` <= ``total`` and ``total`` > 0.
ProgressRule: TypeAlias = Callable[[str], Iterable[Step]]

#: Of a text, at most so many characters are read, from its end. A hostile text then takes 0.2 s.
MOST_READ = 256 * 1024
#: A name of a step has at most this many characters.
NAME_CHARS = 80
#: A rule looks at this many characters on either side of the numbers.
LOOKED_AT = 100

#: Fenced blocks, up to the end of the text if they are not closed, and code within a line.
_CODE = re.compile(
    r"^ {0,3}(`{3,8}|~{3,8})(?![^\n]*`)[\s\S]*?(?:\n {0,3}\1|\Z)|`[^`\n]{1,200}`",
    re.MULTILINE,
)
#: The end of "5 of 20". What follows may not make it a part of a path, a date, a decimal or an amount. Both expressions
#: begin with fixed characters, which are found at 1 ns a character; with a look behind it were 25.
_OF = re.compile(r" of (\d{1,9})(?![\w%]|[.,:/-]\d|/)")
#: "[5/20]", but not in a link, an index or a path.
_BRACKETS = re.compile(r"\[(?<![\w\])/.[]\[) {0,3}(\d{1,9}) ?/ ?(\d{1,9}) {0,3}\](?![(\[\]/\w])")
#: "Testing took 5 of 20 minutes" counts minutes: the second number belongs to the noun behind it.
_PLURAL = re.compile(r" [a-z]{2,30}[a-rt-z]s\b", re.IGNORECASE)
#: Words in -ing that tell of nothing being done.
_NO_VERBS = frozenset(
    (
        *("anything", "being", "during", "everything", "evening", "existing", "failing", "following", "having"),
        *("including", "meeting", "missing", "morning", "nothing", "regarding", "remaining", "something", "spring"),
        *("string", "thing", "warning"),
    )
)
#: Words that, before the verb, say that nothing is being done.
_DENIALS = frozenset(("avoid", "cannot", "failed", "never", "no", "not", "skip", "skipped", "stopped", "without"))
#: What is stripped from the ends of a word or a name: marks of emphasis, quotes, separators.
_DASHES = ("-", "\u2013", "\u2014")
_AROUND = " \t\r:;,.*_>\"'()“”" + "".join(_DASHES)


def find_step(text: str, rules: Iterable[ProgressRule]) -> Step | None:
    """Return the last valid step that the rules find in a text, outside of code. None if there is none.

    Of a longer text the rules get the last 256 Ki characters.
    """
    text = text[-MOST_READ:]
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


def numbers_with_of(text: str) -> Iterator[Step]:
    """Finds "Running test 5 of 20", a verb in -ing with one to three words before the numbers, and "step 5 of 20"."""
    for match in _OF.finditer(text):
        start, end = match.span()
        *words, number = text[max(0, start - LOOKED_AT) : start].rpartition("\n")[2].split() or [""]
        if not (number.isascii() and number.isdecimal() and len(number) <= 9):
            continue
        name = _doing(words)
        if not name and words and words[-1].strip(_AROUND).lower() == "step" and not _is_denied(words[:-1]):
            name = _rest_of_line(text, end) or f"Step {number}"
        if name and not _PLURAL.match(text, end, end + LOOKED_AT):
            yield Step(start, name, int(number), int(match[1]))


def numbers_in_brackets(text: str) -> Iterator[Step]:
    """Finds "[5/20] Building", as builds print it. "[05/20]" and "[5/2024]" are taken for dates."""
    for match in _BRACKETS.finditer(text):
        completed, total = int(match[1]), int(match[2])
        if str(completed) != match[1] or str(total) != match[2] or (completed <= 12 and 1900 <= total <= 2100):
            continue
        start, end = match.span()
        before = text[max(0, start - LOOKED_AT) : start].rpartition("\n")[2]
        name = _rest_of_line(text, end, separated=False) or _name(before) or f"Step {completed}"
        yield Step(start, name, completed, total)


#: The rules of a :class:`~claude_wire.bridge.Bridge` that is given no others.
PROGRESS_RULES: tuple[ProgressRule, ...] = (numbers_with_of, numbers_in_brackets)


def _doing(words: list[str]) -> str:
    """What "... running unit test" says is being done: "Running unit tests". Empty if it says nothing."""
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
    """Whether one of the last two words says that what follows is not being done."""
    return any(word.lower() in _DENIALS or word.lower().endswith(("n't", "n\u2019t")) for word in words[-2:])


def _plural(noun: str) -> str:
    last = noun.lower()
    if last.endswith(("ss", "x", "z", "ch", "sh")):
        return noun + "es"
    if last.endswith("y") and last[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun if last.endswith("s") else noun + "s"


def _rest_of_line(text: str, at: int, separated: bool = True) -> str:
    """What follows on the line, behind a colon or a dash if it must be separated."""
    rest = text[at : at + LOOKED_AT].partition("\n")[0]
    return "" if separated and rest.lstrip()[:1] not in (":", *_DASHES) else _name(rest)


def _name(text: str) -> str:
    name = text.strip(_AROUND)
    return one_line(name[:1].upper() + name[1:], NAME_CHARS, prose)
