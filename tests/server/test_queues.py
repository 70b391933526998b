"""Queues in the settings: what they become, and what is refused before anything starts."""

import json
from pathlib import Path

import pytest

from elasticq.engine.actions.declare import of_template
from elasticq.model.commands import DeclareQueue
from elasticq.server.settings import Settings, SettingsError, declarations, load, template, warnings
from tests.server.refusal import refusal


def settings(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "e.toml"
    file.write_text(text)
    return load(file, {}, {})


def queues(loaded: Settings) -> list[DeclareQueue]:
    return [command for command in declarations(loaded) if isinstance(command, DeclareQueue)]


def test_dead_letter_queues_stand_before_those_that_name_them(tmp_path: Path) -> None:
    text = "\n".join(
        f'[queues.{name}]\ndead_letter_queue = "{after}"\nmax_receive_count = 1'
        for name, after in (("a", "b"), ("c", "a"), ("b", "d"))
    )
    loaded = settings(tmp_path, f"{text}\n[queues.d]")
    assert [command.queue_name for command in queues(loaded)] == ["d", "b", "a", "c"]


def test_raw_redrive_policy_orders_queues_as_the_setting_does(tmp_path: Path) -> None:
    policy = json.dumps({"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:b", "maxReceiveCount": 3})
    loaded = settings(tmp_path, f"[queues.a]\nattributes = {{RedrivePolicy = '{policy}'}}\n[queues.b]")
    assert [command.queue_name for command in queues(loaded)] == ["b", "a"]


def test_queue_that_is_only_copied_to_is_doubted(tmp_path: Path) -> None:
    """It may be stored. If it is not, the copy is left out."""
    loaded = settings(tmp_path, "[queues.a]\ncopy_to = 'b'")
    assert [each for each in warnings(loaded) if "queues." in each] == [
        "queues.a.copy_to: the settings have no queue b"
    ]


def test_dead_letter_queue_that_nothing_creates_is_refused(tmp_path: Path) -> None:
    text = "[queues.a]\ndead_letter_queue = 'b'\nmax_receive_count = 1"
    assert "queues.a.dead_letter_queue: the settings have no queue b" in refusal(tmp_path / "e.toml", text)


def test_subscription_of_a_queue_that_the_settings_do_not_have_is_doubted(tmp_path: Path) -> None:
    loaded = settings(tmp_path, "[topics.t]\nsubscriptions = [{queue = 'a'}, {queue = 'b'}]\n[queues.a]")
    assert [each for each in warnings(loaded) if "topics" in each] == [
        "a subscription in topics names b, but the settings have no such queue"
    ]


def test_a_table_becomes_a_command(tmp_path: Path) -> None:
    text = """
        [node]
        region = "eu-west-1"
        account = "000000000042"
        [queues.dead]
        fifo = true
        [queues.jobs]
        fifo = true
        visibility_timeout_s = 0
        delay_s = 3
        receive_wait_s = 4
        dead_letter_queue = "dead"
        max_receive_count = 5
        content_based_deduplication = true
        copy_to = "dead.fifo"
        tags = {a = "b"}
        attributes = {DeduplicationScope = "messageGroup"}
        created_ms = 6
    """
    _, jobs = queues(settings(tmp_path, text))
    assert jobs.queue_name == "jobs.fifo"
    arn = "arn:aws:sqs:eu-west-1:000000000042:dead.fifo"
    assert jobs.attributes == {
        "VisibilityTimeout": "0",
        "DelaySeconds": "3",
        "ReceiveMessageWaitTimeSeconds": "4",
        "FifoQueue": "true",
        "ContentBasedDeduplication": "true",
        "RedrivePolicy": f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 5}}',
        "DeduplicationScope": "messageGroup",
    }
    assert (jobs.tags, jobs.copy_to, jobs.move_to, jobs.created_ms) == ({"a": "b"}, "dead.fifo", "", 6)


def test_queue_may_be_ordered_by_priority(tmp_path: Path) -> None:
    text = '[queues.urgent]\nattributes = {ElasticqOrder = "priority", ElasticqDefaultPriority = "-5"}'
    (urgent,) = queues(settings(tmp_path, text))
    assert urgent.attributes == {"ElasticqOrder": "priority", "ElasticqDefaultPriority": "-5"}


