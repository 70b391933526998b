"""ElasticMQ's files: every key, the traps of its parser, and what is wrong with a file."""

from pathlib import Path
from typing import Any

import pytest

from elasticq.server.elasticmq import is_elasticmq, read
from elasticq.server.settings import SettingsError, load
from tests.server.refusal import refusal


def sections(tmp_path: Path, text: str, *properties: tuple[str, str]) -> dict[str, dict[str, Any]]:
    file = tmp_path / "elasticmq.conf"
    file.write_text(text)
    return read(file, properties).sections


def queue(tmp_path: Path, text: str) -> dict[str, Any]:
    (found,) = sections(tmp_path, f"queues {{ jobs {{ {text} }} }}")["queues"].values()
    return dict(found)


def test_an_empty_file_has_elasticmqs_defaults(tmp_path: Path) -> None:
    found = sections(tmp_path, 'include classpath("application.conf")\n')
    assert found == {"http": {"host": "0.0.0.0"}, "node": {"single_region": True}, "storage": {"memory": True}}


def test_properties_alone_change_what_they_name() -> None:
    found = read(None, [("rest-sqs.bind-port", "9400"), ("node-address.host", "*")]).sections
    assert found == {"http": {"port": 9400}}


@pytest.mark.parametrize(
    ("text", "section", "expected"),
    [
        ("node-address { host = mq, port = 80, protocol = https }", "http", {"public_url": "https://mq:80"}),
        ("node-address { host = mq }", "http", {"public_url": "http://mq:9324"}),
        ("node-address { host = mq }, generate-node-address = true", "http", {}),
        ("node-address.context-path = a/b/", "http", {"context_path": "/a/b"}),
        ('rest-sqs { bind-port = 0, bind-hostname = "::1" }', "http", {"host": "::1", "port": 0}),
        ("rest-sqs.sqs-limits = Relaxed", "node", {"limits": "relaxed"}),
        ("rest-stats { bind-port = 9, bind-hostname = h }", "admin", {"host": "h", "port": 9}),
        ("rest-stats.enabled = off", "admin", {"port": -1}),
        ("aws { region = elasticmq, accountId = 000000000000 }", "node", {"region": "elasticmq", "account": "0" * 12}),
        ("aws.accountId = 42", "node", {"account": "000000000042"}),
        ("messages-storage.enabled = true", "storage", {"data_dir": "/data/elasticmq-h2", "memory": False}),
        (
            'messages-storage { enabled = true, uri = "jdbc:h2:file:./x;MODE=MySQL" }',
            "storage",
            {"data_dir": "x", "memory": False},
        ),
        (
            'messages-storage { enabled = true, uri = "jdbc:h2:mem:x" }',
            "storage",
            {"data_dir": "./data", "memory": False},
        ),
        ("messages-storage { enabled = true, prune-data-on-init = true }", "storage", {"memory": True}),
        (
            'queues-storage { enabled = true, path = "/var/mq/queues.conf" }',
            "storage",
            {"data_dir": "/var/mq/elasticq-data", "memory": False},
        ),
    ],
)
def test_a_key_keeps_its_meaning(tmp_path: Path, text: str, section: str, expected: dict[str, Any]) -> None:
    found = sections(tmp_path, text)[section]
    always = {"http": {"host": "0.0.0.0"}, "node": {"single_region": True}}.get(section, {})
    assert always | found == always | expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 seconds", 10),
        ('"10 seconds"', 10),
        ("2 minutes", 120),
        ("1h", 3_600),
        ("1500 ms", 1),
        ("1.5 s", 1),
        ("30000", 30),
        ("1 day", 86_400),
    ],
)
def test_a_duration_is_read_in_any_unit(tmp_path: Path, text: str, seconds: int) -> None:
    assert queue(tmp_path, f"defaultVisibilityTimeout = {text}")["visibility_timeout_s"] == min(seconds, 43_200)


def test_tags_may_have_dots_numbers_and_quotes(tmp_path: Path) -> None:
    found = queue(tmp_path, 'tags { a.b = 1, "c.d" = true, e = "f g" }')["tags"]
    assert found == {"a.b": "1", "c.d": "true", "e": "f g"}


