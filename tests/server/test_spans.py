"""Requests as OpenTelemetry's spans."""

import subprocess
import sys

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from elasticq.http.admission.request_log import Seen
from elasticq.server import spans
from elasticq.server.settings import Otel, SettingsError
from elasticq.server.spans import Spans, make

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"


def seen(action: str = "SendMessage", status: int = 200, code: str = "OK", **parents: str) -> Seen:
    headers = {name.replace("_", "-"): value for name, value in parents.items()}
    return Seen("id-1", action, "000000000000", "000000000000/orders", status, code, 0.25, headers)


def exported(*requests: Seen) -> tuple[object, ...]:
    exporter = InMemorySpanExporter()
    observing = Spans("n1", exporter)
    for request in requests:
        observing.observe(request)
    observing.close()
    return exporter.get_finished_spans()


def test_a_request_is_a_server_span_with_its_times_and_names() -> None:
    [span] = exported(seen())
    assert (span.name, span.kind, span.parent) == ("sqs.SendMessage", SpanKind.SERVER, None)
    assert span.end_time - span.start_time == 250_000_000
    assert span.attributes["messaging.destination.name"] == "orders"
    assert span.attributes["messaging.operation.type"] == "send"
    assert span.attributes["aws.request_id"] == "id-1"
    assert span.resource.attributes["service.name"] == "elasticq"
    assert span.resource.attributes["service.instance.id"] == "n1"


def test_errors_are_told_and_ours_are_errors_of_the_span() -> None:
    theirs, ours = exported(seen("DeleteMessage", 400, "ReceiptHandleIsInvalid"), seen("", 500, "InternalFailure"))
    assert theirs.attributes["error.type"] == "ReceiptHandleIsInvalid"
    assert theirs.attributes["messaging.operation.type"] == "settle"
    assert theirs.status.status_code == StatusCode.UNSET
    assert ours.status.status_code == StatusCode.ERROR


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": f"00-{TRACE}-{CALLER}-01"},
        {"x_amzn_trace_id": f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={CALLER};Sampled=1"},
    ],
)
def test_the_caller_is_the_parent(headers: dict[str, str]) -> None:
    [span] = exported(seen(**headers))
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == CALLER


@pytest.mark.parametrize("headers", [{"traceparent": "nonsense"}, {"x_amzn_trace_id": "Root=1-zz;Parent=1"}])
def test_a_parent_that_is_none_makes_a_root(headers: dict[str, str]) -> None:
    [span] = exported(seen(**headers))
    assert span.parent is None


def test_a_caller_that_does_not_sample_is_not_sampled() -> None:
    assert exported(seen(x_amzn_trace_id=f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={CALLER};Sampled=0")) == ()


def test_nothing_is_imported_while_it_is_off() -> None:
    code = (
        "import sys; from elasticq.server.spans import make; from elasticq.server.settings import Otel;"
        "assert make(Otel(), 'n1')[0] is None; assert 'opentelemetry' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_a_missing_library_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"\[otel\]"):
        make(Otel(enabled=True, exporter="console"), "n1")


@pytest.mark.parametrize("exporter", ["otlp", "console"])
def test_both_exporters_can_be_had(exporter: str) -> None:
    observe, close = make(Otel(enabled=True, exporter=exporter), "n1")  # type: ignore[arg-type]
    assert observe is not None
    close()


def test_operations_are_known_actions() -> None:
    from elasticq.wire.operations import OPERATIONS

    assert {*spans.OPERATIONS, *spans.SETTLING} <= set(OPERATIONS)
