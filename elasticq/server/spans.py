"""OpenTelemetry spans of requests, if otel.enabled is set and the extra [otel] is installed.

A span is created after its request was answered, with the request's times, so it delays no request. Its parent is the
caller's span, from traceparent or X-Amzn-Trace-Id. No attribute contains a part of the body.
"""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from elasticq.http.admission.request_log import Observer, Seen
from elasticq.server.settings import NO_OPENTELEMETRY, Otel, SettingsError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace.export import SpanExporter

_XRAY_ROOT: Final = re.compile(r"(?:^|;)Root=1-([0-9a-f]{8})-([0-9a-f]{24})(?:;|$)")
_XRAY_PARENT: Final = re.compile(r"(?:^|;)Parent=([0-9a-f]{16})(?:;|$)")
OPERATIONS: Final = {"SendMessage": "send", "SendMessageBatch": "send", "ReceiveMessage": "receive"}
"""The values of messaging.operation.type. Actions of SETTLING have "settle", all others none."""
SETTLING: Final = ("DeleteMessage", "DeleteMessageBatch", "ChangeMessageVisibility", "ChangeMessageVisibilityBatch")


class Spans:
    """The spans of answered requests. ``observe`` creates one; ``close`` sends pending ones to the exporter."""

    def __init__(self, node_name: str, exporter: "SpanExporter") -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from elasticq import __version__

        resource = Resource.create(
            {"service.name": "elasticq", "service.version": __version__, "service.instance.id": node_name}
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("elasticq", __version__)

    def observe(self, seen: Seen) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        ended_ns = time.time_ns()
        attributes: dict[str, str | int] = {
            "rpc.system": "aws-api",
            "rpc.service": "sqs",
            "rpc.method": seen.action,
            "aws.request_id": seen.request_id,
            "http.response.status_code": seen.status,
            "messaging.system": "aws_sqs",
        }
        if seen.queue:
            attributes["messaging.destination.name"] = seen.queue.partition("/")[2]
        operation = "settle" if seen.action in SETTLING else OPERATIONS.get(seen.action)
        if operation is not None:
            attributes["messaging.operation.type"] = operation
        if seen.code != "OK":
            attributes["error.type"] = seen.code
        span = self._tracer.start_span(
            f"sqs.{seen.action or 'unknown'}",
            context=parent(seen.parents),
            kind=SpanKind.SERVER,
            attributes=attributes,
            start_time=ended_ns - int(seen.took_s * 1e9),
        )
        if seen.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended_ns)

    def close(self) -> None:
        self._provider.shutdown()


def parent(headers: dict[str, str]) -> "Context | None":
    """Return the caller's context: W3C's trace context, else X-Ray's. Return None if the span is a root."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if "traceparent" in headers:
        return TraceContextTextMapPropagator().extract(headers)
    text = headers.get("x-amzn-trace-id", "")
    root, caller = _XRAY_ROOT.search(text), _XRAY_PARENT.search(text)
    if root is None or caller is None:
        return None
    flags = TraceFlags(TraceFlags.SAMPLED if "Sampled=0" not in text else TraceFlags.DEFAULT)
    caller_context = SpanContext(int(root[1] + root[2], 16), int(caller[1], 16), is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(caller_context))


def make(settings: Otel, node_name: str) -> tuple[Observer | None, Callable[[], None]]:
    """Return the observer of requests (None if disabled) and the function that ends it.

    Raise SettingsError if the libraries are missing.
    """
    if not settings.enabled:
        return None, lambda: None
    try:
        spans = Spans(node_name, _exporter(settings.exporter))
    except ImportError as error:
        raise SettingsError(f"{NO_OPENTELEMETRY} ({error})") from error
    return spans.observe, spans.close


def _exporter(name: str) -> "SpanExporter":
    """Return the exporter. OpenTelemetry's variables OTEL_EXPORTER_OTLP_* configure otlp."""
    if name == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    import sys

    from opentelemetry.sdk.trace.export import ConsoleSpanExporter

    return ConsoleSpanExporter(out=sys.stderr, formatter=lambda span: span.to_json(indent=None) + "\n")
