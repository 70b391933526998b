"""A process that tells of its requests: as lines of JSON, as spans, and at the admin port."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import boto3
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.process import PATIENCE_S, Server

TRACE = "0af7651916cd43dd8448eb211c80319c"


def use(url: str) -> None:
    """A send, a receive, and a send to nowhere; with secrets."""
    sqs = boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="000000000000",
        aws_secret_access_key="canary-secret",
    )
    parent = f"00-{TRACE}-b7ad6b7169203331-01"
    sqs.meta.events.register("before-send.sqs", lambda request, **_: request.headers.__setitem__("traceparent", parent))
    queue = sqs.create_queue(QueueName="orders")["QueueUrl"]
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}}
    attributes = {"canary": {"DataType": "String", "StringValue": "canary"}}
    sqs.send_message(
        QueueUrl=queue, MessageBody="canary-body", MessageSystemAttributes=trace, MessageAttributes=attributes
    )
    received = sqs.receive_message(QueueUrl=queue, MessageSystemAttributeNames=["AWSTraceHeader"])["Messages"]
    assert received[0]["Attributes"]["AWSTraceHeader"] == trace["AWSTraceHeader"]["StringValue"]
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.send_message(QueueUrl=f"{queue}-none", MessageBody="canary-body")


def lines_of(server: Server) -> list[dict[str, object]]:
    server.process.terminate()
    out, told = server.process.communicate(timeout=PATIENCE_S)
    assert "canary" not in out + told
    assert "AWS4" not in told
    return [json.loads(line) for line in told.splitlines()]


def test_an_access_log_in_json_holds_no_body_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTICQ_LOG__REQUESTS", "all")
    with Server("--log-format", "json") as server:
        use(server.url)
        requests = [line for line in lines_of(server) if line["event"] == "request"]
    assert [(line["action"], line["queue"], line["status"]) for line in requests] == [
        ("CreateQueue", "000000000000/orders", 200),
        ("SendMessage", "000000000000/orders", 200),
        ("ReceiveMessage", "000000000000/orders", 200),
        ("SendMessage", "000000000000/orders-none", 400),
    ]
    assert len({line["request_id"] for line in requests}) == 4


def test_only_what_failed_is_told_by_default() -> None:
    with Server("--log-format", "json") as server:
        use(server.url)
        requests = [line for line in lines_of(server) if line["event"] == "request"]
    assert [line["code"] for line in requests] == ["AWS.SimpleQueueService.NonExistentQueue"]


def test_spans_are_children_of_their_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTICQ_OTEL__ENABLED", "true")
    monkeypatch.setenv("ELASTICQ_OTEL__EXPORTER", "console")
    with Server("--log-format", "json") as server:
        use(server.url)
        spans = [line for line in lines_of(server) if str(line.get("name", "")).startswith("sqs.")]
    assert [span["name"] for span in spans] == [
        "sqs.CreateQueue",
        "sqs.SendMessage",
        "sqs.ReceiveMessage",
        "sqs.SendMessage",
    ]
    assert {span["context"]["trace_id"] for span in spans} == {f"0x{TRACE}"}  # type: ignore[index]


def test_the_admin_port_shows_queues_requests_and_syncs(tmp_path: Path) -> None:
    with Server("--data-dir", str(tmp_path)) as server:
        use(server.url)
        with urllib.request.urlopen(f"{server.admin()}/metrics", timeout=PATIENCE_S) as answer:
            text = answer.read().decode()
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    queue = (("account", "000000000000"), ("queue", "orders"))
    assert found[("elasticq_queue_messages", *queue, ("state", "in_flight"))] == 1
    assert found[("elasticq_messages_sent_total", *queue)] == 1
    assert found[("elasticq_messages_received_total", *queue)] == 1
    refused = (
        "elasticq_requests_total",
        ("action", "SendMessage"),
        ("code", "AWS.SimpleQueueService.NonExistentQueue"),
    )
    assert ("elasticq_requests_total", *sorted(refused[1:])) in found  # type: ignore[type-var]
    assert found[("elasticq_log_fsync_duration_seconds_count",)] > 0
    assert ("elasticq_event_loop_lag_seconds_count",) in found


def resident_mb(process: "subprocess.Popen[str]") -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1_024  # type: ignore[index]


def test_what_is_only_for_lookers_is_not_imported_at_the_start() -> None:
    code = (
        "import sys, elasticq.server.life, elasticq.http.pages.slow, elasticq.admin.app;"
        "print({'prometheus_client', 'rich', 'opentelemetry'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=30, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_an_idle_server_with_its_admin_port_is_small() -> None:
    with Server() as server:
        with urllib.request.urlopen(f"{server.admin()}/ready", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
        assert resident_mb(server.process) <= 72
