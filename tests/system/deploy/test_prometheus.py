"""The alert rules by promtool, and each query of the dashboard at a real Prometheus that scrapes a cluster under load.

make tools-test installs both and runs these tests.
"""

import json
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from elasticq.client import Sqs
from tests.admin.operator import Operator
from tests.server.process import Server
from tests.system.cluster.cluster import HOST, Cluster, kept_port, until
from tests.system.deploy.test_monitoring import DASHBOARD, MONITORING, RULES, make_a_refusal_and_an_expired_message

pytestmark = pytest.mark.tools

ALERTS, TESTS = "alerts.yml", "alerts_test.yml"
QUERIES = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]
NEVER, ALWAYS = "vector(0) == 1", "vector(1)"


def promtool(*arguments: str, folder: Path = MONITORING) -> subprocess.CompletedProcess[str]:
    assert shutil.which("promtool"), "make tools-test installs Debian's package prometheus"
    return subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_rules_are_valid_and_fire_when_they_must_and_only_then() -> None:
    for arguments in (("check", "rules", ALERTS), ("test", "rules", TESTS)):
        done = promtool(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("instead", [NEVER, ALWAYS])
@pytest.mark.parametrize("alert", RULES)
def test_an_alert_that_never_or_always_fires_is_noticed(alert: str, instead: str, tmp_path: Path) -> None:
    """So each alert has a test in which it fires, and one in which it must not."""
    rules = yaml.safe_load((MONITORING / ALERTS).read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"] if rule["alert"] == alert):
        rule["expr"] = instead
        rule.pop("for", None)
    (tmp_path / ALERTS).write_text(yaml.safe_dump(rules))
    shutil.copy(MONITORING / TESTS, tmp_path)
    done = promtool("test", "rules", TESTS, folder=tmp_path)
    assert done.returncode != 0
    assert alert in done.stdout + done.stderr


class Prometheus:
    """A real one, which scrapes the given places every second."""

    def __init__(self, folder: Path, places: list[str]) -> None:
        assert shutil.which("prometheus"), "make tools-test installs Debian's package prometheus"
        scraped = {"job_name": "elasticq", "scrape_interval": "1s", "static_configs": [{"targets": places}]}
        rules = [str(MONITORING / ALERTS)]
        settings = {"global": {"evaluation_interval": "1s"}, "rule_files": rules, "scrape_configs": [scraped]}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        self._keeper = kept_port()
        self._log = (folder / "prometheus.log").open("wb")
        self.url = f"http://{HOST}:{self._keeper.getsockname()[1]}"
        self._keeper.close()  # it sets no SO_REUSEPORT, so the port must be free
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def ask(self, path: str, **query: str) -> Any:
        """Return the data of an answer, None before the server answers. Its error is an AssertionError."""
        assert self.process.poll() is None, Path(self._log.name).read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}") as answer:
                document = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it starts
                return None
            raise AssertionError(error.read().decode()) from error
        except urllib.error.URLError:
            return None
        assert document["status"] == "success", document
        return document["data"]

    def values(self, expression: str) -> list[float]:
        """Return the numbers that a query finds now, without those that are none."""
        data = self.ask("query", query=expression)
        found = [float(row["value"][1]) for row in data["result"]] if data else []
        return [value for value in found if value == value]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()


class Load(threading.Thread):
    """Sends, receives, deletes and waits, until stopped."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.stopped = threading.Event()

    def run(self) -> None:
        with Sqs(self._url, "us-east-1") as sqs:
            url = sqs.create_queue(QueueName="load")["QueueUrl"]
            waiting = threading.Thread(target=self._wait, args=(sqs,), daemon=True)
            waiting.start()
            while not self.stopped.is_set():
                sqs.send_message(QueueUrl=url, MessageBody="x")
                for message in sqs.receive_message(QueueUrl=url).get("Messages", ()):
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                self.stopped.wait(0.05)
            waiting.join()

    def _wait(self, sqs: Sqs) -> None:
        url = sqs.create_queue(QueueName="awaited")["QueueUrl"]
        while not self.stopped.is_set():
            sqs.receive_message(QueueUrl=url, WaitTimeSeconds=2)


def make_dead_letters(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "dead"})
    policy = '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead", "maxReceiveCount": "1"}'
    attributes = {"RedrivePolicy": policy, "VisibilityTimeout": "0"}
    operator.act("CreateQueue", {"QueueName": "q", "Attributes": attributes})
    operator.act("SendMessage", {"QueueUrl": "q", "MessageBody": "poison"})
    for _ in range(2):
        operator.act("ReceiveMessage", {"QueueUrl": "q"})


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    settings = tmp_path / "elasticq.toml"
    settings.write_text("[testing]\nenabled = true\n")
    cluster = Cluster(tmp_path / "cluster", extra=("--config", str(settings))).start()
    yield cluster
    cluster.end()


def test_each_query_of_the_dashboard_finds_something_under_load(cluster: Cluster, tmp_path: Path) -> None:
    members = list(cluster.members.values())
    master = cluster[cluster.master()]
    prometheus = Prometheus(tmp_path, [f"{HOST}:{member.admin_port}" for member in members])
    load = Load(f"http://{HOST}:{members[0].port}")
    load.start()
    try:
        until(lambda: prometheus.values("sum(up)") == [3.0], "all members are scraped")
        make_a_refusal_and_an_expired_message(
            Operator(f"http://{HOST}:{master.admin_port}"), f"http://{HOST}:{master.port}"
        )
        make_dead_letters(Operator(f"http://{HOST}:{master.admin_port}"))
        missing = {query: title for title, query in QUERIES}

        def all_found() -> bool:
            for query in list(missing):
                if prometheus.values(query.replace("$queue", ".*")):
                    del missing[query]
            return not missing

        try:
            until(all_found, "each query finds something")
        except AssertionError as error:
            raise AssertionError(f"found nothing: {missing}") from error
        assert prometheus.values("max(elasticq_dead_letters)") == [1.0]
        assert prometheus.values("sum(rate(elasticq_messages_sent_total[30s]))")[0] > 0
        rules = prometheus.ask("rules")
        states = {rule["name"]: rule["health"] for group in rules["groups"] for rule in group["rules"]}
        assert states == dict.fromkeys(RULES, "ok")
        queues = prometheus.ask("label/queue/values", **{"match[]": "elasticq_queue_messages"})
        assert {"load", "awaited", "dead"} <= set(queues)
    finally:
        load.stopped.set()
        load.join()
        prometheus.end()


def test_a_dead_member_fires_an_alert_in_prometheus(tmp_path: Path) -> None:
    """The whole way: a real member, a real scrape, the rule as it is."""
    with Server() as server:
        prometheus = Prometheus(tmp_path, [server.admin().removeprefix("http://")])
        try:
            until(lambda: prometheus.values("up") == [1.0], "the member is scraped")
            assert prometheus.ask("alerts")["alerts"] == []
            server.process.kill()
            found = until(lambda: prometheus.ask("alerts")["alerts"], "the alert is pending")
            assert {alert["labels"]["alertname"] for alert in found} == {"ElasticqMemberDown"}
        finally:
            prometheus.end()