def test_fifo_queue_may_have_partitions(tmp_path: Path) -> None:
    text = """
        [queues.lanes]
        fifo = true
        partitions = 12
        [queues.plain]
        fifo = true
        [auto_create]
        enabled = true
        template = {partitions = 3}
    """
    loaded = settings(tmp_path, text)
    lanes, plain = queues(loaded)
    assert lanes.attributes == {"FifoQueue": "true", "ElasticqPartitions": "12"}
    assert plain.attributes == {"FifoQueue": "true"}
    told = template(loaded)
    assert told is not None
    made = [of_template(told, ("0" * 12, name), "r").attributes for name in ("new", "new.fifo")]
    assert made == [{}, {"FifoQueue": "true", "ElasticqPartitions": "3"}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[queues.a]\npartitions = 3", "queues.a: You can specify the ElasticqPartitions only when FifoQueue"),
        ("[queues.a]\nfifo = true\npartitions = 1", "queues.a.fifo: Invalid value for the parameter ElasticqPartit"),
        ("[queues.a]\nfifo = true\npartitions = 257", "queues"),
        ("[queues.a]\nattributes = {ElasticqOrder = 'random'}", "queues.a: ElasticqOrder can only be priority"),
        ("[queues.a]\nfifo = true\nattributes = {ElasticqOrder = 'priority'}", "queues.a"),
        ("[queues.a]\ndelays = 1", "unknown setting queues.a.delays, did you mean queues.a.delay_s?"),
        ("[queues.a]\ndelay_s = 901", "queues"),
        ("[queues.'a b']", "queues.a b: a name has"),
        ("queues.a = 1", "queues.a is not a table"),
        ("[queues.a]\ndead_letter_queue = 'b'", "belong together"),
        ("[queues.a]\nmax_receive_count = 3", "belong together"),
        ("[queues.a]\ncopy_to = 'a'", "copy_to and move_to lead in a circle, a -> a"),
        ("[queues.a]\nmove_to = 'b'\n[queues.b]\ncopy_to = 'c'\n[queues.c]\nmove_to = 'a'", "a -> b -> c -> a"),
        (
            "[queues.a]\ndead_letter_queue = 'b'\nmax_receive_count = 1\n"
            "[queues.b]\ndead_letter_queue = 'a'\nmax_receive_count = 1",
            "dead_letter_queue lead in a circle",
        ),
        ("[queues.a]\ncopy_to = 'b'\n[queues.b]\nfifo = true", "not of the same type"),
        ("[queues.a]\nfifo = true\n[queues.'a.fifo']", "queues.a.fifo is there twice"),
        ("[queues.a]\ncontent_based_deduplication = true", "for FIFO queues"),
        ("[queues.a]\nattributes = {MaximumMessageSize = '1'}", "queues.a: Invalid value for the parameter Maximum"),
        ("[queues.a]\ntags = {'aws:x' = 'y'}", "queues.a: Tag aws:x"),
        ("[auto_create]\nenable = true", "did you mean auto_create.enabled?"),
        ("[auto_create]\ntemplate = {delays = 1}", "delays"),
        ("[auto_create]\nenabled = true\ntemplate = {attributes = {Policy = 'x'}}", "auto_create.template"),
        ("[node]\nlimits = 'loose'", "node.limits"),
        ("[http]\ncontext_path = 'x'", "http.context_path"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, told: str) -> None:
    assert told in refusal(tmp_path / "e.toml", text)


def test_queues_cannot_be_set_by_the_environment() -> None:
    with pytest.raises(SettingsError, match="set in a file"):
        load(None, {"ELASTICQ_QUEUES__A": "1"}, {})


def test_the_template_is_off_unless_told(tmp_path: Path) -> None:
    assert template(Settings()) is None
    assert template(load(None, {"ELASTICQ_AUTO_CREATE__ENABLED": "true"}, {})) is not None
    made = template(settings(tmp_path, "[auto_create]\nenabled = true\ntemplate = {delay_s = 2, tags = {a = 'b'}}"))
    assert made is not None
    assert (made.attributes, made.tags) == ({"DelaySeconds": "2"}, {"a": "b"})
