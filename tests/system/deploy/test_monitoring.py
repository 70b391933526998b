"""The rules for Prometheus and the dashboard for Grafana: what they name exists, and the plainest of them fire."""

import json
import re
from pathlib import Path
from urllib.request import urlopen

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.admin.operator import JSON, Operator
from tests.server.process import Server
from tests.system.cluster.cluster import until

MONITORING = Path(__file__).parents[3] / "deploy" / "monitoring"
RULES = {
    rule["alert"]: rule
    for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
NAME = re.compile(r"\b((?:elasticq|process)_[a-z_]+)")


def scrape(url: str) -> dict[str, list[float]]:
    """Return the values of each metric."""
    with urlopen(f"{url}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found: dict[str, list[float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.value)
    return found


def make_a_refusal_and_an_expired_message(operator: Operator, endpoint_url: str) -> None:
    """A subscription whose queue is gone, and a message that the clock of the tests outlives."""
    topic = operator.act("CreateTopic", {"Name": "t"})[1]["TopicArn"]
    for name in ("gone", "short"):
        operator.act("CreateQueue", {"QueueName": name, "Attributes": {"MessageRetentionPeriod": "60"}})
    endpoint = "arn:aws:sqs:us-east-1:000000000000:gone"
    operator.act("Subscribe", {"TopicArn": topic, "Protocol": "sqs", "Endpoint": endpoint})
    operator.act("DeleteQueue", {"QueueUrl": "gone"})
    operator.act("Publish", {"TopicArn": topic, "Message": "x"})
    operator.act("SendMessage", {"QueueUrl": "short", "MessageBody": "x"})
    assert Operator(endpoint_url).ask("/_elasticq/clock", b'{"advance": 61}', JSON)[0] == 200
    until(lambda: "elasticq_messages_expired_total" in scrape(operator.url), "the message that expired")


def test_rules_and_dashboard_name_metrics_that_exist(tmp_path: Path) -> None:
    asked = [rule["expr"] for rule in RULES.values()]
    asked += [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    named = {name for expression in asked for name in NAME.findall(expression)}
    settings = tmp_path / "elasticq.toml"
    settings.write_text("[testing]\nenabled = true\n")
    with Server("--data-dir", str(tmp_path / "data"), "--config", str(settings)) as server:
        operator = Operator(server.admin())
        make_a_refusal_and_an_expired_message(operator, server.url)
        operator.act("CreateQueue", {"QueueName": "dead"})
        policy = '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead", "maxReceiveCount": "1"}'
        operator.act(
            "CreateQueue", {"QueueName": "q", "Attributes": {"RedrivePolicy": policy, "VisibilityTimeout": "0"}}
        )
        operator.act("SendMessage", {"QueueUrl": "q", "MessageBody": "poison"})
        operator.act("ReceiveMessage", {"QueueUrl": "q"})
        operator.act("ReceiveMessage", {"QueueUrl": "q"})
        exists = scrape(operator.url)
        assert exists["elasticq_dead_letters"] == [1]
        assert exists["elasticq_messages_expired_total"] == [1]
        assert exists["elasticq_topic_subscription_failed_total"] == [1]
        assert exists["elasticq_disk_full"] == [0]
        assert 0 < exists["elasticq_disk_free_bytes"][0] < exists["elasticq_disk_size_bytes"][0]
        consumers = {"elasticq_queue_consumers"}  # there is none until a receive waits
        assert named - consumers <= set(exists), named - set(exists)


def test_a_member_without_a_majority_fires_the_alarms_for_it() -> None:
    with Server("--nodes", "3", "--discovery", "seeds", "--seeds", "127.0.0.1:1", "--peer-port", "0") as server:
        url = server.admin()
        until(lambda: scrape(url)["elasticq_ready"] == [0], "a member that is not ready")
        values = scrape(url)
        assert RULES["ElasticqNotReady"]["expr"] == "elasticq_ready == 0"
        assert values["elasticq_ready"] == [0]
        assert RULES["ElasticqNoMaster"]["expr"] == "sum by (job) (elasticq_is_master) < 1"
        assert sum(values["elasticq_is_master"]) < 1


def test_each_alert_has_a_test_in_which_it_fires_and_one_in_which_it_must_not() -> None:
    """make tools-test runs them with promtool."""
    tests = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())["tests"]
    rows = [row for test in tests for row in test["alert_rule_test"]]
    assert {row["alertname"] for row in rows if row["exp_alerts"]} == set(RULES)
    assert {row["alertname"] for row in rows if not row["exp_alerts"]} == set(RULES)


def test_each_rule_says_what_is_wrong_and_how_bad() -> None:
    for name, rule in RULES.items():
        assert name.startswith("Elasticq")
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith(".")
