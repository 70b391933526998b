"""The plugin in somebody's project: its fixtures, alone and under xdist; it loads nothing before it is used."""

import configparser
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """
import pytest


@pytest.mark.parametrize("number", range(6))
def test_every_test_begins_with_no_queue(number, sqs, elasticq):
    assert "QueueUrls" not in sqs.list_queues()
    url = sqs.create_queue(QueueName="jobs", Attributes={"VisibilityTimeout": "30"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody=str(number))
    assert elasticq.queue("jobs").visible() == 1
    assert elasticq.account in url


def test_clock_turns(sqs, elasticq_clock, elasticq):
    queue = elasticq.queue("jobs").create(VisibilityTimeout=30)
    queue.send("x")
    sqs.receive_message(QueueUrl=queue.url)
    elasticq_clock.advance(30)
    assert queue.visible() == 1


def test_next_test_goes_on_at_a_later_date(elasticq_clock, elasticq):
    queue = elasticq.queue("jobs").create(MessageRetentionPeriod=60)
    queue.send("x")
    elasticq_clock.advance(59)
    assert queue.visible() == 1


def test_topic_reaches_its_queues(sns, topic, elasticq):
    queue = elasticq.queue("jobs").create()
    topic.subscribe(queue, raw=True, FilterPolicy={"kind": ["a"]})
    kind = {"kind": {"DataType": "String", "StringValue": "a"}}
    sns.publish(TopicArn=topic.arn, Message="x", MessageAttributes=kind)
    topic.publish("y")
    assert [each["Body"] for each in queue.peek()] == ["x"]
    assert elasticq.topics() == ["topic"]


def test_next_test_has_no_subscription(topic):
    assert topic.subscriptions() == []


def test_accounts_differ(elasticq, elasticq_server):
    other = elasticq_server.view("9" * 12)
    other.queue("theirs").create()
    assert elasticq.queues() == []


def test_cluster_survives_its_master(elasticq_cluster):
    queue = elasticq_cluster.queue("jobs").create()
    queue.send("kept")
    elasticq_cluster.kill_master()
    assert queue.visible() == 1
"""


def run_pytest(directory: Path, *arguments: str) -> str:
    (directory / "test_project.py").write_text(PROJECT)
    (directory / "pytest.ini").write_text("[pytest]\naddopts = -p elasticq.testing.plugin -p no:cacheprovider\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=directory,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(directory), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_fixtures_serve_a_project(tmp_path: Path) -> None:
    assert "12 passed" in run_pytest(tmp_path)


def test_fixtures_serve_workers_of_xdist(tmp_path: Path) -> None:
    assert "12 passed" in run_pytest(tmp_path, "-p", "xdist.plugin", "-n", "2")


def test_plugin_loads_nothing_before_a_fixture_is_used() -> None:
    code = (
        "import sys, pytest; known = set(sys.modules); import elasticq.testing.plugin; "
        "print(*sorted(name for name in set(sys.modules) - known))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {name for name in done.stdout.split() if not name.startswith("elasticq._native")}  # where it is compiled
    assert loaded <= {
        "elasticq",
        "elasticq.native",
        "elasticq.testing",
        "elasticq.testing.plugin",
    }


def test_package_tells_pytest_where_the_plugin_is() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    name, _, module = config["options.entry_points"]["pytest11"].strip().partition(" = ")
    assert (name, module) == ("elasticq", "elasticq.testing.plugin")
    assert import_module(module).elasticq_server


def test_this_repository_is_not_disturbed_by_its_own_plugin(request: pytest.FixtureRequest) -> None:
    plugin = request.config.pluginmanager.get_plugin("elasticq")
    assert plugin is None or plugin.__name__ == "elasticq.testing.plugin"
