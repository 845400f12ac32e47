"""A process receives the active OpenTelemetry span in its environment, so its spans become children of that span."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

pytest.importorskip("opentelemetry.trace")

from opentelemetry import baggage, context, propagate, trace

from async_backends import DEADLINE
from children import python
from claude_wire import open_process, open_session
from claude_wire.process.tracing import trace_context

SHOWN = ("TRACEPARENT", "TRACESTATE", "BAGGAGE")
CHILD = f"say(type='env', **{{name: os.environ.get(name) for name in {SHOWN!r}}})"
#: An agent that reports its trace variables in the answer to ``initialize``.
AGENT = f"""
message = json.loads(sys.stdin.readline())
names = {SHOWN!r}
say(type="control_response", response={{"subtype": "success", "request_id": message["request_id"],
    "response": {{"claude_code_version": ",".join(str(os.environ.get(name)) for name in names)}}}})
sys.stdin.read()
"""
HERE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@contextmanager
def span(state: str = "") -> Iterator[None]:
    states = trace.TraceState([("vendor", state)]) if state else None
    found = trace.SpanContext(
        int(HERE[3:35], 16), int(HERE[36:52], 16), is_remote=False, trace_flags=trace.TraceFlags(1), trace_state=states
    )
    with trace.use_span(trace.NonRecordingSpan(found)):
        yield


def given(**arguments: Any) -> tuple[str | None, ...]:
    async def main() -> tuple[str | None, ...]:
        with anyio.fail_after(DEADLINE):
            async with open_process(python(CHILD), **arguments) as process:
                (message,) = [message async for message in process]
        told: Any = message
        return tuple(told.to_dict()[name] for name in SHOWN)

    return anyio.run(main)


@pytest.fixture(autouse=True)
def inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SHOWN:
        monkeypatch.setenv(name, f"inherited {name}")


INHERITED = ("inherited TRACEPARENT", "inherited TRACESTATE", "inherited BAGGAGE")


def test_the_active_span_takes_the_place_of_what_the_host_inherited() -> None:
    with span():
        assert given() == (HERE, None, INHERITED[2])
    with span(state="x"):
        assert given() == (HERE, "vendor=x", INHERITED[2])
    assert given() == INHERITED


def test_what_the_caller_says_counts() -> None:
    with span(state="x"):
        assert given(extra_env={"TRACEPARENT": "mine"}) == ("mine", "vendor=x", INHERITED[2])
        assert given(extra_env={"OTHER": "mine"}) == (HERE, "vendor=x", INHERITED[2])
        assert given(env={"PATH": "/bin"}) == (None, None, None)
        assert given(env={"TRACESTATE": "mine"}) == (None, "mine", None)


def test_baggage_goes_with_a_trace_only() -> None:
    token = context.attach(baggage.set_baggage("key", "value"))
    try:
        assert given() == INHERITED
        with span():
            assert given() == (HERE, None, "key=value")
    finally:
        context.detach(token)


@pytest.mark.parametrize(
    "more",
    [{"n": "a\0b"}, {"a=b": "c"}, {"a\0b": "c"}, {"n": "\ud83d"}, {"n": 1}, {1: "n"}, {"n": None}, {"n": "x" * 8192}],
    ids=ascii,
)
def test_what_no_process_can_be_given_is_left_out(more: dict[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A propagator may return any value, and baggage may come from an untrusted request. The process starts anyway."""
    monkeypatch.setattr(propagate, "inject", lambda carrier: carrier.update({"traceparent": HERE, **more}))
    assert given() == (HERE, None, INHERITED[2])
    assert trace_context() == {"TRACEPARENT": HERE}


@pytest.mark.parametrize("parent", ["a\0b", None, "x" * 8193])
def test_without_the_name_of_a_trace_nothing_is_passed_on(parent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagate, "inject", lambda carrier: carrier.update(traceparent=parent, tracestate="a=b"))
    assert given() == INHERITED


def test_a_propagator_that_fails_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(carrier: object) -> None:
        raise ValueError

    monkeypatch.setattr(propagate, "inject", fail)
    with span():
        assert given() == INHERITED


async def test_a_session_gives_it_too() -> None:
    with anyio.fail_after(DEADLINE), span():
        async with open_session(python(AGENT)) as session:
            assert session.info is not None
            assert session.info.claude_code_version == f"{HERE},None,{INHERITED[2]}"


def test_a_host_that_has_no_traces_does_not_import_opentelemetry() -> None:
    code = """
import sys
from claude_wire import open_process
open_process(["program"])
print([name for name in sys.modules if "opentelemetry" in name])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == []
