"""Find out which flags a CLI has, from its ``--help`` and from the flags that it refuses.

The help does not list hidden flags. So the CLI is called with the flags that this version knows, followed by one that
does not exist. Its parser names the first flag that it does not know, and the CLI exits before it starts anything.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from claude_wire.flags import kinds
from claude_wire.flags.flags import Flag, Flags, flag_of

__all__ = ["FlagsFound", "find_flags"]

#: Flags that need no field, because a host does not use them or always sets them. ``extra_args`` accepts them.
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

#: A flag and a word that no CLI knows.
NO_FLAG, NO_WORD = "--no-such-flag", "no-such-word"

_IN_HELP = re.compile(r"^ {2}(?:-\w, )?(--[\w-]+(?:, --[\w-]+)*)", re.MULTILINE)
_UNKNOWN = re.compile(r"unknown option '(--[\w-]+)")
#: Matches an error about the value of a flag, with the words that the flag accepts. The end of a long line is ignored.
_WORDS = re.compile(
    r"(?<![\w-])(--[\w-]+)(?![\w-])[^\n]{0,200}?(?:choices are|options are:|one of:|values:) ([\w, -]+)"
)


@dataclasses.dataclass
class FlagsFound:
    """The differences between the flags of a CLI and those of this version."""

    #: Flags in the CLI's help that this version does not have and that need a field.
    new: list[str]
    #: Flags of this version that the CLI refuses.
    gone: list[str]
    #: Flag -> words that only the CLI accepts (new), or that only this version knows (gone).
    new_words: dict[str, list[str]]
    gone_words: dict[str, list[str]]
    #: How many flags the help lists, and for how many the CLI's parser showed whether it knows them.
    listed: int = 0
    asked: int = 0


def find_flags(run: Callable[[list[str]], str]) -> FlagsFound:
    """Compare the flags of a CLI. ``run`` runs the CLI with arguments and returns what it wrote to both streams."""
    table = {flag.name: flag for one in dataclasses.fields(Flags) if (flag := flag_of(one))}
    spellings = [spelled.split(", ") for spelled in _IN_HELP.findall(run(["--help"]))]
    listed = {name for names in spellings for name in names}
    known = {*table, *WITHOUT_A_FIELD}
    found = FlagsFound([names[-1] for names in spellings if known.isdisjoint(names)], [], {}, {})
    found.listed = len(spellings)
    if not spellings:
        return found  # a CLI that prints no help may accept any flag
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
            # The CLI may accept a word that it does not list.
            unlisted = [word for word in asked[name].known if word not in words]
            if gone := [word for word in unlisted if name in run(["-p", f"{name}={word}", NO_FLAG])]:
                found.gone_words[name] = gone
        if not refused and not worded:
            # If the CLI names the flag that no CLI knows, it knows all flags before that.
            found.asked = count if NO_FLAG in _UNKNOWN.findall(said) else 0
            return found
        for name in (*refused, *dict(worded)):
            del asked[name]


def _argument(flag: Flag) -> str:
    """Return a flag with a valid value. A flag that accepts certain words gets a word that no CLI knows."""
    if flag.kind is kinds.BOOL:
        return flag.name
    value = NO_WORD if flag.known else "1" if flag.kind in (kinds.INT, kinds.NUMBER) else "{}"
    return f"{flag.name}={value}"
