"""The flags of CLI 2.1.331 as typed fields. A host writes them, and an agent reads them."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from claude_wire.flags import kinds
from claude_wire.flags.kinds import FileOrJson, Kind, Path, is_items
from claude_wire.support.arguments import require_one_of, type_of

# The words that the CLI accepts for a flag, or in a request.
PermissionMode: TypeAlias = Literal["default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]
Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
Thinking: TypeAlias = Literal["adaptive", "enabled", "disabled"]
PermissionPrompts: TypeAlias = Literal["host", "none"]
ThinkingDisplay: TypeAlias = Literal["summarized", "omitted", "highlights"]
SettingSource: TypeAlias = Literal["user", "project", "local"]


#: Field of ClaudeOptions -> advice for a value that claude-agent-sdk accepts, and ClaudeOptions does not.
INSTEAD = {
    "system_prompt": (
        "in place of a preset, pass its text as append_system_prompt=; pass a file as system_prompt_file="
    ),
    "tools": "for the preset write ['default'], or leave it out",
    "task_budget": "pass only the total, an int",
    "thinking": "write 'adaptive', 'enabled' or 'disabled'; pass budget_tokens as max_thinking_tokens=, "
    "and display as thinking_display=",
    "agents": "write {'NAME': {'description': ..., 'prompt': ...}}, or claude_wire.messages.AgentDefinition as the "
    "value",
    "plugin_dir": "write only the paths",
}


class Flag(NamedTuple):
    """How a field is written on the command line."""

    name: str
    kind: Kind
    #: True: always write ``--flag=value``, because the CLI treats the value as optional, or to match claude-agent-sdk.
    joined: bool = False
    #: True if the flag may have no value.
    optional: bool = False
    #: True if all arguments before the next flag are values of the flag.
    variadic: bool = False
    #: The words that the CLI accepts, as the value or as items of the value; empty if it accepts any.
    known: tuple[str, ...] = ()
    #: The smallest allowed number; None: no limit.
    least: int | None = None
    #: The number must be greater than this; None: no limit.
    above: int | None = None


def _flag(name: str, kind: Kind, default: object = None, *, known: Any = None, **options: Any) -> Any:
    """Return a dataclass field for a :class:`Flag`. ``known`` is a Literal with the words that the CLI accepts."""
    flag = Flag(name, kind, known=get_args(known), **options)
    return dataclasses.field(default=default, metadata={"flag": flag})


def flag_of(field: dataclasses.Field[Any]) -> Flag | None:
    """Return a field's flag; None for a field such as ``extra_args``."""
    return field.metadata.get("flag")


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=True)
class Flags:
    """The CLI's flags, with one field for each flag. :class:`~claude_wire.ClaudeOptions` explains them."""

    # The fields have the same order as in claude-agent-sdk, and the same flags are written as ``--flag=value``, because
    # tests compare the two command lines.
    system_prompt: str | None = _flag("--system-prompt", kinds.TEXT)
    system_prompt_file: Path | None = _flag("--system-prompt-file", kinds.PATH)
    append_system_prompt: str | None = _flag("--append-system-prompt", kinds.TEXT)
    append_system_prompt_file: Path | None = _flag("--append-system-prompt-file", kinds.PATH)
    tools: Sequence[str] | None = _flag("--tools", kinds.LIST, variadic=True)
    allowed_tools: Sequence[str] = _flag("--allowedTools", kinds.LIST, (), variadic=True)
    max_turns: int | None = _flag("--max-turns", kinds.INT, least=1)
    max_budget_usd: float | None = _flag("--max-budget-usd", kinds.NUMBER, above=0)
    disallowed_tools: Sequence[str] = _flag("--disallowedTools", kinds.LIST, (), variadic=True)
    task_budget: int | None = _flag("--task-budget", kinds.INT, least=1)
    model: str | None = _flag("--model", kinds.TEXT)
    fallback_model: str | None = _flag("--fallback-model", kinds.TEXT)
    betas: Sequence[str] = _flag("--betas", kinds.LIST, (), variadic=True)
    permission_prompt_tool: str | None = _flag("--permission-prompt-tool", kinds.TEXT)
    permission_mode: PermissionMode | None = _flag("--permission-mode", kinds.TEXT, known=PermissionMode)
    continue_conversation: bool = _flag("--continue", kinds.BOOL, False)
    resume: str | None = _flag("--resume", kinds.TEXT, joined=True, optional=True)
    session_id: str | None = _flag("--session-id", kinds.TEXT, joined=True)
    settings: FileOrJson | None = _flag("--settings", kinds.FILE_OR_JSON)
    add_dir: Sequence[Path] = _flag("--add-dir", kinds.PATHS, (), variadic=True)
    mcp_config: FileOrJson | Sequence[FileOrJson] | None = _flag("--mcp-config", kinds.FILES_OR_JSON, variadic=True)
    include_partial_messages: bool = _flag("--include-partial-messages", kinds.BOOL, False)
    include_hook_events: bool = _flag("--include-hook-events", kinds.BOOL, False)
    strict_mcp_config: bool = _flag("--strict-mcp-config", kinds.BOOL, False)
    fork_session: bool = _flag("--fork-session", kinds.BOOL, False)
    resume_session_at: str | None = _flag("--resume-session-at", kinds.TEXT, joined=True)
    resume_drops_turn: str | None = _flag("--resume-drops-turn", kinds.TEXT, joined=True)
    session_mirror: bool = _flag("--session-mirror", kinds.BOOL, False)
    setting_sources: Sequence[SettingSource] | None = _flag(
        "--setting-sources", kinds.LIST, joined=True, known=SettingSource
    )
    plugin_dir: Sequence[Path] = _flag("--plugin-dir", kinds.PATHS, ())
    agent: str | None = _flag("--agent", kinds.TEXT)
    agents: FileOrJson | None = _flag("--agents", kinds.FILE_OR_JSON)
    replay_user_messages: bool = _flag("--replay-user-messages", kinds.BOOL, False)
    forward_subagent_text: bool = _flag("--forward-subagent-text", kinds.BOOL, False)
    no_session_persistence: bool = _flag("--no-session-persistence", kinds.BOOL, False)
    # The TypeScript SDK has options for the next five flags, but claude-agent-sdk does not.
    project_config_root: Path | None = _flag("--project-config-root", kinds.PATH)
    managed_settings: str | Mapping[str, Any] | None = _flag("--managed-settings", kinds.JSON)
    permission_prompts: PermissionPrompts | None = _flag("--permission-prompts", kinds.TEXT, known=PermissionPrompts)
    debug: bool | str = _flag("--debug", kinds.BOOL_OR_TEXT, False, joined=True, optional=True)
    debug_file: Path | None = _flag("--debug-file", kinds.PATH)
    extra_args: Mapping[str, str | None] = dataclasses.field(default_factory=dict[str, "str | None"])
    thinking: Thinking | None = _flag("--thinking", kinds.TEXT, known=Thinking)
    max_thinking_tokens: int | None = _flag("--max-thinking-tokens", kinds.INT, least=0)
    thinking_display: ThinkingDisplay | None = _flag("--thinking-display", kinds.TEXT, known=ThinkingDisplay)
    effort: Effort | None = _flag("--effort", kinds.TEXT, known=Effort)
    json_schema: str | Mapping[str, Any] | None = _flag("--json-schema", kinds.JSON)

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.extra_args, Mapping):
            raise wrong_type(f"{name}.extra_args", "mapping", self.extra_args)
        for one in dataclasses.fields(self):
            # Copy the list or dict, because the caller may change it after this check. Nested dicts are not copied.
            value: Any = getattr(self, one.name)
            if is_items(value):
                object.__setattr__(self, one.name, tuple(value))
            elif isinstance(value, Mapping):
                object.__setattr__(self, one.name, {**value})
            for argument in self._arguments_of(one):
                check_argument(f"{name}.{one.name}", argument)

    def __repr__(self) -> str:
        names = [one.name for one in dataclasses.fields(self) if getattr(self, one.name) != _default(one)]
        return f"{type(self).__name__}({', '.join(f'{name}=...' for name in names)})"

    def arguments(self) -> list[str]:
        """Return all flags that are set, as arguments."""
        return [argument for one in dataclasses.fields(self) for argument in self._arguments_of(one)]

    def _arguments_of(self, one: dataclasses.Field[Any]) -> list[str]:
        name = f"{type(self).__name__}.{one.name}"
        value = getattr(self, one.name)
        if one.name == "extra_args":
            return _extra(name, value)
        flag = flag_of(one)
        if flag is None or value is None:
            return []
        try:
            texts = flag.kind.write(value)
        except (TypeError, ValueError, RecursionError):
            # Hide the cause, because its text shows the value in Python 3.12 and later.
            raise ValueError(f"{name} has a value that JSON cannot represent{_instead(one)}") from None
        if texts is None:
            raise TypeError(f"{wrong_type(name, flag.kind.takes, value)}{_instead(one)}")
        if flag.known:
            otherwise = f"; for a value that this version does not know: extra_args={{{flag.name[2:]!r}: ...}}"
            for item in value if is_items(value) else (value,):
                require_one_of(name, item, flag.known, otherwise)
        if flag.least is not None and value < flag.least:
            raise ValueError(f"{name} must be at least {flag.least}, not {value!r}")
        if flag.above is not None and value <= flag.above:
            raise ValueError(f"{name} must be more than {flag.above}, not {value!r}")
        if isinstance(value, bool):
            return [flag.name] if value else []
        if value == one.default:
            return []
        return [argument for text in texts for argument in _written(flag.name, text, joined=flag.joined)]


