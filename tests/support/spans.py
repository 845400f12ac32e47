"""Spans as plain values, for comparing the spans of two sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from claude_wire.integrations.otel import record

__all__ = ["PlainSpan", "Spans", "spans_of"]


class PlainSpan(NamedTuple):
    """A span without its id."""

    #: The names of its ancestors and its own name, from the outermost.
    path: tuple[str, ...]
    #: Nanoseconds since 1970.
    start: int
    end: int
    attributes: dict[str, Any]
    failed: bool
    kind: str

    @property
    def name(self) -> str:
        return self.path[-1]


class Spans:
    """Collect finished spans.

    Attributes:
        tracer: the tracer for the code under test.

    Args:
        before: processors that see each span before it is stored.
    """

    def __init__(self, *before: SpanProcessor) -> None:
        self._exporter = InMemorySpanExporter()
        self._provider = TracerProvider()
        for processor in (*before, SimpleSpanProcessor(self._exporter)):
            self._provider.add_span_processor(processor)
        self.tracer: Tracer = self._provider.get_tracer("test")

    @property
    def ended(self) -> list[PlainSpan]:
        """All finished spans, ordered by their start."""
        found = self._exporter.get_finished_spans()
        known = {span.context.span_id: span for span in found if span.context is not None}

        def path(span: ReadableSpan) -> tuple[str, ...]:
            above = known.get(span.parent.span_id) if span.parent is not None else None
            return (*(path(above) if above is not None else ()), span.name)

        plain = [
            PlainSpan(
                path(span),
                span.start_time or 0,
                span.end_time or 0,
                dict(span.attributes or {}),
                not span.status.is_ok,
                span.kind.name,
            )
            for span in found
        ]
        return sorted(plain, key=lambda span: (span.start, len(span.path), span.end, span.path))


def spans_of(messages: Iterable[Any]) -> list[PlainSpan]:
    """Return the spans that these messages produce."""
    spans = Spans()
    record(messages, spans.tracer)
    return spans.ended
