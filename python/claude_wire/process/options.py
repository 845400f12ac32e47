"""Build the Claude Code CLI's command line from typed fields.

``ClaudeOptions(model="opus").argv()`` returns a list of arguments for :func:`~claude_wire.open_process`. It does not
start a process or read any configuration. The fields match the flags of CLI 2.1.331.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from typing import Any, TypeVar

from claude_wire.flags.flags import Flags, check_argument, wrong_type
from claude_wire.flags.kinds import Path, is_path
from claude_wire.process.find_cli import find_cli
from claude_wire.process.stored_sessions import is_session_id
from claude_wire.support.arguments import tells_where, type_of

T = TypeVar("T")

#: Option of claude-agent-sdk that has another name or place here -> what to write instead.
PLACES = {
    "add_dirs": "it is add_dir here, as the flag",
    "can_use_tool": "open_session(ClaudeOptions(...), can_use_tool=...)",
    "client_app": "open_session(..., extra_env={'CLAUDE_AGENT_SDK_CLIENT_APP': ...})",
    "cwd": "open_session(ClaudeOptions(...), cwd=...), or open_process(..., cwd=...)",
    "debug_stderr": "open_session(ClaudeOptions(...), stderr=...)",
    "enable_file_checkpointing": "open_session(..., extra_env={'CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING': 'true'})",
    "env": "open_session(..., extra_env=...), which is merged into the host's environment; env= replaces it",
    "extra_env": "open_session(ClaudeOptions(...), extra_env=...)",
    "hooks": "open_session(ClaudeOptions(...), hooks=...)",
    "load_timeout_ms": "claude_wire has no session store; WireTransport of claude_wire.integrations.agent_sdk has",
    "max_buffer_size": "open_process(argv, Decoder(max_line_bytes=...)); 128 MiB if not given",
    "mcp_servers": (
        "servers that the CLI runs: mcp_config={'mcpServers': {...}}; servers in this process: "
        "open_session(..., mcp_servers={...})"
    ),
    "output_format": "json_schema=..., only the schema",
    "permission_prompt_tool_name": "it is permission_prompt_tool here, as the flag",
    "plugins": "plugin_dir=[...], only the paths",
    "prompt": "session.query(...) or session.ask(...); for one answer: ClaudeOptions(...).argv(prompt)",
    "sandbox": "settings={'sandbox': {...}}",
    "session_store": "session_mirror=True gives transcript_mirror messages, which the host can store",
    "session_store_flush": "claude_wire has no session store; WireTransport of claude_wire.integrations.agent_sdk has",
    "skills": "allowed_tools=['Skill(NAME)'] and setting_sources=['user', 'project']",
    "stderr": "open_session(ClaudeOptions(...), stderr=...)",
    "user": "open_session(ClaudeOptions(...), user=...)",
    "verbatim_prompts": "open_session(ClaudeOptions(...), verbatim_prompts=True)",
}


def _in_words(cls: type[T]) -> type[T]:
    """Decorate a class: its error for an unknown argument then says what to write instead (:data:`PLACES`)."""
    checked_init = tells_where(PLACES, owner=cls.__name__)(cls.__init__)

    @functools.wraps(checked_init)
    def construct(self: T, *args: Any, **fields: Any) -> None:
        if args:
            example = f"{cls.__name__}(model=...), or {cls.__name__}(**fields) for a dict"
            raise TypeError(f"{cls.__name__} takes no positional arguments, but got {type_of(args[0])}: {example}")
        checked_init(self, **fields)

    setattr(cls, "__init__", construct)  # noqa: B010 - mypy refuses the assignment
    return cls


@_in_words
@dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=True)
class ClaudeOptions(Flags):
    """The Claude Code CLI's flags, with one field for each flag. :meth:`argv` returns the command line.

    Each field is named after its flag. None, False or an empty list adds nothing to the command line, except for
    ``tools`` and ``setting_sources``, where an empty list means "none". No other flags are added: without
    ``system_prompt``, for example, the CLI uses its own system prompt. Linux limits each argument to less than 128 KiB.
    A longer text is passed as a temporary file if its flag accepts files (prompts, settings, MCP servers, agents). For
    any other flag, starting the CLI fails with ``OSError``. ``repr()`` and error messages show field names, but never
    values that may be prompts or keys.

    Attributes:
        cli_path: the CLI's path, used unchanged. None: :func:`find_cli` searches for the CLI.
        system_prompt: text that replaces the CLI's own system prompt.
        system_prompt_file: path of a file that contains the system prompt.
        append_system_prompt: text to append to the CLI's own system prompt.
        append_system_prompt_file: path of a file that contains the text to append to the system prompt.
        tools: the available built-in tools: their names, an empty list for none, or ``["default"]``.
        allowed_tools: tools and rules, such as ``"Bash(git *)"``, that are allowed without a permission question.
        max_turns: maximum number of model answers (the CLI calls them turns). The run then ends with the result
            ``error_max_turns``.
        max_budget_usd: maximum cost in dollars. The run then ends with the result ``error_max_budget_usd``.
        disallowed_tools: tools and rules that are refused.
        task_budget: the number of tokens that the CLI tells the model it may use.
        model: a model's full name or an alias (``"sonnet"``, ``"opus"``, ``"haiku"``).
        fallback_model: the model to use when ``model`` is overloaded, or several models, separated by commas.
        betas: beta headers for API requests.
        permission_prompt_tool: who answers permission questions: ``"stdio"`` (the host, through control requests) or
            the name of an MCP tool.
        permission_mode: ``"default"`` (or ``"manual"``), ``"acceptEdits"``, ``"plan"``, ``"auto"``, ``"dontAsk"`` or
            ``"bypassPermissions"``.
        continue_conversation: continue the last conversation in the working directory (``--continue``).
        resume: the id or name of the session to continue.
        session_id: a UUID for a new session.
        settings: a settings file, or settings as JSON.
        add_dir: additional directories that tools may use.
        mcp_config: MCP servers: the object ``{"mcpServers": {...}}``, a JSON text or a file, or a list of these.
        include_partial_messages: send ``stream_event`` messages.
        include_hook_events: send messages when a hook starts and ends.
        strict_mcp_config: use only the MCP servers in ``mcp_config``.
        fork_session: give a resumed session a new id.
        resume_session_at: the UUID of the last message to keep in the resumed session.
        resume_drops_turn: the UUID of the prompt whose turn ``resume_session_at`` drops; the CLI checks it.
        session_mirror: send ``transcript_mirror`` messages.
        setting_sources: settings files to read: any of ``"user"``, ``"project"`` and ``"local"``.
        plugin_dir: plugins for this session, as directories or zip files.
        agent: the agent that leads the session.
        agents: agents by name: an object (whose values are ``AgentDefinition`` or dicts), a JSON text or a file.
        replay_user_messages: repeat user messages on the standard output.
        forward_subagent_text: also send subagents' text and thinking, not only their tool uses.
        no_session_persistence: do not write a transcript. The session then cannot be resumed.
        project_config_root: if the working directory is a worktree, the absolute path of its trusted folder, which has
            the project settings, ``.mcp.json`` and ``.claude``.
        managed_settings: policy settings, as an object or a JSON text. The CLI keeps only settings that restrict, and
            ignores all of them if an administrator's managed settings do not allow them.
        permission_prompts: ``"host"``: the host answers permission questions. ``"none"``: the CLI denies all of them,
            and never calls ``can_use_tool``.
        debug: write a debug log; a str chooses categories, such as ``"hooks,mcp"`` or ``"!hooks"``.
        debug_file: path of the debug log. Setting it also turns the log on.
        extra_args: flag without a field, written without dashes -> its value; None for a flag without a value.
        thinking: ``"adaptive"``, ``"enabled"`` or ``"disabled"``.
        max_thinking_tokens: maximum number of thinking tokens, for older models.
        thinking_display: ``"summarized"``, ``"omitted"`` or ``"highlights"``.
        effort: ``"low"``, ``"medium"``, ``"high"``, ``"xhigh"`` or ``"max"``.
        json_schema: the schema that the result must fit, as an object or a JSON text.

    If a flag only accepts certain words, or numbers within limits, the constructor refuses other values. For a word
    that this version does not know, use ``extra_args`` with the flag's name: ``{"permission-mode": "of_tomorrow"}``.

    Raises:
        TypeError: a field has the wrong type, or there is no field with this name. For claude-agent-sdk options, the
            message says where they belong.
        ValueError: the CLI does not accept a value, two fields exclude each other, or a value cannot be an argument,
            because it has a NUL character or cannot be written as JSON or in the system's encoding.
    """

    cli_path: Path | None = None

    def __post_init__(self) -> None:
        if self.cli_path is not None:
            if not is_path(self.cli_path):
                raise wrong_type("ClaudeOptions.cli_path", "path", self.cli_path)
            check_argument("ClaudeOptions.cli_path", os.fspath(self.cli_path))
        for name in ("cli_path", "model", "fallback_model", "agent", "resume", "permission_prompt_tool"):
            if getattr(self, name) == "":
                raise ValueError(f"ClaudeOptions.{name} is empty; leave it out, or give None")
        super().__post_init__()
        self._check_together()

    def _check_together(self) -> None:
        """Refuse each pair of fields that the CLI would refuse, or where it would silently ignore one field."""
        for name in ("system_prompt", "append_system_prompt"):
            if getattr(self, name) is not None and getattr(self, f"{name}_file") is not None:
                raise ValueError(f"ClaudeOptions takes one of {name} and {name}_file, not both")
        resumes = self.resume is not None or "resume" in self.extra_args
        if self.session_id is not None:
            if not is_session_id(self.session_id):
                raise ValueError("ClaudeOptions.session_id must be a UUID, such as str(uuid.uuid4())")
            if (resumes or self.continue_conversation) and not self.fork_session:
                raise ValueError(
                    "ClaudeOptions.session_id names a new session: with resume or continue_conversation it needs "
                    "fork_session=True"
                )
        if self.resume_session_at is not None and not resumes:
            raise ValueError("ClaudeOptions.resume_session_at needs resume=, the session that has the message")
        if self.resume_drops_turn is not None and self.resume_session_at is None:
            raise ValueError("ClaudeOptions.resume_drops_turn needs resume_session_at=")

    def argv(self, prompt: str | None = None) -> list[str]:
        """Return the command line, beginning with the CLI's path.

        Args:
            prompt: None for a session: the CLI reads messages from its standard input, and exits when the input ends. A
                str for a single answer: the CLI prints the answer and exits. CLI 2.1.331 first waits up to 3 seconds
                for its standard input to end; close the input to avoid this wait.

        Raises:
            CLINotFoundError: ``cli_path`` is None, and no CLI was found.
            TypeError, ValueError: the prompt is not a str, or cannot be an argument.
        """
        cli = find_cli() if self.cli_path is None else os.fspath(self.cli_path)
        _refuse_batch_file(cli)
        argv = [cli]
        if prompt is not None:
            if not isinstance(prompt, str):
                raise TypeError(f"a prompt is a str, not {type(prompt).__name__}")
            check_argument("prompt", prompt)
            argv.append("--print")
        argv += ["--output-format", "stream-json", "--verbose"]
        argv += self.arguments()
        if prompt is None:
            return [*argv, "--input-format", "stream-json"]
        # After "--" no argument is a flag, so a prompt may begin with a dash.
        return [*argv, "--", prompt]


def _refuse_batch_file(cli: str) -> None:
    # Windows runs batch files with cmd.exe, which parses the whole command line again. An argument can therefore inject
    # a command, and quoting cannot prevent this (CVE-2024-24576, CVE-2024-27980). claude-agent-sdk also refuses
    # them. Check every part of the path, because Windows drops dots, spaces and stream names at the end of a name.
    if sys.platform == "win32":
        parts = [part for folder in cli.replace("\\", "/").split("/") for part in folder.split(":")]
        if any(part.rstrip(". ").lower().endswith((".bat", ".cmd")) for part in parts):
            raise ValueError("ClaudeOptions.cli_path is a batch file, which Windows cannot run safely; use claude.exe")
