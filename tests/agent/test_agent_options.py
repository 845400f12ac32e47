"""AgentOptions.parse reads what ClaudeOptions and both official SDKs write."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_wire import ClaudeOptions
from claude_wire.agent import AgentOptions
from claude_wire.agent.options import ALIASES, WITHOUT_VALUE
from claude_wire.flags.flags import Flags, flag_of
from each import each
from folders import DATA

FLAGS = [line for line in (DATA / "cli_flags.txt").read_text().splitlines() if line.startswith("--")]
BY_NAME = {flag.name: (one.name, flag) for one in dataclasses.fields(Flags) if (flag := flag_of(one))}
SAID = ["claude", "--output-format", "stream-json", "--verbose"]


def parse(*arguments: str, **environ: str) -> AgentOptions:
    return AgentOptions.parse(["agent", *arguments], environ)


def set_fields(options: AgentOptions) -> dict[str, Any]:
    """Return the fields that differ from the options of an agent started without arguments."""
    plain = AgentOptions()
    values = {one.name: getattr(options, one.name) for one in dataclasses.fields(options)}
    return {name: value for name, value in values.items() if name != "argv" and value != getattr(plain, name)}


# --- What hosts write -------------------------------------------------------------------------------------------------

#: Command lines that the SDKs write (TypeScript 0.3.330, Python 0.2.187), and the fields that they set.
RECORDED: list[tuple[list[str], dict[str, Any]]] = [
    (
        [
            "--system-prompt",
            "",
            "--allowedTools",
            "mcp__calc__add,mcp__calc__fail",
            "--mcp-config",
            '{"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}',
            "--input-format",
            "stream-json",
        ],
        {
            "system_prompt": "",
            "allowed_tools": ("mcp__calc__add", "mcp__calc__fail"),
            "mcp_config": ({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}},),
        },
    ),
    (
        ["--system-prompt", "", "--permission-prompt-tool", "stdio", "--input-format", "stream-json"],
        {"system_prompt": "", "permission_prompt_tool": "stdio"},
    ),
    (
        ["--input-format", "stream-json", "--allowedTools=Bash", "--setting-sources=", "--include-hook-events"],
        {"allowed_tools": ("Bash",), "setting_sources": (), "include_hook_events": True},
    ),
    (
        ["--input-format", "stream-json", "--setting-sources=", "--include-partial-messages"],
        {"setting_sources": (), "include_partial_messages": True},
    ),
    (
        ["--input-format", "stream-json", "--permission-prompt-tool=stdio", "--setting-sources="],
        {"permission_prompt_tool": "stdio", "setting_sources": ()},
    ),
    (
        ["--input-format", "stream-json", "--model=claude-sonnet-4-5", "--setting-sources="],
        {"model": "claude-sonnet-4-5", "setting_sources": ()},
    ),
]


@pytest.mark.parametrize(("arguments", "expected"), RECORDED)
def test_the_command_lines_of_both_sdks_are_read(arguments: list[str], expected: dict[str, Any]) -> None:
    options = AgentOptions.parse([*SAID, *arguments], {"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"})
    said = {"output_format": "stream-json", "input_format": "stream-json", "verbose": True, "reads_session_state": True}
    assert set_fields(options) == said | expected
    assert options.argv == (*SAID[1:], *arguments)


@each("flag", FLAGS, str)
def test_every_flag_of_the_cli_is_read(flag: str) -> None:
    """A flag sets its field or an entry of extra_args, and does not swallow the prompt after it."""
    name = ALIASES.get(flag, flag)
    field, known = BY_NAME.get(name, ("", None))
    if name in ("--print", "--version", "--help", "--verbose"):
        assert set_fields(parse(flag, "hi")) == {name[2:]: True, "prompt": "hi"}
    elif name in ("--input-format", "--output-format"):
        for both in ([flag, "stream-json"], [f"{flag}=stream-json"]):
            assert set_fields(parse(*both, "hi")) == {name[2:].replace("-", "_"): "stream-json", "prompt": "hi"}
    elif name in WITHOUT_VALUE:
        assert set_fields(parse(flag, "hi")) == {"extra_args": {name[2:]: None}, "prompt": "hi"}
    elif known is None:
        for both in ([flag, "1"], [f"{flag}=1"]):
            assert set_fields(parse(*both, "hi")) == {"extra_args": {name[2:]: "1"}, "prompt": "hi"}
    elif known.kind.takes == "bool":
        assert set_fields(parse(flag, "hi")) == {field: True, "prompt": "hi"}
    else:
        text = "{}" if name in ("--json-schema", "--managed-settings") else known.known[0] if known.known else "7"
        value = known.kind.read(text)
        for both in ([flag, text], [f"{flag}={text}"]):
            assert set_fields(parse(*both, "--", "hi")) == {field: value, "prompt": "hi"}


WORDS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
NAMES = st.from_regex(r"[A-Za-z][\w.-]*(\([^(),\0\ud800-\udfff]*\))?", fullmatch=True)
OBJECTS = st.dictionaries(WORDS, st.none() | st.booleans() | st.integers() | WORDS | st.lists(WORDS), max_size=3)
TEXTS = WORDS.filter(lambda text: not text.lstrip().startswith("{"))
OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "bool or str": st.booleans() | WORDS,
    "str": WORDS.filter(bool),
    "int": st.integers(1, 1 << 70),
    "number": st.integers(1) | st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False),
    "list of str": st.lists(NAMES).map(tuple),
    "path": TEXTS,
    "sequence of paths": st.lists(TEXTS).map(tuple),
    "str or mapping": OBJECTS,
    "path, str or mapping": TEXTS | OBJECTS,
    "path, str or mapping, or sequence of them": st.lists(TEXTS | OBJECTS).map(tuple),
}
TAKEN_BY_NAME = {*(flag[2:] for flag in FLAGS)} - {flag[2:] for flag in WITHOUT_VALUE}


@st.composite
def host_options(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, flag in draw(st.lists(st.sampled_from(sorted(BY_NAME.values(), key=lambda one: one[0])), unique_by=id)):
        if flag.known:
            words = st.sampled_from(flag.known)
            fields[name] = draw(st.lists(words).map(tuple) if flag.kind.several else words)
        else:
            fields[name] = draw(OF_TYPE[flag.kind.takes])
    flags = st.from_regex(r"[a-z][a-z-]*", fullmatch=True).filter(lambda name: name not in TAKEN_BY_NAME)
    fields["extra_args"] = draw(
        st.dictionaries(flags, WORDS, max_size=3).map(
            lambda extra: {name: None if f"--{name}" in WITHOUT_VALUE else text for name, text in extra.items()}
        )
    )
    # The CLI refuses these fields in combination with others (see test_options.py).
    for name in ("session_id", "resume_session_at", "resume_drops_turn"):
        fields.pop(name, None)
    for name in ("system_prompt", "append_system_prompt"):
        if name in fields:
            fields.pop(f"{name}_file", None)
    return fields


@given(host_options(), st.none() | WORDS)
def test_parsing_is_the_inverse_of_writing(fields: dict[str, Any], prompt: str | None) -> None:
    host = ClaudeOptions(cli_path="/opt/claude", **fields)
    options = AgentOptions.parse(host.argv(prompt), {})
    for one in dataclasses.fields(Flags):
        written = getattr(host, one.name)
        # An empty mcp_config adds no flag, so the agent has None.
        expected = None if one.name == "mcp_config" and written == () else written
        assert getattr(options, one.name) == expected
    assert options.prompt == prompt
    assert options.print is (prompt is not None)
    assert options.input_format == ("text" if prompt is not None else "stream-json")
    assert options.output_format == "stream-json"


# --- Spellings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["-v"], {"version": True}),
        (["--version"], {"version": True}),
        (["-p", "hi"], {"print": True, "prompt": "hi"}),
        (["hi", "-p"], {"print": True, "prompt": "hi"}),
        (["-p", "--", "--version"], {"print": True, "prompt": "--version"}),
        (["-"], {"prompt": "-"}),
        (["first", "second"], {"prompt": "first"}),
        (["-c"], {"continue_conversation": True}),
        (["-r", "session"], {"resume": "session"}),
        (["-d", "--model", "m"], {"debug": True, "model": "m"}),
        (["--debug=hooks", "hi"], {"debug": "hooks", "prompt": "hi"}),
        (["--debug", "hooks"], {"debug": "hooks"}),
        (["-r", "--model", "m"], {"extra_args": {"resume": None}, "model": "m"}),
        (["--system-prompt", "-x"], {"system_prompt": "-x"}),
        (["--system-prompt=a=b"], {"system_prompt": "a=b"}),
        (["--model", "a", "--model=b"], {"model": "b"}),
        (["--add-dir", "a", "b", "--add-dir=c", "hi"], {"add_dir": ("a", "b", "c"), "prompt": "hi"}),
        (["--plugin-dir", "a", "hi"], {"plugin_dir": ("a",), "prompt": "hi"}),
        (
            ["--allowed-tools", "Bash(git log, git diff) Edit", "Read", "--verbose"],
            {"allowed_tools": ("Bash(git log, git diff)", "Edit", "Read"), "verbose": True},
        ),
        (["--tools", ""], {"tools": ()}),
        (["--settings", "{broken"], {"settings": "{broken"}),
        (["--settings", '{"a": NaN}'], {"settings": '{"a": NaN}'}),
        (["--settings", "[1]"], {"settings": "[1]"}),
        (["--max-budget-usd", "1e-07"], {"max_budget_usd": 1e-7}),
        (
            ["--of-tomorrow", "--and-more", "x", "--bare", "hi", "-z"],
            {"extra_args": {"of-tomorrow": None, "and-more": "x", "bare": None, "z": None}, "prompt": "hi"},
        ),
        (["--permission-mode", "of_tomorrow"], {"extra_args": {"permission-mode": "of_tomorrow"}}),
        (["--setting-sources=user,cloud"], {"extra_args": {"setting-sources": "user,cloud"}}),
    ],
    ids=" ".join,
)
def test_how_arguments_are_read(arguments: list[str], expected: dict[str, Any]) -> None:
    options = parse(*arguments)
    assert set_fields(options) == expected
    assert list(options.extra_args) == list(expected.get("extra_args", {}))
    assert options.argv == tuple(arguments)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model"], "--model needs a value"),
        (["--max-turns", "three"], "--max-turns expects an integer, got 'three'"),
        (["--max-turns", "0"], "--max-turns must be at least 1"),
        (["--max-budget-usd", "0"], "--max-budget-usd must be more than 0"),
        (["--max-budget-usd", "nan"], "--max-budget-usd must be more than 0"),
        (["--json-schema", "{broken"], "--json-schema expects a JSON object, got '{broken'"),
        (["--json-schema", "[" * 100_000], f"--json-schema expects a JSON object, got '{'[' * 79}…'"),
        (["--continue=yes"], "--continue takes no value"),
        (["--version=2"], "--version takes no value"),
        (["--output-format", "yaml"], "--output-format must be one of 'text', 'json', 'stream-json', not 'yaml'"),
        (["--input-format"], "--input-format needs a value"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_is_wrong_is_told_with_its_flag(arguments: list[str], told: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the next line compares the whole text
        parse(*arguments)
    assert str(caught.value) == told


PIECES = st.sampled_from(
    [*FLAGS, *ALIASES, "--", "-", "=", "{", '{"a":1}', "3", "nan", "inf", "1e999", "-1", "plan", "(", "a,b"]
)


@given(st.lists(PIECES | WORDS | st.builds("{}={}".format, PIECES, PIECES | WORDS)))
def test_any_arguments_are_read_or_refused_with_a_line(arguments: list[str]) -> None:
    try:
        options = parse(*arguments)
    except ValueError as error:
        assert str(error).isprintable()  # noqa: PT017 - parse may raise or return
    else:
        assert options.argv == tuple(arguments)


def test_the_environment_says_whether_states_are_read() -> None:
    assert parse(CLAUDE_CODE_SDK_READS_SESSION_STATE="1").reads_session_state
    assert not parse(CLAUDE_CODE_SDK_READS_SESSION_STATE="0").reads_session_state
    assert not parse().reads_session_state


def test_no_value_is_in_the_repr() -> None:
    assert repr(parse("--system-prompt", "secret", "secret")) == "AgentOptions(system_prompt=..., prompt=..., argv=...)"


def test_an_agent_can_be_given_options_without_a_command_line() -> None:
    options = AgentOptions(model="m", add_dir=[pathlib.Path("a")], settings={"a": 1})
    assert options.arguments() == ["--model", "m", "--settings", json.dumps({"a": 1}), "--add-dir", "a"]
    assert parse(*options.arguments()) == dataclasses.replace(options, add_dir=("a",))
    with pytest.raises(TypeError, match=r"AgentOptions\.model takes a str, not int"):
        AgentOptions(model=1)
    assert AgentOptions.parse(["agent"]).reads_session_state == (
        os.environ.get("CLAUDE_CODE_SDK_READS_SESSION_STATE") == "1"
    )
