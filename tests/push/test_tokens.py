"""A confirmation's token leaves the server in the post to its endpoint, and nowhere else.

Whoever sees a token confirms in the name of a web server that never agreed, and that then gets what is published.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import pytest

from elasticq.model.names import DEFAULT_ACCOUNT, INNER
from elasticq.wire.operations import SNS, SQS
from tests.push.receiver import Receiver, receiving
from tests.server.test_proxy import Process

TOKEN = re.compile(rb"[0-9a-f]{200,}")
PATIENCE_S = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    directory = tmp_path_factory.mktemp("tokens")
    process = Process(directory / "member", "--memory", lines=5)
    yield process
    process.kill()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def answer(url: str, body: bytes | None = None, **headers: str) -> bytes:
    try:
        with urlopen(Request(url, body, headers), timeout=PATIENCE_S) as answer:
            return bytes(answer.read(4 * 1_048_576))
    except HTTPError as error:
        return error.read()


def sns(server: Process, action: str, **members: str) -> str:
    form = urlencode({"Action": action, "Version": "2010-03-31", **members}).encode()
    return answer(server.url, form, **{"Content-Type": "application/x-www-form-urlencoded"}).decode()


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


def names(arn: str) -> list[str]:
    """What a caller may call the inner queue, hoping to be understood."""
    key = arn.rpartition(":")[2]
    owner = f"{DEFAULT_ACCOUNT}/{INNER}"
    return [
        arn,
        key,
        f"http://h/{owner}/{key}",
        f"http://h/{INNER}/{DEFAULT_ACCOUNT}/{key}",
        f"http://h/{DEFAULT_ACCOUNT}/{key}",
        f"arn:aws:sqs:{INNER}:{DEFAULT_ACCOUNT}:{key}",
        f"{owner}/{key}",
    ]


def at_the_port(server: Process, topic: str, arn: str) -> Iterator[bytes]:
    """Every read of SQS, SNS and the REST API."""
    for region in ("us-east-1", INNER):
        scope = f"Credential=000000000000/20260101/{region}/sqs/aws4_request"
        reads = [name for name, each in SQS.operations.items() if each.read_only]
        for action in (*reads, "ReceiveMessage"):
            for name in names(arn):
                headers = {
                    "X-Amz-Target": f"AmazonSQS.{action}",
                    "Content-Type": "application/x-amz-json-1.0",
                    "Authorization": f"AWS4-HMAC-SHA256 {scope}",
                }
                members = {"QueueUrl": name, "QueueName": name, "AttributeNames": ["All"], "QueueNamePrefix": ""}
                body = json.dumps(members).encode()
                yield answer(server.url, body, **headers)
                yield answer(f"{server.url}/_elasticq/peek", body, **headers)
    for action, operation in SNS.operations.items():
        if operation.read_only:
            yield sns(server, action, TopicArn=topic, SubscriptionArn=arn, ResourceArn=topic).encode()
    for name in (quote(name, safe="") for name in names(arn)):
        for path in ("", "/messages", "/messages/1", "/export", "/moves"):
            yield answer(f"{server.url}/api/v1/queues/{name}{path}")
        yield answer(f"{server.url}/_aws/sqs/messages?QueueUrl={name}")
    key = arn.rpartition(":")[2]
    yield answer(f"{server.url}/_aws/sqs/messages/{quote(INNER)}/{DEFAULT_ACCOUNT}/{key}")
    yield answer(f"{server.url}/api/v1/queues")


def of_operators(server: Process, topic: str, arn: str) -> Iterator[bytes]:
    """Every page and every read of the operators' port."""
    document = json.loads(answer(f"{server.admin}/api/openapi.json"))
    assert document["paths"]
    key, name = arn.rpartition(":")[2], topic.rpartition(":")[2]
    pages = ["/", "/topics", f"/topics/{DEFAULT_ACCOUNT}/{name}", "/consumers", "/groups", "/cluster"]
    pages += ["/definitions", "/api/definitions", "/events", "/metrics", "/leases", "/queues"]
    pages += ["/api/queues", "/api/history", "/api/waiting", "/api/tasks", "/api/queues?prefix="]
    for account in (DEFAULT_ACCOUNT, quote(f"{DEFAULT_ACCOUNT}/{INNER}", safe="")):
        for region in ("", f"?region={quote(INNER)}"):
            for page in ("", "/messages/1", "/scheduled", "/order"):
                pages.append(f"/queues/{account}/{key}{page}{region}")
    for query in (
        {"queue": key},
        {"queue": key, "region": INNER},
        {"queue": key, "account": f"{DEFAULT_ACCOUNT}/{INNER}"},
    ):
        pages += [f"/api/{page}?{urlencode(query)}" for page in ("in-flight", "group-order", "queues")]
    for page in pages:
        yield answer(server.admin + page, None, Accept="text/html")
    for page in ("/cluster", "/groups"):  # JSON for tools
        yield answer(server.admin + page)
    members = {"TopicArn": topic, "SubscriptionArn": arn, "AttributeNames": ["All"]}
    for action in (
        "GetSubscriptionAttributes",
        "ListSubscriptions",
        "ElasticqPeek",
        "ReceiveMessage",
        "GetQueueAttributes",
    ):
        for account, region in ((DEFAULT_ACCOUNT, ""), (DEFAULT_ACCOUNT, INNER), (f"{DEFAULT_ACCOUNT}/{INNER}", "")):
            for each in names(arn):
                url = f"{server.admin}/api/actions/{action}?{urlencode({'account': account, 'region': region})}"
                yield answer(
                    url, json.dumps({**members, "QueueUrl": each}).encode(), **{"Content-Type": "application/json"}
                )


