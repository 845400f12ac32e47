"""ClaudeOptions: each field adds its flag and nothing else. find_cli: the places it searches, and its error."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_wire import CLINotFoundError
from claude_wire.process import find_cli as module
from claude_wire.process.find_cli import find_cli
from claude_wire.process.options import ClaudeOptions
from each import each
from folders import DATA

CLI = "/opt/claude"
SESSION = [CLI, "--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
UUID = "8d7b3c1e-0f52-4c8e-9d0a-3b1f0c9e7a11"
#: Field -> the other fields that the CLI requires with it.
NEEDS: dict[str, dict[str, str]] = {
    "resume_session_at": {"resume": UUID},
    "resume_drops_turn": {"resume": UUID, "resume_session_at": UUID},
}
#: Stands for a prompt or a key. It must not appear in a repr or in the text of an error.
SECRET = "sk-ant-hunter2"
FLAGS = DATA / "cli_flags.txt"


def arguments(**fields: Any) -> list[str]:
    """The arguments that these fields add to the command line of a session."""
    needed = {field: value for name in fields for field, value in NEEDS.get(name, {}).items()}
    argv = ClaudeOptions(cli_path=CLI, **needed, **fields).argv()
    assert argv[:4] == SESSION[:4]
    assert argv[-2:] == SESSION[-2:]
    return [argument for argument in argv[4:-2] if argument not in {f"--resume={UUID}", f"--resume-session-at={UUID}"}]


# --- Each field -------------------------------------------------------------------------------------------------------

FIELDS: list[tuple[str, Any, list[str]]] = [
    ("system_prompt", "Be kind.", ["--system-prompt", "Be kind."]),
    ("system_prompt", "", ["--system-prompt", ""]),
    ("system_prompt", "-x", ["--system-prompt=-x"]),
    ("system_prompt_file", "p.txt", ["--system-prompt-file", "p.txt"]),
    ("system_prompt_file", pathlib.Path("p.txt"), ["--system-prompt-file", "p.txt"]),
    ("append_system_prompt", "And brief.", ["--append-system-prompt", "And brief."]),
    ("append_system_prompt_file", "p.txt", ["--append-system-prompt-file", "p.txt"]),
    ("tools", ["Bash", "Read"], ["--tools", "Bash,Read"]),
    ("tools", [], ["--tools", ""]),
    ("tools", ("default",), ["--tools", "default"]),
    ("allowed_tools", ["Bash(git *)", "Edit"], ["--allowedTools", "Bash(git *),Edit"]),
    ("allowed_tools", [], []),
    ("max_turns", 3, ["--max-turns", "3"]),
    ("max_budget_usd", 0.5, ["--max-budget-usd", "0.5"]),
    ("max_budget_usd", 2, ["--max-budget-usd", "2"]),
    ("max_budget_usd", 1e-7, ["--max-budget-usd", "1e-07"]),
    ("disallowed_tools", ["WebFetch"], ["--disallowedTools", "WebFetch"]),
    ("task_budget", 20000, ["--task-budget", "20000"]),
    ("model", "sonnet", ["--model", "sonnet"]),
    ("fallback_model", "haiku,opus", ["--fallback-model", "haiku,opus"]),
    ("betas", ["a", "b"], ["--betas", "a,b"]),
    ("permission_prompt_tool", "stdio", ["--permission-prompt-tool", "stdio"]),
    ("permission_mode", "plan", ["--permission-mode", "plan"]),
    ("continue_conversation", True, ["--continue"]),
    ("resume", "my session", ["--resume=my session"]),
    ("resume", "--model=x", ["--resume=--model=x"]),
    ("session_id", UUID, [f"--session-id={UUID}"]),
    ("settings", "settings.json", ["--settings", "settings.json"]),
    ("settings", '{"a":1}', ["--settings", '{"a":1}']),
    ("settings", {"a": "\ud83d"}, ["--settings", '{"a": "\\ud83d"}']),
    ("settings", pathlib.Path("-s.json"), ["--settings=-s.json"]),
    ("add_dir", ["/a", pathlib.Path("/b"), "-c"], ["--add-dir", "/a", "--add-dir", "/b", "--add-dir=-c"]),
    ("mcp_config", {"mcpServers": {}}, ["--mcp-config", '{"mcpServers": {}}']),
    ("mcp_config", "m.json", ["--mcp-config", "m.json"]),
    ("mcp_config", ["m.json", {"mcpServers": {}}], ["--mcp-config", "m.json", "--mcp-config", '{"mcpServers": {}}']),
    ("include_partial_messages", True, ["--include-partial-messages"]),
    ("include_hook_events", True, ["--include-hook-events"]),
    ("strict_mcp_config", True, ["--strict-mcp-config"]),
    ("fork_session", True, ["--fork-session"]),
    ("resume_session_at", "u", ["--resume-session-at=u"]),
    ("resume_drops_turn", "", ["--resume-drops-turn="]),
    ("session_mirror", True, ["--session-mirror"]),
    ("setting_sources", ["user", "project"], ["--setting-sources=user,project"]),
    ("setting_sources", [], ["--setting-sources="]),
    ("plugin_dir", ["/p", "/q.zip"], ["--plugin-dir", "/p", "--plugin-dir", "/q.zip"]),
    ("agent", "reviewer", ["--agent", "reviewer"]),
    ("agents", {"r": {"prompt": "p"}}, ["--agents", '{"r": {"prompt": "p"}}']),
    ("replay_user_messages", True, ["--replay-user-messages"]),
    ("forward_subagent_text", True, ["--forward-subagent-text"]),
    ("no_session_persistence", True, ["--no-session-persistence"]),
    ("project_config_root", "/repo", ["--project-config-root", "/repo"]),
    ("project_config_root", pathlib.Path("-r"), ["--project-config-root=-r"]),
    ("managed_settings", {"permissions": {}}, ["--managed-settings", '{"permissions": {}}']),
    ("managed_settings", '{"permissions":{}}', ["--managed-settings", '{"permissions":{}}']),
    ("permission_prompts", "none", ["--permission-prompts", "none"]),
    ("debug", True, ["--debug"]),
    ("debug", False, []),
    ("debug", "hooks,mcp", ["--debug=hooks,mcp"]),
    ("debug", "!hooks", ["--debug=!hooks"]),
    ("debug_file", "/tmp/debug.txt", ["--debug-file", "/tmp/debug.txt"]),
    ("extra_args", {"bare": None, "name": "n", "worktree": "-x"}, ["--bare", "--name", "n", "--worktree=-x"]),
    ("thinking", "adaptive", ["--thinking", "adaptive"]),
    ("max_thinking_tokens", 1000, ["--max-thinking-tokens", "1000"]),
    ("thinking_display", "omitted", ["--thinking-display", "omitted"]),
    ("effort", "max", ["--effort", "max"]),
    ("json_schema", {"type": "object"}, ["--json-schema", '{"type": "object"}']),
    ("json_schema", '{"type": "object"}', ["--json-schema", '{"type": "object"}']),
]


@pytest.mark.parametrize(("name", "value", "expected"), FIELDS, ids=lambda value: str(value)[:30])
def test_a_field_is_its_flag(name: str, value: Any, expected: list[str]) -> None:
    assert arguments(**{name: value}) == expected


def test_every_field_is_in_the_table() -> None:
    assert {name for name, *_ in FIELDS} == {field.name for field in dataclasses.fields(ClaudeOptions)} - {"cli_path"}


def test_nothing_is_added_to_what_was_asked_for() -> None:
    assert ClaudeOptions(cli_path=CLI).argv() == SESSION
    assert ClaudeOptions(cli_path=CLI).argv("hi") == [*SESSION[:1], "--print", *SESSION[1:4], "--", "hi"]


def test_a_prompt_is_never_a_flag() -> None:
    argv = ClaudeOptions(cli_path=CLI, tools=[]).argv("--version")
    assert argv[-4:] == ["--tools", "", "--", "--version"]
    assert "--print" in argv
    assert "--input-format" not in argv


@each("name", sorted({name for name, *_ in FIELDS}), str)
def test_no_value_becomes_a_flag(name: str) -> None:
    """A value that begins with a dash is joined to its flag in one argument, so the CLI does not read it as a flag."""
    kind = next(value for known, value, _ in FIELDS if known == name)
    dashed: dict[type, Any] = {str: "--model=x", list: ["--model=x"], dict: "--model=x"}
    if type(kind) not in dashed:
        return
    words = {"permission_mode", "permission_prompts", "effort", "thinking", "thinking_display"}
    if name in {"session_id", "setting_sources", *words}:
        with pytest.raises(ValueError, match=f"ClaudeOptions.{name} must be "):
            arguments(**{name: dashed[type(kind)]})
        return
    value = {"a": "--model=x"} if name == "extra_args" else dashed[type(kind)]
    (argument,) = arguments(**{name: value})
    assert argument.endswith("=--model=x")
    assert not argument.startswith("--model=x")


def test_flags_are_those_of_the_cli() -> None:
    known = {line for line in FLAGS.read_text().splitlines() if line.startswith("--")}
    made = {argument.partition("=")[0] for _, _, argv in FIELDS for argument in argv if argument.startswith("--")}
    made |= {"--print", "--output-format", "--verbose", "--input-format"}
    assert made - known == set()


def test_lists_and_dicts_are_copied() -> None:
    tools, settings = ["Bash"], {"a": 1}
    options = ClaudeOptions(cli_path=CLI, tools=tools, settings=settings)
    tools.append("Read")
    settings["a"] = 2
    assert options.argv()[4:-2] == ["--tools", "Bash", "--settings", '{"a": 1}']
    assert options == ClaudeOptions(cli_path=CLI, tools=("Bash",), settings={"a": 1})


def test_fields_cannot_be_changed_but_replaced() -> None:
    options = ClaudeOptions(cli_path=CLI)
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.model = "opus"
    assert dataclasses.replace(options, model="opus").argv()[4:6] == ["--model", "opus"]
    with pytest.raises(TypeError, match="positional"):
        ClaudeOptions(CLI)


# --- Wrong values -----------------------------------------------------------------------------------------------------

WRONG: list[tuple[str, Any]] = [
    ("cli_path", 1),
    ("cli_path", b"/opt/claude"),
    ("system_prompt", 1),
    ("system_prompt", b"Be kind."),
    ("tools", "Bash"),
    ("tools", [1]),
    ("allowed_tools", "Bash"),
    ("allowed_tools", {"Bash": 1}),
    ("max_turns", "3"),
    ("max_turns", 3.5),
    ("max_turns", True),
    ("max_budget_usd", "1"),
    ("max_budget_usd", False),
    ("continue_conversation", "yes"),
    ("continue_conversation", 1),
    ("resume", True),
    ("debug", 1),
    ("managed_settings", pathlib.Path("managed.json")),
    ("settings", 1),
    ("settings", ["a"]),
    ("add_dir", "/a"),
    ("add_dir", [b"/a"]),
    ("mcp_config", [1]),
    ("extra_args", ["--bare"]),
    ("extra_args", {"bare": True}),
    ("extra_args", {1: None}),
    ("json_schema", pathlib.Path("schema.json")),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=str)
def test_a_value_of_another_type_is_refused_at_once(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"ClaudeOptions.{name} takes"):
        ClaudeOptions(**{name: value})


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"permission_mode": "pIan"},
            r"permission_mode must be one of 'default', .*, not 'pIan' \(did you mean 'plan'\?",
        ),
        ({"permission_prompts": "nobody"}, "permission_prompts must be one of 'host', 'none'"),
        ({"effort": "hgih"}, r"effort must be one of .*; for a value that .*: extra_args=\{'effort': \.\.\.\}"),
        ({"thinking": "on"}, "thinking must be one of"),
        ({"thinking_display": "all"}, "thinking_display must be one of"),
        ({"setting_sources": ["user", "locl"]}, r"not 'locl' \(did you mean 'local'\?\)"),
        ({"max_turns": 0}, "max_turns must be at least 1, not 0"),
        ({"max_turns": -1}, "max_turns must be at least 1, not -1"),
        ({"max_budget_usd": 0}, "max_budget_usd must be more than 0, not 0"),
        ({"max_budget_usd": -0.5}, "max_budget_usd must be more than 0, not -0.5"),
        ({"task_budget": 0}, "task_budget must be at least 1, not 0"),
        ({"max_thinking_tokens": -1}, "max_thinking_tokens must be at least 0, not -1"),
        ({"model": ""}, "model is empty"),
        ({"resume": ""}, "resume is empty"),
        ({"cli_path": ""}, "cli_path is empty"),
        ({"session_id": "s"}, "session_id must be a UUID"),
        ({"session_id": UUID, "resume": "r"}, "needs fork_session=True"),
        ({"session_id": UUID, "continue_conversation": True}, "needs fork_session=True"),
        ({"resume_session_at": "u"}, "resume_session_at needs resume="),
        ({"resume": "r", "resume_drops_turn": "u"}, "resume_drops_turn needs resume_session_at="),
        ({"system_prompt": "p", "system_prompt_file": "/p"}, "one of system_prompt and system_prompt_file, not both"),
        ({"append_system_prompt": "p", "append_system_prompt_file": "/p"}, "not both"),
    ],
    ids=str,
)
def test_what_the_cli_refuses_or_passes_over_is_refused_at_once(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ClaudeOptions(**fields)


def test_a_word_that_this_version_does_not_know_can_be_given() -> None:
    assert arguments(extra_args={"permission-mode": "of_tomorrow"}) == ["--permission-mode", "of_tomorrow"]
    together = ClaudeOptions(session_id=UUID, resume="r", fork_session=True)
    assert f"--session-id={UUID}" in dataclasses.replace(together, cli_path=CLI).argv()
    assert ClaudeOptions(extra_args={"resume": "r"}, resume_session_at="u").resume_session_at == "u"


def test_every_option_of_claude_agent_sdk_has_a_place() -> None:
    """Each has a field in ClaudeOptions, or an error message that says what to use instead."""
    sdk = pytest.importorskip("claude_agent_sdk")
    for field in dataclasses.fields(sdk.ClaudeAgentOptions):
        if field.name not in {own.name for own in dataclasses.fields(ClaudeOptions)}:
            with pytest.raises(TypeError, match=f"ClaudeOptions has no argument '{field.name}': .") as caught:
                ClaudeOptions(**{field.name: None})
            assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", SECRET + "\0"),
        ("model", SECRET + "\ud83d"),
        ("cli_path", SECRET + "\0"),
        ("allowed_tools", ["Read", SECRET + "\0"]),
        ("settings", {SECRET: float("nan")}),
        ("max_budget_usd", float("nan")),
        ("max_budget_usd", float("inf")),
        ("settings", {SECRET: {SECRET}}),
        ("agents", {SECRET: {"a": object()}}),
        ("extra_args", {"--bare": None}),
        ("extra_args", {"": None}),
        ("extra_args", {"name": SECRET + "\0"}),
    ],
)
def test_a_value_that_no_argument_can_carry_is_refused_at_once(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"ClaudeOptions.{name} ") as caught:
        ClaudeOptions(**{name: value})
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_a_prompt_that_no_argument_can_carry_is_refused() -> None:
    options = ClaudeOptions(cli_path=CLI)
    for prompt in (SECRET + "\0", SECRET + "\ud83d"):
        with pytest.raises(ValueError, match="prompt has a") as caught:
            options.argv(prompt)
        assert SECRET not in str(caught.value)
    with pytest.raises(TypeError, match="a prompt is a str, not bytes"):
        options.argv(b"hi")


def test_no_value_is_in_the_repr() -> None:
    options = ClaudeOptions(
        cli_path=SECRET, system_prompt=SECRET, settings={"a": SECRET}, tools=[SECRET], extra_args={SECRET: SECRET}
    )
    assert repr(options) == "ClaudeOptions(system_prompt=..., tools=..., settings=..., extra_args=..., cli_path=...)"
    assert repr(ClaudeOptions()) == "ClaudeOptions()"


# --- The same command line as claude-agent-sdk ------------------------------------------------------------------------


def stock_argv(**fields: Any) -> list[str]:
    """The command line that claude-agent-sdk builds, without the ``--system-prompt ""`` that it adds by default."""
    sdk = pytest.importorskip("claude_agent_sdk")
    from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

    transport = SubprocessCLITransport(prompt="", options=sdk.ClaudeAgentOptions(cli_path=CLI, **fields))
    argv: list[str] = transport._build_command()
    if "system_prompt" not in fields:
        assert argv[4:6] == ["--system-prompt", ""]
        del argv[4:6]
    return argv


class Store:
    """A stub of a session store with just enough to build the command line."""


#: Options of claude-agent-sdk, each with the fields of ClaudeOptions that mean the same.
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"system_prompt": "p"}, {"system_prompt": "p"}),
    ({"system_prompt": {"type": "file", "path": "/p"}}, {"system_prompt_file": "/p"}),
    ({"system_prompt": {"type": "preset", "preset": "claude_code", "append": "p"}}, {"append_system_prompt": "p"}),
    ({"tools": ["Bash", "Read"]}, {"tools": ["Bash", "Read"]}),
    ({"tools": []}, {"tools": []}),
    ({"tools": {"type": "preset", "preset": "claude_code"}}, {"tools": ["default"]}),
    ({"allowed_tools": ["A", "B"]}, {"allowed_tools": ["A", "B"]}),
    ({"max_turns": 3}, {"max_turns": 3}),
    ({"max_budget_usd": 1.5}, {"max_budget_usd": 1.5}),
    ({"disallowed_tools": ["A"]}, {"disallowed_tools": ["A"]}),
    ({"task_budget": {"total": 5}}, {"task_budget": 5}),
    ({"model": "m"}, {"model": "m"}),
    ({"fallback_model": "m"}, {"fallback_model": "m"}),
    ({"betas": ["a", "b"]}, {"betas": ["a", "b"]}),
    ({"permission_prompt_tool_name": "stdio"}, {"permission_prompt_tool": "stdio"}),
    ({"permission_mode": "plan"}, {"permission_mode": "plan"}),
    ({"continue_conversation": True}, {"continue_conversation": True}),
    ({"resume": "-r"}, {"resume": "-r"}),
    ({"session_id": UUID}, {"session_id": UUID}),
    ({"settings": "/s.json"}, {"settings": "/s.json"}),
    ({"settings": '{"a": 1}', "sandbox": {"enabled": True}}, {"settings": {"a": 1, "sandbox": {"enabled": True}}}),
    ({"add_dirs": ["/a", pathlib.Path("/b")]}, {"add_dir": ["/a", "/b"]}),
    ({"mcp_servers": {"s": {"command": "c"}}}, {"mcp_config": {"mcpServers": {"s": {"command": "c"}}}}),
    ({"mcp_servers": "/m.json"}, {"mcp_config": "/m.json"}),
    ({"include_partial_messages": True}, {"include_partial_messages": True}),
    ({"include_hook_events": True}, {"include_hook_events": True}),
    ({"strict_mcp_config": True}, {"strict_mcp_config": True}),
    ({"fork_session": True}, {"fork_session": True}),
    ({"resume": "r", "resume_session_at": "u"}, {"resume": "r", "resume_session_at": "u"}),
    (
        {"resume": "r", "resume_session_at": "u", "resume_drops_turn": "u"},
        {"resume": "r", "resume_session_at": "u", "resume_drops_turn": "u"},
    ),
    ({"session_store": Store()}, {"session_mirror": True}),
    ({"setting_sources": ["user"]}, {"setting_sources": ["user"]}),
    ({"setting_sources": []}, {"setting_sources": []}),
    ({"skills": ["a"]}, {"allowed_tools": ["Skill(a)"], "setting_sources": ["user", "project"]}),
    ({"plugins": [{"type": "local", "path": "/p"}]}, {"plugin_dir": ["/p"]}),
    ({"extra_args": {"a": None, "b": "c", "d": "-e"}}, {"extra_args": {"a": None, "b": "c", "d": "-e"}}),
    ({"thinking": {"type": "adaptive", "display": "omitted"}}, {"thinking": "adaptive", "thinking_display": "omitted"}),
    ({"thinking": {"type": "enabled", "budget_tokens": 7}}, {"max_thinking_tokens": 7}),
    ({"thinking": {"type": "disabled"}}, {"thinking": "disabled"}),
    ({"max_thinking_tokens": 7}, {"max_thinking_tokens": 7}),
    ({"effort": "max"}, {"effort": "max"}),
    ({"output_format": {"type": "json_schema", "schema": {"a": 1}}}, {"json_schema": {"a": 1}}),
]


@pytest.mark.parametrize(("theirs", "ours"), SAME, ids=lambda fields: ",".join(fields))
def test_the_command_line_is_that_of_claude_agent_sdk(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    assert ClaudeOptions(cli_path=CLI, **ours).argv() == stock_argv(**theirs)


@given(st.lists(st.sampled_from(SAME), max_size=12))
def test_so_are_combinations(chosen: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    for one, other in chosen:
        # If two choices set the same field, keep the first one.
        if not (theirs.keys() & one.keys() or ours.keys() & other.keys() or _meet(theirs, one)):
            theirs |= one
            ours |= other
    assert ClaudeOptions(cli_path=CLI, **ours).argv() == stock_argv(**theirs)


def _meet(some: Mapping[str, Any], more: Mapping[str, Any]) -> bool:
    """Whether claude-agent-sdk merges the two options, or the CLI refuses them together."""
    return any(
        {a, b} <= together
        for together in (
            {"thinking", "max_thinking_tokens"},
            {"skills", "allowed_tools"},
            {"skills", "setting_sources"},
            {"session_id", "resume"},
            {"session_id", "continue_conversation"},
        )
        for a in some
        for b in more
    )


# --- Where the CLI is -------------------------------------------------------------------------------------------------


def make_cli(path: pathlib.Path, mode: int = 0o755) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


@pytest.fixture
def nowhere(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Simulate a machine without the CLI: an empty home and PATH, and no claude-agent-sdk. Return its folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    if os.path.exists("/usr/local/bin/claude"):
        pytest.skip("this machine has a CLI in /usr/local/bin")
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="the places are those of POSIX")
class TestFindCli:
    def test_says_how_to_get_it_when_there_is_none(self, nowhere: pathlib.Path) -> None:
        with pytest.raises(CLINotFoundError) as caught:
            find_cli()
        assert isinstance(caught.value, FileNotFoundError)
        for said in ("npm install -g @anthropic-ai/claude-code", "pip install claude-agent-sdk", "cli_path"):
            assert said in str(caught.value)
        with pytest.raises(CLINotFoundError):
            ClaudeOptions().argv()

    def test_path_comes_first(self, nowhere: pathlib.Path) -> None:
        make_cli(nowhere / "home/.local/bin/claude")
        found = make_cli(nowhere / "bin/claude")
        assert find_cli() == found
        assert ClaudeOptions().argv()[0] == found

    @pytest.mark.parametrize(
        "place",
        [
            ".npm-global/bin/claude",
            ".local/bin/claude",
            "node_modules/.bin/claude",
            ".yarn/bin/claude",
            ".claude/local/claude",
        ],
    )
    def test_then_the_usual_places(self, nowhere: pathlib.Path, place: str) -> None:
        found = make_cli(nowhere / "home" / place)
        assert find_cli() == found

    def test_what_cannot_be_run_is_passed_over(self, nowhere: pathlib.Path) -> None:
        make_cli(nowhere / "home/.npm-global/bin/claude", 0o644)
        (nowhere / "home/.local/bin/claude").mkdir(parents=True)
        found = make_cli(nowhere / "home/.claude/local/claude")
        assert find_cli() == found

    def test_a_relative_entry_of_path_gives_an_absolute_path(
        self, nowhere: pathlib.Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The found path must be absolute, because the CLI may be started in another working directory.
        make_cli(nowhere / "bin/claude")
        monkeypatch.chdir(nowhere)
        monkeypatch.setenv("PATH", "bin")
        assert find_cli() == str(nowhere / "bin/claude")


def test_the_bundled_cli_is_found_without_importing_its_package(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "claude_agent_sdk"
    name = "claude.exe" if sys.platform == "win32" else "claude"
    found = make_cli(package / "_bundled" / name)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    script = "import sys; from claude_wire import find_cli; print(find_cli(), 'claude_agent_sdk' in sys.modules)"
    if os.path.exists("/usr/local/bin/claude"):
        pytest.skip("this machine has a CLI in /usr/local/bin")
    search = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": search, "PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{found} False\n", "")


def test_something_else_by_the_name_of_the_package_is_passed_over(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    make_cli(tmp_path / ("claude.exe" if sys.platform == "win32" else "claude"))
    assert os.path.dirname(find_cli()) == str(tmp_path)


class TestWindows:
    """Simulate Windows by setting ``sys.platform``. All paths in these tests are also valid on POSIX."""

    @pytest.fixture(autouse=True)
    def windows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module.sys, "platform", "win32")

    @pytest.mark.parametrize(
        "path",
        [
            "claude.cmd",
            "C:\\npm\\CLAUDE.CMD",
            "C:claude.bat",
            "claude.cmd. .",
            "claude.cmd:stream",
            "claude:evil.cmd",
            "a/claude.cmd\\...\\..",
            ".cmd",
        ],
    )
    def test_batch_files_are_refused(self, path: str) -> None:
        with pytest.raises(ValueError, match="batch file") as caught:
            ClaudeOptions(cli_path=path).argv()
        assert path not in str(caught.value)

    def test_a_native_cli_is_not(self) -> None:
        assert ClaudeOptions(cli_path="C:\\cmd\\claude.exe").argv()[0] == "C:\\cmd\\claude.exe"

    def test_only_claude_exe_is_found(self, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        make_cli(tmp_path / "claude.cmd")
        make_cli(tmp_path / "claude")
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(CLINotFoundError, match=r"install\.ps1"):
            find_cli()
        found = make_cli(tmp_path / "claude.exe")
        assert find_cli() == found


def test_json_fields_are_json() -> None:
    (_, text) = arguments(settings={"é": [1, None, True]})
    assert json.loads(text) == {"é": [1, None, True]}
    assert text.isascii()
