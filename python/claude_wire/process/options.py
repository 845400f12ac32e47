"""The command line of the Claude Code CLI, built from typed fields.

Knows flags. Starts nothing and reads no configuration: what :meth:`ClaudeOptions.argv` returns is for
:func:`~claude_wire.open_process`. The flags are those of CLI 2.1.330.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from claude_wire.foundation.arguments import require_one_of, tells_where, type_of
from claude_wire.process.find_cli import find_cli

__all__ = [
    "ClaudeOptions",
    "Effort",
    "PermissionMode",
    "SettingSource",
    "Thinking",
    "ThinkingDisplay",
]

# The words that the CLI takes, for a flag or in a request.
PermissionMode: TypeAlias = Literal["default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]
Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
Thinking: TypeAlias = Literal["adaptive", "enabled", "disabled"]
ThinkingDisplay: TypeAlias = Literal["summarized", "omitted", "highlights"]
SettingSource: TypeAlias = Literal["user", "project", "local"]

T = TypeVar("T")
Path: TypeAlias = "str | os.PathLike[str]"
#: A JSON object, the text of one, or the path of a file that holds one: the CLI takes any of them for these flags.
FileOrJson: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


# --- From a field's value to arguments --------------------------------------------------------------------------------


class _Flag(NamedTuple):
    """How the value of one field is written on the command line."""

    name: str
    #: What the field takes, for the error message.
    takes: str
    #: One text for each time that the flag is to be written, or None if the value is of the wrong type.
    texts: Callable[[Any], list[str] | None]
    #: Always ``--flag=value``: the CLI declares it with an optional value, or claude-agent-sdk guards it so.
    joined: bool
    #: The words that the CLI takes as the value, or as an item of it; empty if it takes any.
    known: tuple[str, ...]
    #: A number must be at least this.
    least: int | None
    #: A number must be more than this.
    above: int | None


_Kind: TypeAlias = "tuple[str, Callable[[Any], list[str] | None]]"


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str)


def _is_items(value: Any) -> bool:
    # A str is a sequence too, of its characters: never what was meant.
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _text(value: Any) -> list[str] | None:
    return [value] if isinstance(value, str) else None


def _whole(value: Any) -> list[str] | None:
    return [str(value)] if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> list[str] | None:
    # As JSON, which has no NaN: a budget that no sum exceeds.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return [json.dumps(value, allow_nan=False)] if is_number else None


def _path(value: Any) -> list[str] | None:
    return [os.fspath(value)] if _is_path(value) else None


def _paths(value: Any) -> list[str] | None:
    return [os.fspath(path) for path in value] if _is_items(value) and all(map(_is_path, value)) else None


def _list(value: Any) -> list[str] | None:
    return [",".join(value)] if _is_items(value) and all(isinstance(item, str) for item in value) else None


def _json(value: Any) -> list[str] | None:
    # json writes ASCII, so that text which no command line can carry (a lone surrogate) gets through.
    return [json.dumps({**value}, allow_nan=False)] if isinstance(value, Mapping) else _text(value)


def _file_or_json(value: Any) -> list[str] | None:
    return _path(value) or _json(value)


def _files_or_json(value: Any) -> list[str] | None:
    if not _is_items(value):
        return _file_or_json(value)
    texts = [_file_or_json(item) for item in value]
    return None if None in texts else [text for one in texts for text in one or ()]


def _nothing(value: Any) -> list[str] | None:
    return [] if isinstance(value, bool) else None


def _flag(
    name: str,
    kind: _Kind,
    default: object = None,
    *,
    joined: bool = False,
    known: Any = None,
    least: int | None = None,
    above: int | None = None,
) -> Any:
    """A field for a flag. ``known`` is a Literal of the words that the CLI takes."""
    return dataclasses.field(
        default=default, metadata={"flag": _Flag(name, *kind, joined, get_args(known), least, above)}
    )


_BOOL: _Kind = "bool", _nothing
_TEXT: _Kind = "str", _text
_INT: _Kind = "int", _whole
_NUMBER: _Kind = "number", _number
_LIST: _Kind = "list of str", _list
_PATH: _Kind = "path", _path
_PATHS: _Kind = "sequence of paths", _paths
_JSON: _Kind = "str or mapping", _json
_FILE_OR_JSON: _Kind = "path, str or mapping", _file_or_json
_FILES_OR_JSON: _Kind = "path, str or mapping, or sequence of them", _files_or_json


#: Fields of claude-agent-sdk's options that have another name or place here, and what to write instead.
PLACES = {
    "add_dirs": "it is add_dir here, as the flag",
    "can_use_tool": "open_session(ClaudeOptions(...), can_use_tool=...)",
    "client_app": "open_session(..., extra_env={'CLAUDE_AGENT_SDK_CLIENT_APP': ...})",
    "cwd": "open_session(ClaudeOptions(...), cwd=...), or open_process(..., cwd=...)",
    "debug_stderr": "open_session(ClaudeOptions(...), stderr=...)",
    "enable_file_checkpointing": "open_session(..., extra_env={'CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING': 'true'})",
    "env": "open_session(ClaudeOptions(...), extra_env=...), which is merged into the host's; env= is the whole one",
    "extra_env": "open_session(ClaudeOptions(...), extra_env=...)",
    "hooks": "open_session(ClaudeOptions(...), hooks=...)",
    "load_timeout_ms": "claude_wire has no session store; WireTransport of claude_wire.integrations.agent_sdk has",
    "max_buffer_size": "open_process(argv, Decoder(max_line_bytes=...)); 128 MiB if not given",
    "mcp_servers": (
        "servers that the CLI runs: mcp_config={'mcpServers': {...}}; servers in this process: "
        "open_session(..., mcp_servers={...})"
    ),
    "output_format": "json_schema=..., the schema alone",
    "permission_prompt_tool_name": "it is permission_prompt_tool here, as the flag",
    "plugins": "plugin_dir=[...], the paths alone",
    "prompt": "session.query(...) or session.ask(...); for one answer: ClaudeOptions(...).argv(prompt)",
    "sandbox": "settings={'sandbox': {...}}",
    "session_store": "session_mirror=True gives transcript_mirror messages, to be stored by the host",
    "session_store_flush": "claude_wire has no session store; WireTransport of claude_wire.integrations.agent_sdk has",
    "skills": "allowed_tools=['Skill(NAME)'] and setting_sources=['user', 'project']",
    "stderr": "open_session(ClaudeOptions(...), stderr=...)",
    "user": "open_session(ClaudeOptions(...), user=...)",
    "verbatim_prompts": "claude_wire sends prompts as they are",
}

#: In the form that the CLI takes; it refuses others.
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def _in_words(cls: type[T]) -> type[T]:
    """Have the constructor refuse an argument that it does not have with the place where that goes."""
    told = tells_where(PLACES, owner=cls.__name__)(cls.__init__)

    @functools.wraps(told)
    def construct(self: T, *args: Any, **fields: Any) -> None:
        if args:
            example = f"{cls.__name__}(model=...), or {cls.__name__}(**fields) for a dict"
            raise TypeError(
                f"{cls.__name__} takes no positional arguments, and was given {type_of(args[0])}: {example}"
            )
        told(self, **fields)

    setattr(cls, "__init__", construct)  # noqa: B010 - mypy refuses the assignment
    return cls


@_in_words
@dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=True)
class ClaudeOptions:
    """The flags of the Claude Code CLI, one field for each, and :meth:`argv` to write them out.

    A field is named after its flag. None, False or an empty list writes nothing, but for ``tools`` and
    ``setting_sources``, where an empty list is a wish of its own. Nothing else is added: without ``system_prompt`` the
    CLI uses its own, for one. Linux takes no argument of 128 KiB or more (starting the CLI fails with ``OSError``);
    longer texts go into files, which the flags for prompts, settings, servers and agents take. ``repr()`` and error
    messages have the names of fields, and no values that may be prompts or keys.

    Attributes:
        cli_path: the CLI, taken as it is; None looks for it with :func:`find_cli`.
        system_prompt: in place of the CLI's own.
        system_prompt_file: the same, as a file.
        append_system_prompt: text behind the CLI's own system prompt.
        append_system_prompt_file: the same, as a file.
        tools: the built-in tools that there are: names, none (an empty list) or ``["default"]``.
        allowed_tools: tools and rules, such as ``"Bash(git *)"``, that are used without asking.
        max_turns: after this many turns the run ends with the result ``error_max_turns``.
        max_budget_usd: after this many dollars the run ends with the result ``error_max_budget_usd``.
        disallowed_tools: tools and rules that are refused.
        task_budget: tokens that the model is told to make do with.
        model: a model's full name or an alias (``"sonnet"``, ``"opus"``, ``"haiku"``).
        fallback_model: when that one is overloaded; several are separated by commas.
        betas: beta headers for API requests.
        permission_prompt_tool: who is asked for permission: ``"stdio"`` asks the host, by control requests; else the
            name of an MCP tool.
        permission_mode: ``"default"`` (or ``"manual"``), ``"acceptEdits"``, ``"plan"``, ``"auto"``, ``"dontAsk"`` or
            ``"bypassPermissions"``.
        continue_conversation: ``--continue``: go on with the last conversation of the working directory.
        resume: the id or the name of the session to go on with.
        session_id: a UUID for a new session.
        settings: a settings file, or settings as JSON.
        add_dir: more directories that tools may use.
        mcp_config: MCP servers as the object ``{"mcpServers": {...}}``, as JSON or as a file; or several of them.
        include_partial_messages: ``stream_event`` messages.
        include_hook_events: messages about hooks that start and end.
        strict_mcp_config: no MCP servers but those of ``mcp_config``.
        fork_session: give a resumed session a new id.
        resume_session_at: the UUID of the last message of the resumed session that still counts.
        resume_drops_turn: the UUID of the prompt whose turn that leaves out, for the CLI to check.
        session_mirror: ``transcript_mirror`` messages.
        setting_sources: of ``"user"``, ``"project"`` and ``"local"``; none with an empty list.
        plugin_dir: plugins for this session, as directories or zip files.
        agent: the agent that leads the session.
        agents: agents by name, as an object, as JSON or as a file.
        replay_user_messages: have user messages come back on standard output.
        forward_subagent_text: text and thinking of subagents too, not only their tools.
        no_session_persistence: write no transcript; the session cannot be resumed.
        extra_args: flags that have no field, without their dashes, and their values; None for a flag without one.
        thinking: ``"adaptive"``, ``"enabled"`` or ``"disabled"``.
        max_thinking_tokens: tokens for thinking, of older models.
        thinking_display: ``"summarized"``, ``"omitted"`` or ``"highlights"``.
        effort: ``"low"``, ``"medium"``, ``"high"``, ``"xhigh"`` or ``"max"``.
        json_schema: the schema that the result has to fit, as an object or as JSON.

    Where the CLI takes one of a few words, or a number within limits, any other value is refused. A word that this
    version does not know goes into ``extra_args``, with the name of the flag: ``{"permission-mode": "of_tomorrow"}``.

    Raises:
        TypeError: a field has a value of another type, or there is no field of that name; for those of
            claude-agent-sdk's options the message says where they go.
        ValueError: a value is none that the CLI takes; or two fields do not go together; or a value cannot be an
            argument: it has a NUL character, or no form in JSON or the system's encoding.
    """

    cli_path: Path | None = None
    # In the order in which claude-agent-sdk writes them, and --name=value where it does: tests compare the two.
    system_prompt: str | None = _flag("--system-prompt", _TEXT)
    system_prompt_file: Path | None = _flag("--system-prompt-file", _PATH)
    append_system_prompt: str | None = _flag("--append-system-prompt", _TEXT)
    append_system_prompt_file: Path | None = _flag("--append-system-prompt-file", _PATH)
    tools: Sequence[str] | None = _flag("--tools", _LIST)
    allowed_tools: Sequence[str] = _flag("--allowedTools", _LIST, ())
    max_turns: int | None = _flag("--max-turns", _INT, least=1)
    max_budget_usd: float | None = _flag("--max-budget-usd", _NUMBER, above=0)
    disallowed_tools: Sequence[str] = _flag("--disallowedTools", _LIST, ())
    task_budget: int | None = _flag("--task-budget", _INT, least=1)
    model: str | None = _flag("--model", _TEXT)
    fallback_model: str | None = _flag("--fallback-model", _TEXT)
    betas: Sequence[str] = _flag("--betas", _LIST, ())
    permission_prompt_tool: str | None = _flag("--permission-prompt-tool", _TEXT)
    permission_mode: PermissionMode | None = _flag("--permission-mode", _TEXT, known=PermissionMode)
    continue_conversation: bool = _flag("--continue", _BOOL, False)
    resume: str | None = _flag("--resume", _TEXT, joined=True)
    session_id: str | None = _flag("--session-id", _TEXT, joined=True)
    settings: FileOrJson | None = _flag("--settings", _FILE_OR_JSON)
    add_dir: Sequence[Path] = _flag("--add-dir", _PATHS, ())
    mcp_config: FileOrJson | Sequence[FileOrJson] | None = _flag("--mcp-config", _FILES_OR_JSON)
    include_partial_messages: bool = _flag("--include-partial-messages", _BOOL, False)
    include_hook_events: bool = _flag("--include-hook-events", _BOOL, False)
    strict_mcp_config: bool = _flag("--strict-mcp-config", _BOOL, False)
    fork_session: bool = _flag("--fork-session", _BOOL, False)
    resume_session_at: str | None = _flag("--resume-session-at", _TEXT, joined=True)
    resume_drops_turn: str | None = _flag("--resume-drops-turn", _TEXT, joined=True)
    session_mirror: bool = _flag("--session-mirror", _BOOL, False)
    setting_sources: Sequence[SettingSource] | None = _flag(
        "--setting-sources", _LIST, joined=True, known=SettingSource
    )
    plugin_dir: Sequence[Path] = _flag("--plugin-dir", _PATHS, ())
    agent: str | None = _flag("--agent", _TEXT)
    agents: FileOrJson | None = _flag("--agents", _FILE_OR_JSON)
    replay_user_messages: bool = _flag("--replay-user-messages", _BOOL, False)
    forward_subagent_text: bool = _flag("--forward-subagent-text", _BOOL, False)
    no_session_persistence: bool = _flag("--no-session-persistence", _BOOL, False)
    extra_args: Mapping[str, str | None] = dataclasses.field(default_factory=dict[str, "str | None"])
    thinking: Thinking | None = _flag("--thinking", _TEXT, known=Thinking)
    max_thinking_tokens: int | None = _flag("--max-thinking-tokens", _INT, least=0)
    thinking_display: ThinkingDisplay | None = _flag("--thinking-display", _TEXT, known=ThinkingDisplay)
    effort: Effort | None = _flag("--effort", _TEXT, known=Effort)
    json_schema: str | Mapping[str, Any] | None = _flag("--json-schema", _JSON)

    def __post_init__(self) -> None:
        if self.cli_path is not None:
            if not _is_path(self.cli_path):
                raise _wrong_type("cli_path", "path", self.cli_path)
            _check_argument("cli_path", os.fspath(self.cli_path))
        if not isinstance(self.extra_args, Mapping):
            raise _wrong_type("extra_args", "mapping", self.extra_args)
        for name in ("cli_path", "model", "fallback_model", "agent", "resume", "permission_prompt_tool"):
            if getattr(self, name) == "":
                raise ValueError(f"ClaudeOptions.{name} is empty; leave it out, or give None")
        for one in dataclasses.fields(self):
            # Whoever made the list or the dict may change it; what was checked stays what is written (but for what is
            # nested in a dict, of which this is no copy).
            value: Any = getattr(self, one.name)
            if _is_items(value):
                object.__setattr__(self, one.name, tuple(value))
            elif isinstance(value, Mapping):
                object.__setattr__(self, one.name, {**value})
            for argument in self._arguments(one):
                _check_argument(one.name, argument)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse fields that the CLI refuses together, or of which it would silently ignore one."""
        for name in ("system_prompt", "append_system_prompt"):
            if getattr(self, name) is not None and getattr(self, f"{name}_file") is not None:
                raise ValueError(f"ClaudeOptions takes one of {name} and {name}_file, not both")
        resumes = self.resume is not None or "resume" in self.extra_args
        if self.session_id is not None:
            if not _UUID.fullmatch(self.session_id):
                raise ValueError("ClaudeOptions.session_id must be a UUID, such as str(uuid.uuid4()) gives")
            if (resumes or self.continue_conversation) and not self.fork_session:
                raise ValueError(
                    "ClaudeOptions.session_id names a new session: with resume or continue_conversation it needs "
                    "fork_session=True"
                )
        if self.resume_session_at is not None and not resumes:
            raise ValueError("ClaudeOptions.resume_session_at is a message of the session that resume= names")
        if self.resume_drops_turn is not None and self.resume_session_at is None:
            raise ValueError("ClaudeOptions.resume_drops_turn needs resume_session_at=")

    def __repr__(self) -> str:
        names = [one.name for one in dataclasses.fields(self) if getattr(self, one.name) != _default(one)]
        return f"ClaudeOptions({', '.join(f'{name}=...' for name in names)})"

    def argv(self, prompt: str | None = None) -> list[str]:
        """Return the command line, the CLI's path first.

        Args:
            prompt: None for a session: the CLI reads messages from its standard input and ends at the end of it.
                Else for one answer: the CLI prints it and exits. It waits up to 3 seconds for its standard input to end
                (CLI 2.1.330), so end that at once.

        Raises:
            CLINotFoundError: ``cli_path`` is None, and there is no CLI to be found.
            TypeError, ValueError: as in the constructor, of the prompt.
        """
        cli = find_cli() if self.cli_path is None else os.fspath(self.cli_path)
        _refuse_batch_file(cli)
        argv = [cli]
        if prompt is not None:
            if not isinstance(prompt, str):
                raise TypeError(f"a prompt is a str, not {type(prompt).__name__}")
            _check_argument("prompt", prompt)
            argv.append("--print")
        argv += ["--output-format", "stream-json", "--verbose"]
        for one in dataclasses.fields(self):
            argv += self._arguments(one)
        if prompt is None:
            return [*argv, "--input-format", "stream-json"]
        # Behind "--" nothing is a flag, so that a prompt may begin with a dash.
        return [*argv, "--", prompt]

    def _arguments(self, one: dataclasses.Field[Any]) -> list[str]:
        """The arguments that one field stands for."""
        value = getattr(self, one.name)
        if one.name == "extra_args":
            return _extra(value)
        flag: _Flag | None = one.metadata.get("flag")
        if flag is None or value is None:
            return []
        try:
            texts = flag.texts(value)
        except (TypeError, ValueError, RecursionError):
            # Without the cause: from Python 3.12 on its text has the value.
            raise ValueError(f"ClaudeOptions.{one.name} has a value that JSON has no form for") from None
        if texts is None:
            raise _wrong_type(one.name, flag.takes, value)
        if flag.known:
            otherwise = f"; one that this version does not know goes into extra_args={{{flag.name[2:]!r}: ...}}"
            for item in value if _is_items(value) else (value,):
                require_one_of(f"ClaudeOptions.{one.name}", item, flag.known, otherwise)
        if flag.least is not None and value < flag.least:
            raise ValueError(f"ClaudeOptions.{one.name} must be at least {flag.least}, not {value!r}")
        if flag.above is not None and value <= flag.above:
            raise ValueError(f"ClaudeOptions.{one.name} must be more than {flag.above}, not {value!r}")
        if flag.texts is _nothing:
            return [flag.name] if value else []
        if value == one.default:
            return []
        return [argument for text in texts for argument in _written(flag.name, text, joined=flag.joined)]


