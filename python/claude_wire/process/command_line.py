"""Check that a command line has the flags that a session needs.

A session runs a list of arguments unchanged, and a missing flag causes no error: without ``--permission-prompt-tool
stdio``, for example, the CLI refuses tools and never calls ``can_use_tool``.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
from collections import deque
from collections.abc import Iterator, Sequence

from claude_wire.flags import kinds
from claude_wire.flags.flags import Flags, flag_of

#: The file names that the CLI itself may have.
_CLI = frozenset(("claude", "claude.exe"))
#: The flags that decide who answers permission questions. If a flag is repeated, the last value counts.
_ASKS = "--permission-prompt-tool"
_ASKED = "--permission-prompts"
_FORMATS = ("--input-format", "--output-format")
_FLAGS = {flag.name: flag for flag in map(flag_of, dataclasses.fields(Flags)) if flag is not None}
_FLAGS.update((name, _FLAGS["--model"]) for name in _FORMATS)  # these flags have no field; each takes one str


def require_flags(argv: Sequence[str], *, asks: bool, by_flag: bool = True) -> None:
    """Check that a command line makes its program speak the protocol and ask for permission.

    Flags inside an argument also count, as in ``["ssh", "HOST", "claude --permission-prompt-tool stdio ..."]``. But
    they do not count inside the value of a CLI flag, or if the program is the CLI itself.

    Args:
        argv: the command line.
        asks: True if the session has a ``can_use_tool``.
        by_flag: True if agents with this dialect ask for permission only if a flag tells them to.

    Raises:
        ValueError: a flag is missing, or has a wrong value. The message says what to add.
    """
    argv = [os.fsdecode(argument) for argument in argv]
    for flag in _FORMATS:
        value = _last(flag, argv)
        if value == "stream-json" or (value is None and not _is_cli(argv[0])):
            continue
        found = "lacks it" if value is None else f"has {value!r}"
        raise ValueError(
            f"a session needs the arguments {flag!r}, 'stream-json', and the command line {found}; "
            "ClaudeOptions(...) writes all arguments that the CLI needs"
        )
    if not asks:
        return
    if _last(_ASKED, argv) == "none":
        raise ValueError(f"can_use_tool is never asked with the arguments {_ASKED!r}, 'none': leave them out")
    value = _last(_ASKS, argv)
    if value not in (None, "stdio"):
        raise ValueError(f"can_use_tool is never asked with another permission_prompt_tool than 'stdio' ({_ASKS})")
    if value is None and by_flag:
        raise ValueError(
            f"can_use_tool is never asked without the arguments {_ASKS!r}, 'stdio': add both to the command line; "
            "with ClaudeOptions(...) the session adds them"
        )


def asks_host(argv: Sequence[str]) -> bool:
    """Return True if a command line makes its program ask the host for permission."""
    argv = [os.fsdecode(argument) for argument in argv]
    return _last(_ASKS, argv) == "stdio" and _last(_ASKED, argv) != "none"


def resumed_session(argv: Sequence[str]) -> str | None:
    """Return the value of ``--resume`` if the command line runs the CLI itself on this machine; else None.

    A script called ``claude`` may run the CLI on another machine, or run another program, so it does not count. But a
    Node.js script counts, because npm installs the CLI as a Node.js script.
    """
    argv = [os.fsdecode(argument) for argument in argv]
    path = shutil.which(argv[0])
    if not _is_cli(argv[0]) or path is None:
        return None
    try:
        with open(path, "rb") as file:
            head = file.read(256).partition(b"\n")[0]  # Linux reads only 256 bytes of a "#!" line
    except OSError:
        return None
    if head.startswith(b"#!") and b"node" not in head:
        return None
    return _last("--resume", argv) or None


def _is_cli(program: str) -> bool:
    return os.path.basename(program) in _CLI


def _last(flag: str, argv: Sequence[str]) -> str | None:
    """Return a flag's last value, or None if the command line does not have the flag."""
    found: str | None = None
    pattern = re.compile(rf"(?:^|[\s'\"])({re.escape(flag)})(?:[\s=]+['\"]?([\w-]*)|$)")
    for name, value in _options(argv):
        if name == flag:
            found = value.strip("'\"")
        elif not name and flag in value:
            for match in pattern.finditer(value):
                found = match[2] or ""
    return found


def _options(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each known flag with its first value or ``""``. Yield ``("", TEXT)`` if TEXT may be a command line."""
    program, *arguments = argv
    words = deque(arguments)
    while words and words[0] != "--":
        word = words.popleft()
        name, joined, value = word.partition("=")
        flag = _FLAGS.get(name)
        if flag is None:
            if not _is_cli(program):  # if the program is the CLI itself, this is a value, such as a prompt
                yield "", word
            continue
        if not joined and flag.kind is not kinds.BOOL and words and not (flag.optional and words[0].startswith("-")):
            value = words[0]
            if value not in _FLAGS:  # otherwise the value is missing, and this is the next flag
                words.popleft()
            while flag.variadic and words and not words[0].startswith("-"):
                words.popleft()
        yield name, value
