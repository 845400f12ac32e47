from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claude_wire import read
from claude_wire.integrations.otel import record

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
record(read("session.ndjson"), provider.get_tracer("sessions"))
print([span.name for span in exporter.get_finished_spans()])  # ['chat claude-opus-5-5', 'invoke_agent claude-code']