def by_commands(server: Process, arn: str) -> Iterator[bytes]:
    key = arn.rpartition(":")[2]
    for arguments in (["queues", "ls"], ["queues", "peek", key], ["queues", "show", key], ["topics", "ls"]):
        done = subprocess.run(
            [sys.executable, "-m", "elasticq", *arguments, "--url", server.url], capture_output=True, check=False
        )
        yield done.stdout + done.stderr


def test_no_read_shows_a_token(server: Process, receiver: Receiver) -> None:
    receiver.status = 503  # so that the confirmation waits in its queue, for the next attempt
    topic = found("<TopicArn>(.*?)<", sns(server, "CreateTopic", Name="t"))
    members: dict[str, Any] = {"TopicArn": topic, "Protocol": "http", "Endpoint": receiver.url}
    arn = found("<SubscriptionArn>(.*?)<", sns(server, "Subscribe", **members, ReturnSubscriptionArn="true"))
    token = receiver.wait_for(1)[0].envelope["Token"]
    assert TOKEN.fullmatch(token.encode())
    seen = [*at_the_port(server, topic, arn), *of_operators(server, topic, arn), *by_commands(server, arn)]
    assert len(seen) > 100
    assert sum(b"200" in each or b"{" in each for each in seen) > 50, "they are answers"
    for each in (*seen, Path(server.log).read_bytes()):
        assert token.encode() not in each
        assert not TOKEN.search(each)


def test_who_has_no_token_confirms_nothing(server: Process, receiver: Receiver) -> None:
    receiver.status = 503
    topic = found("<TopicArn>(.*?)<", sns(server, "CreateTopic", Name="u"))
    members: dict[str, Any] = {"TopicArn": topic, "Protocol": "http", "Endpoint": receiver.url}
    arn = found("<SubscriptionArn>(.*?)<", sns(server, "Subscribe", **members, ReturnSubscriptionArn="true"))
    token = receiver.wait_for(1)[0].envelope["Token"]
    last = "0" if token[-1] != "0" else "1"
    for wrong in (token[:-1] + last, token.upper(), token[::-1], "0" * len(token), arn.rpartition(":")[2]):
        if wrong != token:
            assert "<Error>" in sns(server, "ConfirmSubscription", TopicArn=topic, Token=wrong)
    shown = sns(server, "GetSubscriptionAttributes", SubscriptionArn=arn)
    assert re.search("PendingConfirmation</key>\\s*<value>true", shown)
