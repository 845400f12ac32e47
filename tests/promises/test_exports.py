"""The public names. A change to these lists changes what users can import."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import subprocess
import sys
import types

import msgspec
import pytest

import claude_wire
from claude_wire import messages
from claude_wire.messages.base import MessageBase, NoOther, Wire
from claude_wire.messages.vocabulary import Family

#: The public names of the package `claude_wire`.
NAMES = [
    "Accumulator",
    "AssistantMessage",
    "AsyncHookOutput",
    "CLINotFoundError",
    "CanUseToolRequest",
    "ClaudeOptions",
    "ClaudeWireError",
    "ControlRequest",
    "ControlResponse",
    "Decoder",
    "ElicitationRequest",
    "ElicitationResponse",
    "EncodeError",
    "Encoder",
    "HandleError",
    "HookCallbackRequest",
    "HookMatcher",
    "HookOutput",
    "InitMessage",
    "InvalidLine",
    "InvalidLineError",
    "Kind",
    "LineSplitter",
    "MaxBudgetError",
    "McpServer",
    "Message",
    "MessageStream",
    "PROTOCOL_VERSION",
    "PermissionResult",
    "PermissionResultAllow",
    "PermissionResultDeny",
    "Process",
    "ProcessError",
    "ProcessInputError",
    "PromptError",
    "RateLimitError",
    "RequestError",
    "RequestRefusedError",
    "RequestTimeoutError",
    "ResultMessage",
    "Session",
    "SessionEndedError",
    "StreamEvent",
    "SystemMessage",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "TurnError",
    "UnfinishedTurnError",
    "UnknownMessage",
    "UserDialogCancelled",
    "UserDialogCompleted",
    "UserMessage",
    "__version__",
    "ask",
    "decode",
    "encode",
    "find_cli",
    "open_process",
    "open_session",
    "peek",
    "read",
]

#: The names of `claude_wire.messages` that are not message classes: open unions and functions.
MESSAGE_NAMES = [
    "AdvisorResult",
    "BashCodeExecutionResult",
    "BrowserStateChange",
    "CacheMissReason",
    "Caller",
    "Citation",
    "CodeExecutionResult",
    "ContentBlock",
    "ContextEdit",
    "ControlAnswer",
    "ControlRequestPayload",
    "Delta",
    "DocumentSource",
    "Event",
    "FallbackCreditStatus",
    "HookInput",
    "HookSpecificOutput",
    "ImageSource",
    "InputTransformation",
    "InvalidKind",
    "InvalidLine",
    "McpServerConfig",
    "Message",
    "MessageOrigin",
    "PermissionDecision",
    "PermissionResult",
    "PermissionUpdate",
    "RequestId",
    "SourceContent",
    "TextEditorCodeExecutionResult",
    "ToolChange",
    "ToolSearchResult",
    "Unknown",
    "UnknownBlock",
    "UnknownDelta",
    "UnknownEvent",
    "UnknownHookInput",
    "UnknownMessage",
    "UnknownObject",
    "UnknownRequest",
    "UsageIteration",
    "UserDialogResult",
    "WebFetchResult",
    "from_dict",
    "wire_fields",
]


def is_message_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Wire)


def test_the_names_are_pinned() -> None:
    assert sorted(claude_wire.__all__) == NAMES


def test_the_names_beside_the_message_classes_are_pinned() -> None:
    others = [name for name in messages.__all__ if not is_message_class(getattr(messages, name))]
    assert sorted(others) == MESSAGE_NAMES


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("GetUsageResponse", "it is claude_wire.messages.GetUsageResponse"),
        ("ApiError", "it is claude_wire.errors.ApiError"),
        ("peek_lines", "it is claude_wire.codec.peek_lines"),
        ("Guard", "it is claude_wire.session.Guard"),
        ("set_byte_budget", "it is claude_wire.streams.set_byte_budget"),
        ("nothing_of_this_name", "has no attribute 'nothing_of_this_name'"),
    ],
)
def test_a_name_that_another_package_has_is_refused_with_its_place(name: str, place: str) -> None:
    with pytest.raises(AttributeError, match=f"{re.escape(place)}$"):
        getattr(claude_wire, name)


def test_no_name_is_exported_twice() -> None:
    assert len(set(claude_wire.__all__)) == len(claude_wire.__all__)
    # A duplicate would mean that a name of one module hides the same name of another.
    assert len(set(messages.__all__)) == len(messages.__all__)


def test_every_struct_of_the_package_is_importable_from_it() -> None:
    found, todo = set(), [Wire]
    while todo:
        for cls in todo.pop().__subclasses__():
            todo.append(cls)
            if (
                cls.__module__.startswith("claude_wire.messages.")
                and not cls.__name__.startswith("_")
                and cls not in (Family, MessageBase, NoOther)
            ):
                found.add(cls)
    assert len(found) > 400
    assert [cls.__name__ for cls in found if getattr(messages, cls.__name__, None) is not cls] == []


def test_no_private_name_is_exported() -> None:
    assert [name for name in claude_wire.__all__ if name.startswith("_")] == ["__version__"]
    for name in claude_wire.__all__:
        value = getattr(claude_wire, name)
        assert not isinstance(value, types.ModuleType), name
        if type(value) is not types.GenericAlias and (inspect.isclass(value) or inspect.isfunction(value)):
            assert value.__module__.startswith("claude_wire."), name


def test_a_star_import_brings_exactly_the_public_names() -> None:
    namespace: dict[str, object] = {}
    exec("from claude_wire import *", namespace)
    del namespace["__builtins__"]
    assert set(namespace) == set(claude_wire.__all__)


def test_names_that_are_imported_when_they_are_first_used_are_listed_without_that() -> None:
    program = """