def _instead(one: dataclasses.Field[Any]) -> str:
    return f"; {INSTEAD[one.name]}" if one.name in INSTEAD else ""


def _default(one: dataclasses.Field[Any]) -> Any:
    return one.default if one.default_factory is dataclasses.MISSING else one.default_factory()


def _extra(name: str, flags: Mapping[Any, Any]) -> list[str]:
    arguments: list[str] = []
    for flag, text in flags.items():
        if not isinstance(flag, str) or not (text is None or isinstance(text, str)):
            raise TypeError(f"{name} takes a dict from str to str, or to None for a flag without a value")
        if not flag or flag.startswith("-"):
            raise ValueError(f"{name} must have the names of flags without the leading dashes")
        arguments += [f"--{flag}"] if text is None else _written(f"--{flag}", text)
    return arguments


def _written(flag: str, text: str, *, joined: bool = False) -> list[str]:
    # If a value begins with a dash, write it into the same argument. If the value is optional, the CLI would read a
    # separate argument as a flag, so a value from an untrusted source could set flags.
    return [f"{flag}={text}"] if joined or text.startswith("-") else [flag, text]


def wrong_type(name: str, takes: str, value: object) -> TypeError:
    """Return the error for a field with a value of the wrong type."""
    article = "an" if takes[0] in "aeiou" else "a"
    return TypeError(f"{name} takes {article} {takes}, not {type_of(value)}")


def check_argument(name: str, text: str) -> None:
    """Check that a string can be an argument. The system's error would not say which argument is wrong.

    Raises:
        ValueError: the string has a NUL character, or a character that the system's encoding cannot represent.
    """
    if "\0" in text:
        raise ValueError(f"{name} has a NUL character; an argument cannot contain one")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(f"{name} has a character that cannot be encoded in {sys.getfilesystemencoding()}") from None
