"""The trace that a process is started in, as variables of its environment. Knows OpenTelemetry; not processes.

The names and rules are those of claude-agent-sdk: what OpenTelemetry would put into the headers of a request goes into
variables, in capitals. So the spans of the CLI are below the active span of its host.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["join_trace", "trace_context"]

#: What W3C names a trace by. Both go together: that of one trace does not fit the other of another trace.
W3C = ("TRACEPARENT", "TRACESTATE")

#: Above this length a variable is left out. Baggage may be that of a request of anybody; W3C allows it as many bytes.
MAX_BYTES = 8192


def trace_context() -> dict[str, str]:
    """The variables for the active span; none without one, or where nobody has imported OpenTelemetry. Never raises.

    With a trace, what else OpenTelemetry passes on is among them, such as ``BAGGAGE``, if a process can be given it.
    """
    if "opentelemetry.trace" not in sys.modules:  # nobody can have an active span
        return {}
    carrier: dict[Any, Any] = {}
    try:
        from opentelemetry import propagate

        propagate.inject(carrier)
        found = {name.upper(): value for name, value in carrier.items() if _fits(name, value)}
    except Exception as error:
        logging.getLogger("claude_wire").debug("the trace was not passed on: %s", type(error).__name__)
        return {}
    return found if "TRACEPARENT" in found else {}


def join_trace(environment: dict[str, str], trace: Mapping[str, str], given: Iterable[str]) -> None:
    """Put a trace into an environment, in place of the one that is there. Variables of ``given`` stay as they are."""
    for name in {*W3C, *trace}.difference(given) if trace else ():
        environment.pop(name, None)
        if name in trace:
            environment[name] = trace[name]


def _fits(name: Any, value: Any) -> bool:
    """Whether a process can be given a variable."""
    try:
        plain = os.fsencode(name + value)
    except (TypeError, UnicodeEncodeError):
        return False
    return b"\0" not in plain and "=" not in name and len(plain) <= MAX_BYTES