def test_a_size_in_bytes_is_no_trap(tmp_path: Path) -> None:
    notes = tmp_path / "x.conf"
    notes.write_text("akka.max = 262144 bytes")
    assert read(notes, ()).notes == [f"{notes}: akka is unknown and has no effect"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("queues { a { delay = soon } }", "queues.a.delay is not a duration"),
        ("queues { a = 1 }", "queues.a is not an object"),
        ("queues { a.fifo { delay = 1 s } }", "queues.a.fifo"),
        ("queues = 3", "queues is not an object"),
        ("rest-sqs.bind-port = 70000", "rest-sqs.bind-port"),
        ("rest-sqs.bind-port = x", "rest-sqs.bind-port"),
        ("rest-sqs.enabled = false", "would serve nothing"),
        ("rest-sqs.sqs-limits = loose", "neither strict nor relaxed"),
        ("generate-node-address = maybe", "generate-node-address"),
        ("aws.accountId = 1234567890123", "is not 12 digits"),
        ("a = {", "not HOCON"),
        ("a = ${b}", "not HOCON"),
        ("a = ${?$}", "not HOCON"),  # an IndexError of pyhocon
        ("queues { a { deadLettersQueue { name = b } } }", "belong together"),
        ("queues { a { copyTo = b }, b { moveTo = a } }", "lead in a circle"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(tmp_path: Path, text: str, told: str) -> None:
    assert told in refusal(tmp_path / "elasticmq.conf", text)


@pytest.mark.parametrize(
    ("text", "note", "kept"),
    [
        (
            'queues { "fifoQueue.fifo" { fifo = true, deadLettersQueue { name = dlq, maxReceiveCount = 2 } }, dlq {} }',
            "queues.fifoQueue.fifo: deadLettersQueue is ignored, because dlq is not of the same type",
            {"dead_letter_queue": "", "max_receive_count": 0},
        ),
        (
            "queues { a { contentBasedDeduplication = true } }",
            "queues.a: contentBasedDeduplication is ignored, because the queue is not a FIFO queue",
            {"content_based_deduplication": False},
        ),
        (
            "queues { a { receiveMessageWait = 25 s } }",
            "queues.a: receive_message_wait is cut from 25 to 20 seconds",
            {"receive_wait_s": 20},
        ),
        ("queues { a { delay = 1 h } }", "queues.a: delay is cut from 3600 to 900 seconds", {"delay_s": 900}),
    ],
)
def test_what_elasticmq_accepts_and_aws_does_not_is_accepted_with_a_note(
    tmp_path: Path, text: str, note: str, kept: dict[str, object]
) -> None:
    """ElasticMQ's own integration files have the first three."""
    file = tmp_path / "elasticmq.conf"
    file.write_text(text)
    notes: list[str] = []
    first = next(iter(load(file, {}, {}, notes=notes).queues.values()))
    assert any(each.startswith(note) for each in notes), notes
    assert {name: getattr(first, name) for name in kept} == kept


def test_dead_letter_queue_that_the_file_does_not_have_is_created(tmp_path: Path) -> None:
    """Files that ElasticMQ has in its tests name such queues."""
    file = tmp_path / "elasticmq.conf"
    file.write_text(
        "queues {\n test {deadLettersQueue{maxReceiveCount=4,name=dead},copyTo=elsewhere,receiveMessageWait=20000}\n"
        ' "b.fifo" {deadLettersQueue{maxReceiveCount=4,name="dead.fifo"},fifo=true}\n}'
    )
    notes: list[str] = []
    assert list(load(file, {}, {}, notes=notes).queues) == ["test", "b.fifo", "dead", "dead.fifo"]
    assert [note for note in notes if note.endswith("it is created")] == [
        "queues.test: deadLettersQueue names dead, which is not in the file: it is created",
        "queues.b.fifo: deadLettersQueue names dead.fifo, which is not in the file: it is created",
    ]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.conf"):
        load(tmp_path / "none.conf", {}, {})


@pytest.mark.parametrize(
    ("name", "text", "is_one"),
    [
        ("a.conf", "", True),
        ("a.toml", "[http]\nport = 1\n", False),
        ("a.toml", "[http\nport = 1\n", False),
        ("elasticmq", "queues {\n}\n", True),
        ("a.toml", "include classpath(x)\n", True),
        ("a.toml", "aws.region = here\n", True),
        ("a.toml", 'queues = {a = {copy_to = "b"}}\n', False),
    ],
)
def test_a_file_is_elasticmqs_by_name_or_content(tmp_path: Path, name: str, text: str, is_one: bool) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert is_elasticmq(file) is is_one


def test_flags_win_over_properties_and_these_over_the_environment_and_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    queue = "q { delay = 1 s, fifo = true, partitions = 12 }"
    file.write_text(f"rest-sqs {{ bind-port = 1, bind-hostname = a }}, queues {{ {queue} }}")
    environment = {"ELASTICQ_HTTP__PORT": "2", "ELASTICQ_HTTP__HOST": "b"}
    properties = [("rest-sqs.bind-port", "3"), ("queues.q.delay", "4 s")]
    settings = load(file, environment, {}, properties)
    assert (settings.http.port, settings.http.host) == (3, "b")
    made = settings.queues["q"]
    assert (made.delay_s, made.fifo, made.partitions) == (4, True, 12)
    assert load(file, environment, {"http": {"port": 5}}, properties).http.port == 5


def test_the_file_that_elasticmq_writes_is_read(tmp_path: Path) -> None:
    """One line a queue, durations as bare milliseconds."""
    stored = tmp_path / "stored.conf"
    stored.write_text(
        'queues {\n "jobs" {contentBasedDeduplication=false,copyTo="",defaultVisibilityTimeout=12000,delay=3000,'
        'fifo=false,moveTo="",receiveMessageWait=0,tags{team=x}}\n'
        ' "a.fifo" {contentBasedDeduplication=true,copyTo="",defaultVisibilityTimeout=30000,delay=0,'
        'deadLettersQueue{maxReceiveCount=3,name="dead.fifo"},fifo=true,moveTo="",receiveMessageWait=0,tags{}}\n}'
    )
    file = tmp_path / "a.conf"
    storage = f'queues-storage {{ enabled = true, path = "{stored}" }}'
    file.write_text(storage + '\nqueues { jobs { delay = 1 s }, "dead.fifo" { } }')
    notes: list[str] = []
    queues = load(file, {}, {}, (), notes).queues
    assert (queues["jobs"].visibility_timeout_s, queues["jobs"].delay_s, queues["jobs"].tags) == (12, 3, {"team": "x"})
    assert (queues["a.fifo"].dead_letter_queue, queues["a.fifo"].content_based_deduplication) == ("dead.fifo", True)
    assert [note.partition(":")[0] for note in notes] == ["queues-storage", "queues-storage"]
