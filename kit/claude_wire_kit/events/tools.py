"""Describe a tool call for a person: its kind, a title, and its path or command."""

from __future__ import annotations

from claude_wire.support import SUBAGENT_TOOLS, fields_of, one_line
from claude_wire_kit.events.events import OperationKind

#: Maximum number of characters in a title.
TITLE_CHARS = 120
#: Maximum number of characters in a path, a command or a summary.
TEXT_CHARS = 1000

_TOOLS: dict[OperationKind, str] = {
    "file_read": "Read NotebookRead",
    "file_write": "Write",
    "file_edit": "Edit MultiEdit NotebookEdit text_editor_code_execution",
    "command": "Bash BashOutput KillBash KillShell Monitor PowerShell bash_code_execution code_execution",
    "search": "Glob Grep LS ToolSearch tool_search_tool_bm25 tool_search_tool_regex",
    "web": "WebFetch WebSearch web_fetch web_search",
    "subagent": " ".join(SUBAGENT_TOOLS),
}
_KINDS: dict[str, OperationKind] = {name: kind for kind, names in _TOOLS.items() for name in names.split()}
#: Lower-case tool name, as other agents use it -> kind. For example, miriad-code has `read` with a `filePath`.
_LOWER: dict[str, OperationKind] = {
    name.lower(): kind
    for name, kind in _KINDS.items()
    if name in {"Read", "Write", "Edit", "Bash", "Glob", "Grep", "LS"}
}
_PATHS = ("file_path", "notebook_path", "path", "filePath")
#: Kind -> the title's verb, and the input fields that may complete the title. The first field with a value is used.
_TITLES: dict[OperationKind, tuple[str, tuple[str, ...]]] = {
    "file_read": ("Read", _PATHS),
    "file_write": ("Write", _PATHS),
    "file_edit": ("Edit", _PATHS),
    "command": ("Run", ("command", "code")),
    "search": ("Search", ("pattern", "query", "path")),
    "web": ("Web", ("url", "query")),
    "subagent": ("Subagent", ("description", "subagent_type")),
}


def call_name(name: str) -> str:
    """Return the name of a tool, safe to print: ``calc - add (MCP)`` for ``mcp__calc__add``, as the CLI shows it."""
    kind, _, rest = name.partition("__")
    server, _, tool = rest.partition("__")
    return one_line(f"{server} - {tool} (MCP)" if kind == "mcp" and server and tool else name)


def cut(text: str) -> str:
    """Cut text to :data:`TEXT_CHARS` characters, with an ellipsis at the end."""
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1] + "…"


def text_in(input: object, *names: str) -> str | None:
    """Return the first of these fields that is non-empty text, cut to :data:`TEXT_CHARS`. Accepts any JSON."""
    fields = fields_of(input)
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return cut(value)
    return None


def described(name: str, input: object) -> tuple[OperationKind, str, str | None, str | None]:
    """Return the kind, title, path and command of a call."""
    kind: OperationKind = "mcp" if name.startswith("mcp__") else _KINDS.get(name) or _LOWER.get(name, "other")
    path = text_in(input, *_PATHS) if kind in ("file_read", "file_write", "file_edit", "search") else None
    command = text_in(input, "command", "code") if kind == "command" else None
    if kind == "command" and (said := text_in(input, "description")):
        title = said
    elif kind in _TITLES:
        verb, fields = _TITLES[kind]
        title = f"{verb} {text_in(input, *fields) or ''}"
    elif kind == "mcp":
        title = name[len("mcp__") : TITLE_CHARS * 2].replace("__", ": ", 1)
    else:
        title = name
    return kind, one_line(title.strip(), TITLE_CHARS), path, command
