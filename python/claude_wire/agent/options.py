"""Parse an agent's command line and environment into typed fields, by the rules of CLI 2.1.331.

Parsing reads no files and starts no process.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from claude_wire.flags import kinds
from claude_wire.flags.flags import Flag, Flags, flag_of
from claude_wire.support.arguments import require_one_of
from claude_wire.support.text import one_line

#: Alternative spelling of a flag -> flag.
ALIASES = {
    "--allowed-tools": "--allowedTools",
    "--disallowed-tools": "--disallowedTools",
    "-c": "--continue",
    "-d": "--debug",
    "-h": "--help",
    "-n": "--name",
    "-p": "--print",
    "-r": "--resume",
    "-v": "--version",
    "-w": "--worktree",
}

#: Flags without a field and without a value. An argument after one of these flags is the prompt; after any other
#: unknown flag, an argument without a dash is the value of the flag.
WITHOUT_VALUE = frozenset(
    [
        "--allow-dangerously-skip-permissions",
        "--ax-screen-reader",
        "--background",
        "--bare",
        "--bg",
        "--brief",
        "--chrome",
        "--dangerously-skip-permissions",
        "--desktop",
        "--disable-slash-commands",
        "--exclude-dynamic-system-prompt-sections",
        "--ide",
        "--no-chrome",
        "--restricted",
        "--safe-mode",
        "--tmux",
    ]
)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=True)
class AgentOptions(Flags):
    """An agent's command line, with one field for each flag of the CLI. :meth:`parse` returns it.

    The flags have the same fields as in :class:`~claude_wire.ClaudeOptions`. Lists are tuples of str, and paths are
    str. A JSON object is a dict; any other text for such a flag remains a str, the path of a file. ``mcp_config`` is a
    tuple. Unknown flags, and unknown words of a flag, are accepted, and stored in ``extra_args``.

    Attributes:
        prompt: the argument that is not a flag; None if there is no prompt.
        print: give one answer, then exit (``--print``).
        version: print the version, then exit (``--version``).
        help: print the flags, then exit (``--help``).
        verbose: True if the command line has ``--verbose``.
        input_format: ``"text"`` or ``"stream-json"``.
        output_format: ``"text"``, ``"json"`` or ``"stream-json"``.
        reads_session_state: the host wants ``session_state_changed`` messages: the environment has
            ``CLAUDE_CODE_SDK_READS_SESSION_STATE=1``, which both official SDKs set.
        argv: the parsed arguments, without the program.
    """

    prompt: str | None = None
    print: bool = False
    version: bool = False
    help: bool = False
    verbose: bool = False
    input_format: str = "text"
    output_format: str = "text"
    reads_session_state: bool = False
    argv: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    @classmethod
    def parse(cls, argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> AgentOptions:
        """Read a command line, such as :meth:`ClaudeOptions.argv` returns.

        ``--flag value`` and ``--flag=value`` mean the same. If a flag is repeated, the last value counts; a flag with
        several values keeps all of them. After ``--`` no argument is a flag.

        Args:
            argv: the command line, starting with the program as in ``sys.argv``.
            environ: the environment.

        Raises:
            ValueError: a value is missing, or the flag does not accept the value. The message begins with the flag.
        """
        return cls(
            **_Parser(argv[1:]).values,
            argv=tuple(argv[1:]),
            reads_session_state=environ.get("CLAUDE_CODE_SDK_READS_SESSION_STATE") == "1",
        )


#: Flag name -> field.
FLAGS: dict[str, tuple[str, Flag]] = {
    flag.name: (one.name, flag) for one in dataclasses.fields(Flags) for flag in [flag_of(one)] if flag
}
_SWITCHES = {f"--{name}": name for name in ("print", "version", "help", "verbose")}
_FORMATS = {
    "--input-format": ("input_format", ("text", "stream-json")),
    "--output-format": ("output_format", ("text", "json", "stream-json")),
}


class _Parser:
    """Parses one command line into field values."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.values: dict[str, Any] = {}
        self._rest = list(reversed(arguments))
        while self._rest:
            argument = self._rest.pop()
            if argument == "--":
                for word in reversed(self._rest):
                    self._word(word)
                return
            if argument.startswith("-") and argument != "-":
                self._flag(argument)
            else:
                self._word(argument)

    def _word(self, word: str) -> None:
        self.values.setdefault("prompt", word)

    def _flag(self, argument: str) -> None:
        name, equals, text = argument.partition("=")
        name = ALIASES.get(name, name)
        given = text if equals else None
        if name in _SWITCHES:
            self._switch(name, _SWITCHES[name], given)
        elif name in _FORMATS:
            field, known = _FORMATS[name]
            text = self._required(name, given)
            require_one_of(name, text, known)
            self.values[field] = text
        elif name not in FLAGS:
            if given is None and name not in WITHOUT_VALUE:
                given = self._next()
            self._extra(name, given)
        else:
            field, flag = FLAGS[name]
            if flag.kind.takes == "bool":
                self._switch(name, field, given)
            elif flag.optional and given is None and (given := self._next()) is None:
                if flag.kind is kinds.BOOL_OR_TEXT:
                    self.values[field] = True
                else:
                    self._extra(name, None)
            else:
                self._read(field, flag, self._required(name, given))
                while flag.variadic and not equals and (more := self._next()) is not None:
                    self._read(field, flag, more)

    def _next(self) -> str | None:
        """Consume and return the next argument. Return None if it is a flag or if there are no more arguments."""
        if not self._rest or (self._rest[-1].startswith("-") and self._rest[-1] != "-"):
            return None
        return self._rest.pop()

    def _required(self, name: str, given: str | None) -> str:
        if given is not None:
            return given
        if not self._rest:
            raise ValueError(f"{one_line(name)} needs a value")
        return self._rest.pop()

    def _switch(self, name: str, field: str, given: str | None) -> None:
        if given is not None:
            raise ValueError(f"{name} takes no value")
        self.values[field] = True

    def _extra(self, name: str, text: str | None) -> None:
        self.values.setdefault("extra_args", {})[name.lstrip("-") or name] = text

    def _read(self, field: str, flag: Flag, text: str) -> None:
        try:
            value = flag.kind.read(text)
        except ValueError:
            raise ValueError(f"{flag.name} expects {flag.kind.expects}, got {one_line(text)!r}") from None
        if flag.known and not {*(value if flag.kind.several else (value,))} <= {*flag.known}:
            self._extra(flag.name, text)
        elif (flag.least is not None and value < flag.least) or (flag.above is not None and not value > flag.above):
            least = f"at least {flag.least}" if flag.above is None else f"more than {flag.above}"
            raise ValueError(f"{flag.name} must be {least}")
        elif flag.kind.several:
            self.values[field] = (*self.values.get(field, ()), *value)
        else:
            self.values[field] = value
