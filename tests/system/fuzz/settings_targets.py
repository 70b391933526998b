"""Targets of the settings: files of ours, of ElasticMQ's and of GoAWS's, and the environment."""

from pathlib import Path
from tempfile import TemporaryDirectory

from elasticq.server import settings
from tests.system.fuzz.target import Target, check_told

ROOT = Path(__file__).resolve().parents[3]
_folder = TemporaryDirectory(prefix="elasticq-fuzz-")


def _file(name: str, data: bytes) -> Path:
    file = Path(_folder.name, name)
    file.write_bytes(data)
    return file


def _judge_file(file: Path) -> None:
    """Settings that are taken can be acted on, and are the same when they are read again; others are refused."""
    try:
        loaded = settings.load(file, {}, {})
    except settings.SettingsError as error:
        check_told(error)
        return
    assert settings.load(file, {}, {}, notes=[]).queues == loaded.queues
    settings.declarations(loaded)
    settings.template(loaded)


def judge_toml(data: bytes) -> None:
    """A file of ours, without lines that name other files."""
    text = b"".join(line for line in data.splitlines(keepends=True) if b"_file" not in line and b"secret" not in line)
    _judge_file(_file("a.toml", text))


def judge_hocon(data: bytes) -> None:
    _judge_file(_file("a.conf", data))


def judge_goaws(data: bytes) -> None:
    _judge_file(_file("a.yaml", data))


def judge_environment(data: bytes) -> None:
    """Lines of NAME=VALUE."""
    pairs = [line.partition("=") for line in data.decode("utf-8", "replace").replace("\0", "").splitlines()]
    given = {name: value for name, _, value in pairs if "_FILE" not in name.upper() and "SECRET" not in name.upper()}
    try:
        settings.load(None, given, {})
    except settings.SettingsError as error:
        check_told(error)


_HOCON = b"""include classpath("application.conf")
node-address { protocol = http, host = localhost, port = 9324, context-path = "" }
queues { q { defaultVisibilityTimeout = 10 seconds, delay = 5s, deadLettersQueue { name = "dead", maxReceiveCount = 3 }
 fifo = false, tags { a = b }, copyTo = "x" }, "d.fifo" { fifo = true, contentBasedDeduplication = true }, dead { } }
rest-sqs { enabled = true, bind-port = 9324 }
aws { region = us-west-2, accountId = 000000000000 }
x = ${?Y}"a" # c
"""
_GOAWS = b"""Local:
  Host: localhost
  Port: 4100
  Region: us-east-1
  AccountId: "000000000000"
  QueueAttributeDefaults: {VisibilityTimeout: 30, ReceiveMessageWaitTimeSeconds: 0}
  Queues:
    - Name: jobs
      VisibilityTimeout: 5
      RedrivePolicy: '{"maxReceiveCount": 3, "deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead"}'
    - Name: dead
  Topics:
    - Name: news
      Subscriptions:
        - {QueueName: jobs, Raw: true, FilterPolicy: '{"a": ["b"]}'}
        - {Protocol: http, EndPoint: "http://e", TopicArn: x}
"""
_TOML = b"""[http]
port = 9324
host = "127.0.0.1"
[node]
region = "eu-west-1"
[queues.jobs]
visibility_timeout_s = 30
[topics.news]
subscriptions = [{queue = "jobs", raw = true}]
[auto_create]
enabled = true
"""


def _words() -> list[str]:
    kinds = settings.SECTIONS.values()
    return [*settings.SECTIONS, *(name for kind in kinds for name in kind.__struct_fields__)]


TARGETS = {
    "toml": Target(
        judge_toml, [_TOML, *(file.read_bytes() for file in sorted((ROOT / "conf").glob("*.toml")))], _words(), 8_000
    ),
    "hocon": Target(
        judge_hocon,
        [_HOCON],
        ["queues", "seconds", "=", "{", "}", "deadLettersQueue", "maxReceiveCount", "fifo", "true", "include", "${"],
        2_000,
    ),
    "goaws": Target(
        judge_goaws,
        [_GOAWS],
        [
            "Local",
            "Queues",
            "Topics",
            "Name",
            "Subscriptions",
            "QueueName",
            "FilterPolicy",
            "Raw",
            "RedrivePolicy",
            "&a",
            "*a",
            "!!",
        ],
        2_000,
    ),
    "environment": Target(
        judge_environment,
        [
            b"ELASTICQ_HTTP__PORT=9325\nELASTICQ_CLUSTER__SEEDS=a:1,b:2\nELASTICQ_QUEUES__A=1",
            b"ELASTICQ_AUTH__MODE=strict",
        ],
        [f"ELASTICQ_{name.upper()}__" for name in settings.SECTIONS] + [name.upper() for name in _words()],
        1_000,
    ),
}
