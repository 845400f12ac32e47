"""WireTransport uses internals of claude-agent-sdk. They are as it expects, or it reports which one is not."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport, query
from claude_agent_sdk._internal import session_resume
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from claude_wire.integrations import agent_sdk
from claude_wire.integrations.agent_sdk import SUPPORTED, TESTED, WireTransport
from sdk_cli import MARKS, run_python

pytestmark = MARKS


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def parameters(function: Any) -> str:
    return ", ".join(inspect.signature(function).parameters)


def test_the_interface_is_the_one_that_it_was_made_for() -> None:
    assert Transport.__abstractmethods__ == {"connect", "write", "read_messages", "close", "is_ready", "end_input"}
    assert {name: parameters(getattr(Transport, name)) for name in Transport.__abstractmethods__} == {
        "connect": "self",
        "write": "self, data",
        "read_messages": "self",
        "close": "self",
        "is_ready": "self",
        "end_input": "self",
    }
    assert parameters(query) == "prompt, options, transport"
    assert parameters(ClaudeSDKClient) == "options, transport"


def test_so_are_the_private_parts() -> None:
    base = SubprocessCLITransport
    assert parameters(base) == "prompt, options"
    assert (
        parameters(base._find_cli) == parameters(base._build_command) == parameters(base._derive_client_app) == "self"
    )
    assert inspect.iscoroutinefunction(base._derive_client_app)
    assert parameters(base._check_claude_version) == "self, data"
    assert not inspect.iscoroutinefunction(base._check_claude_version)
    assert parameters(base._reject_windows_batch_cli) == "cli_path"
    assert parameters(agent_sdk.materialize_resume_session) == "options"
    assert parameters(agent_sdk.apply_materialized_options) == "options, materialized"
    assert parameters(agent_sdk.validate_session_store_options) == "options"
    assert parameters(agent_sdk._get_projects_dir) == "env_override"
    assert parameters(agent_sdk._configure_can_use_tool) == "options"
    fields = {field.name for field in dataclasses.fields(session_resume.MaterializedResume)}
    assert fields == {"config_dir", "resume_session_id", "cleanup"}
    attributes = vars(base("", ClaudeAgentOptions()))
    assert {
        "_prompt",
        "_options",
        "_cli_path",
        "_cwd",
        "_ready",
        "_exit_error",
        "_version_checked",
    } <= attributes.keys()


def test_no_attribute_of_the_original_is_used_for_something_else() -> None:
    ours, theirs = vars(WireTransport("", ClaudeAgentOptions())), vars(SubprocessCLITransport("", ClaudeAgentOptions()))
    assert {name: type(ours[name]) for name in theirs} == {name: type(theirs[name]) for name in theirs}
    assert not {name for name in ours.keys() - theirs.keys() if hasattr(SubprocessCLITransport, name)}


def test_the_installed_version_is_supported() -> None:
    assert SUPPORTED[0] <= numbers(sdk.__version__) <= numbers(TESTED) < SUPPORTED[1]


def test_without_the_sdk_it_says_what_to_install() -> None:
    said = run_python("""
        import sys
        sys.modules["claude_agent_sdk"] = None
        try:
            import claude_wire.integrations.agent_sdk
        except ImportError as error:
            print(error.name, error)
    """)
    assert said.startswith("claude_agent_sdk claude_wire.integrations.agent_sdk needs claude-agent-sdk")
    assert 'pip install "claude-agent-sdk>=0.2' in said


def test_with_another_version_it_says_which_it_supports() -> None:
    versions = ["0.1.80", "0.2.180", "0.3.0", "1.0"]
    said = run_python(f"""
        import claude_agent_sdk
        for version in {versions}:
            claude_agent_sdk.__version__ = version
            try:
                import claude_wire.integrations.agent_sdk
            except ImportError as error:
                print(error)
    """)
    for version, line in zip(versions, said.splitlines(), strict=True):
        assert f"supports claude-agent-sdk >=0.2.181,<0.3; {version} is installed" in line


@pytest.mark.parametrize(
    ("module", "owner", "name"),
    [
        ("sessions", "module", "_get_projects_dir"),
        ("transport.subprocess_cli", "module.SubprocessCLITransport", "_reject_windows_batch_cli"),
    ],
)
def test_with_an_sdk_that_is_built_otherwise_it_says_so(module: str, owner: str, name: str) -> None:
    said = run_python(f"""
        import claude_agent_sdk._internal.{module} as module
        del {owner}.{name}
        try:
            import claude_wire.integrations.agent_sdk
        except ImportError as error:
            print(error)
    """)
    assert "whose internals differ" in said
    assert name in said


def test_the_package_does_not_import_it() -> None:
    assert "False" in run_python("import claude_wire, sys; print('claude_agent_sdk' in sys.modules)")
