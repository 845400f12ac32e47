"""The trace that a process is started in, as variables of its environment. Knows OpenTelemetry; not processes.

The names and rules are those of claude-agent-sdk: what OpenTelemetry would put into the headers of a request goes into
variables, in capitals. So the spans of the CLI are below the active span of its host.
"""

from __future__ import annotations

import logging
import sys

__all__ = ["W3C", "trace_context"]

#: What W3C names a trace by. Both go together: that of one trace does not fit the other of another trace.
W3C = frozenset(("TRACEPARENT", "TRACESTATE"))


def trace_context() -> dict[str, str]:
    """The variables for the active span; none without one, or where nobody has imported OpenTelemetry. Never raises."""
    if "opentelemetry.trace" not in sys.modules:  # nobody can have an active span
        return {}
    carrier: dict[str, str] = {}
    try:
        from opentelemetry import propagate

        propagate.inject(carrier)
    except Exception as error:
        logging.getLogger("claude_wire").debug("the trace was not passed on: %s", type(error).__name__)
        return {}
    return {name.upper(): value for name, value in carrier.items()}
