"""Pass the active OpenTelemetry span to a child process, in environment variables.

The spans of the CLI then become children of the host's active span. As in claude-agent-sdk, each header that
OpenTelemetry would add to a request becomes a variable: ``traceparent`` becomes ``TRACEPARENT``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

#: The variables of a W3C trace. They are replaced together, because both must belong to the same trace.
W3C = ("TRACEPARENT", "TRACESTATE")

#: Longest variable to pass on, in bytes, including its name. W3C allows so much baggage. Baggage may come from an
#: untrusted request, so longer values are dropped.
MAX_BYTES = 8192


def trace_context() -> dict[str, str]:
    """The variables for the active span; empty without a span, or if OpenTelemetry is not imported. Never raises.

    They include other values that OpenTelemetry propagates with a span, such as ``BAGGAGE``.
    """
    if "opentelemetry.trace" not in sys.modules:  # then no span can be active
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
    """Replace the trace in an environment. Variables named in ``given`` are not changed."""
    for name in {*W3C, *trace}.difference(given) if trace else ():
        environment.pop(name, None)
        if name in trace:
            environment[name] = trace[name]


def _fits(name: Any, value: Any) -> bool:
    """True if a process can get this variable in its environment."""
    try:
        plain = os.fsencode(name + value)
    except (TypeError, UnicodeEncodeError):
        return False
    return b"\0" not in plain and "=" not in name and len(plain) <= MAX_BYTES
