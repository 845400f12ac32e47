"""Which flags a CLI has, by its ``--help`` and by what it refuses.

Many flags are hidden: the help does not have them. So the CLI is given those that this version knows beside one that
does not exist, and its parser names the first that it does not know. It starts nothing then.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from claude_wire.flags import kinds
from claude_wire.flags.flags import Flag, Flags, flag_of

__all__ = ["FlagsFound", "find_flags"]

#: What a host of the protocol has no use for, or sets by itself; ``extra_args`` of ``ClaudeOptions`` takes them.
WITHOUT_A_FIELD = re.findall(
    r"\S+",
    """
--allow-dangerously-skip-permissions --autocompact --ax-screen-reader --background --bare --brief --chrome --cloud
--dangerously-skip-permissions --desktop --disable-slash-commands --environment
--exclude-dynamic-system-prompt-sections --file --from-pr --help --ide --input-format --name --no-chrome
--output-format --plugin-url --print --prompt-suggestions --remote-control
--remote-control-session-name-prefix --restricted --safe-mode --system-prompt-snapshot --teleport --tmux --verbose
--version --worktree
""",
)

#: A flag, and a word, that no CLI has.
NO_FLAG, NO_WORD = "--no-such-flag", "no-such-word"

_IN_HELP = re.compile(r"^ {2}(?:-\w, )?(--[\w-]+(?:, --[\w-]+)*)", re.MULTILINE)
_UNKNOWN = re.compile(r"unknown option '(--[\w-]+)")
#: A complaint about the value of a flag, with the words that the flag takes. Of a long line the end is not looked at.
_WORDS = re.compile(
    r"(?<![\w-])(--[\w-]+)(?![\w-])[^\n]{0,200}?(?:choices are|options are:|one of:|values:) ([\w, -]+)"
)


@dataclasses.dataclass
class FlagsFound:
    """What a CLI says of flags."""

    #: In its help, and neither in the table of flags nor among those that need no field.
    new: list[str]
    #: In the table, and refused.
    gone: list[str]
    #: The words that a flag takes and the table has not, and those that the table has and the flag does not take.
    new_words: dict[str, list[str]]
    gone_words: dict[str, list[str]]
    #: How many flags the help lists, and of how many the parser has said whether it knows them.
    listed: int = 0
    asked: int = 0


def find_flags(run: Callable[[list[str]], str]) -> FlagsFound:
    """Ask a CLI for its flags. ``run`` runs it with arguments and returns what it has written, on both streams."""
    table = {flag.name: flag for one in dataclasses.fields(Flags) if (flag := flag_of(one))}
    spellings = [spelled.split(", ") for spelled in _IN_HELP.findall(run(["--help"]))]
    listed = {name for names in spellings for name in names}
    known = {*table, *WITHOUT_A_FIELD}
    found = FlagsFound([names[-1] for names in spellings if known.isdisjoint(names)], [], {}, {})
    found.listed = len(spellings)
    if not spellings:
        return found  # it has no help, so it may take any flag
    asked = {name: flag for name, flag in table.items() if flag.known or name not in listed}
    count = len(asked)
    while True:
        said = run(["-p", *(_argument(flag) for flag in asked.values()), NO_FLAG])
        refused = [name for name in _UNKNOWN.findall(said) if name in asked]
        worded = [(name, words) for name, words in _WORDS.findall(said) if name in asked]
        found.gone += refused
        for name, listed_words in worded:
            words = [word.strip() for word in listed_words.split(",")]
            if new := [word for word in words if asked[name].known and word not in asked[name].known]:
                found.new_words[name] = new
            # It may take a word that it does not list.
            unlisted = [word for word in asked[name].known if word not in words]
            if gone := [word for word in unlisted if name in run(["-p", f"{name}={word}", NO_FLAG])]:
                found.gone_words[name] = gone
        if not refused and not worded:
            # Those that were left are known if it names, after them, the one that nobody knows.
            found.asked = count if NO_FLAG in _UNKNOWN.findall(said) else 0
            return found
        for name in (*refused, *dict(worded)):
            del asked[name]


def _argument(flag: Flag) -> str:
    """The flag with a value that it may take; one with words, with none of them."""
    if flag.kind is kinds.BOOL:
        return flag.name
    value = NO_WORD if flag.known else "1" if flag.kind in (kinds.INT, kinds.NUMBER) else "{}"
    return f"{flag.name}={value}"