def _default(one: dataclasses.Field[Any]) -> Any:
    return {} if one.name == "extra_args" else one.default


def _extra(flags: Mapping[Any, Any]) -> list[str]:
    arguments: list[str] = []
    for name, text in flags.items():
        if not isinstance(name, str) or not (text is None or isinstance(text, str)):
            raise TypeError("ClaudeOptions.extra_args takes names and values of type str, or None for no value")
        if not name or name.startswith("-"):
            raise ValueError("ClaudeOptions.extra_args takes names without their dashes")
        arguments += [f"--{name}"] if text is None else _written(f"--{name}", text)
    return arguments


def _written(flag: str, text: str, *, joined: bool = False) -> list[str]:
    # As two arguments, a value that begins with a dash can be taken for a flag: the CLI's option parser binds it to
    # an option that must have a value, but not to one that may have one. A value from outside could set flags so.
    return [f"{flag}={text}"] if joined or text.startswith("-") else [flag, text]


def _wrong_type(name: str, takes: str, value: object) -> TypeError:
    article = "an" if takes[0] in "aeiou" else "a"
    return TypeError(f"ClaudeOptions.{name} takes {article} {takes}, not {type_of(value)}")


def _check_argument(name: str, text: str) -> None:
    # The system would refuse it too, but without saying which one it was.
    where = name if name == "prompt" else f"ClaudeOptions.{name}"
    if "\0" in text:
        raise ValueError(f"{where} has a NUL character, which no argument can carry")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(
            f"{where} has a character with no form in the encoding {sys.getfilesystemencoding()}"
        ) from None


def _refuse_batch_file(cli: str) -> None:
    # Windows runs batch files by cmd.exe, which reads the whole command line again and runs what an argument makes it
    # run; there is no safe way to quote for it (CVE-2024-24576, CVE-2024-27980). claude-agent-sdk refuses them too.
    # Every part of the path is looked at, as Windows drops dots, spaces and stream names at the end of some.
    if sys.platform == "win32":
        parts = [part for folder in cli.replace("\\", "/").split("/") for part in folder.split(":")]
        if any(part.rstrip(". ").lower().endswith((".bat", ".cmd")) for part in parts):
            raise ValueError("ClaudeOptions.cli_path is a batch file, which Windows cannot run safely; use claude.exe")
