"""Pass the active OpenTelemetry span to a child process in environment variables.

The CLI's spans then become children of the host's active span. As in claude-agent-sdk, each header that OpenTelemetry
would add to a request becomes a variable: ``traceparent`` becomes ``TRACEPARENT``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

#: The variables of a W3C trace. Both must belong to the same trace, so they are always replaced together.
W3C = ("TRACEPARENT", "TRACESTATE")

#: Maximum size of a variable in bytes, including its name. Baggage may come from an untrusted request, so longer values
#: are dropped. The W3C standard has the same limit for baggage.
MAX_BYTES = 8192


def trace_context() -> dict[str, str]:
    """Return the variables for the active span. Never raises.

    They include other values that OpenTelemetry propagates with a span, such as ``BAGGAGE``. The result is empty if
    there is no active span, or if OpenTelemetry is not imported.
    """
    if "opentelemetry.trace" not in sys.modules:  # no span can be active
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
    """Replace the trace in an environment. Variables named in ``given`` stay unchanged."""
    for name in {*W3C, *trace}.difference(given) if trace else ():
        environment.pop(name, None)
        if name in trace:
            environment[name] = trace[name]


def _fits(name: Any, value: Any) -> bool:
    """Return True if a process's environment can have this variable."""
    try:
        plain = os.fsencode(name + value)
    except (TypeError, UnicodeEncodeError):
        return False
    return b"\0" not in plain and "=" not in name and len(plain) <= MAX_BYTES