import sys, claude_wire
modules = set(sys.modules)
print(set(claude_wire.__all__) - set(dir(claude_wire)), set(sys.modules) - modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set() set()\n"


def test_the_modules_that_one_may_import_have_their_names() -> None:
    # Use a new process, in which no other test has imported these modules.
    script = """
from claude_wire.process import Process, open_process
from claude_wire.accumulate import Accumulator, PartialBlock, PartialMessage
from claude_wire.codec import Decoder, DecoderStats, Encoder, decode, encode
from claude_wire.errors import ClaudeWireError, ProcessError
from claude_wire.integrations.agent_sdk import WireProcessError, WireTransport
from claude_wire.integrations.mcp import InProcessMcpServer
from claude_wire.integrations.otel import SpanRecorder, record, traced
from claude_wire.messages import Message, ResultMessage
from claude_wire.session import (
    Guard,
    HookMatcher,
    McpServer,
    Session,
    SessionBatches,
    SessionMessages,
    ask,
    open_session,
)
from claude_wire.sync import Messages, Session, ask, open_session
from claude_wire.testing import CutOutput, Replay
from claude_wire.testing.fixtures import replay_cli
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_sync_api_is_there_when_it_is_first_used() -> None:
    script = """
import sys, claude_wire
assert "claude_wire.sync" not in sys.modules
assert claude_wire.sync.ask is sys.modules["claude_wire.sync"].ask
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_no_public_name_hides_a_builtin() -> None:
    builtins = __import__("builtins")
    assert [name for name in claude_wire.__all__ if hasattr(builtins, name)] == []


def test_everything_public_is_documented() -> None:
    for name in claude_wire.__all__:
        value = getattr(claude_wire, name)
        if type(value) is not types.GenericAlias and (inspect.isclass(value) or inspect.isfunction(value)):
            # Require its own docstring, because an inherited one would describe another class.
            assert value.__doc__, name
            if inspect.isclass(value) and name not in MESSAGE_NAMES:
                assert value.__doc__ not in [base.__doc__ for base in value.__mro__[1:]], name


def test_the_version_is_that_of_the_installed_package() -> None:
    assert claude_wire.__version__ == importlib.metadata.version("claude-wire")
    assert re.fullmatch(r"\d+\.\d+\.\d+(\w+)?", claude_wire.__version__)


def test_the_protocol_version_is_that_of_a_cli() -> None:
    assert claude_wire.PROTOCOL_VERSION == "2.1.332"


def test_the_import_needs_no_optional_library_and_no_transport() -> None:
    # The libraries of the extras, and the modules that only a transport needs, which are slow to import.
    script = """
import sys
import msgspec  # which imports subprocess on Python 3.10
before = {*sys.modules}
import claude_wire
optional = "click", "rich", "jsonschema", "claude_agent_sdk", "orjson", "pydantic", "trio", "uvloop"
slow = "anyio", "asyncio", "subprocess", "logging", "claude_wire.streams.message_stream"
print([name for name in (*optional, *slow) if name in sys.modules and name not in before])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_no_message_class_lends_memory() -> None:
    # A msgspec.Raw or memoryview in a message would show other data after the decoder reuses its buffer.
    def walk(hint: msgspec.inspect.Type) -> None:
        assert not isinstance(hint, (msgspec.inspect.RawType, msgspec.inspect.MemoryViewType)), hint
        for name in ("types", "item_type", "key_type", "value_type"):
            inner = getattr(hint, name, ())
            for one in inner if isinstance(inner, tuple) else (inner,):
                walk(one)

    classes = [getattr(messages, name) for name in messages.__all__ if is_message_class(getattr(messages, name))]
    for cls in classes:
        info = msgspec.inspect.type_info(cls)
        assert isinstance(info, msgspec.inspect.StructType)
        for field in info.fields:
            walk(field.type)
