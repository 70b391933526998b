"""The part of a process that posts notifications: its certificate, and that nothing is done before it is wanted."""

import ipaddress
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest

from elasticq.testing import Cluster, ElasticQ
from tests.server.test_proxy import Process
from tests.system.cluster.cluster import until

NAME = "SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"


def test_the_certificate_is_served_to_everybody() -> None:
    with ElasticQ(settings={"auth": {"mode": "strict", "keys": [KEY]}}) as server:
        with urllib.request.urlopen(f"{server.endpoint_url}/{NAME}") as answer:
            assert re.fullmatch(
                rb"-----BEGIN CERTIFICATE-----\n.+\n-----END CERTIFICATE-----\n", answer.read(), re.DOTALL
            )
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{server.endpoint_url}/Simple.pem")


KEY = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "secret", "account": "000000000000"}


def test_a_server_without_web_servers_as_subscriptions_loads_nothing_for_them() -> None:
    program = (
        "import sys; from elasticq.testing import ElasticQ\n"
        "with ElasticQ() as server:\n"
        "    server.queue('jobs').create()\n"
        "    assert not {'cryptography', 'elasticq.push.pusher'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_member_knows_where_all_members_listen() -> None:
    with Cluster() as cluster:
        members = [cluster._members[name].member for name in cluster.names]
        sqs = {urlsplit(cluster.endpoint_url_of(name)).port for name in cluster.names}
        peers = {urlsplit(f"//{each.peer_address}").port for each in members}
        for each in members:
            known = cluster._loop.ask(each.listeners)
            assert (known.sqs, known.trusted) == (sqs, peers)
            assert known.hosts == {ipaddress.ip_address("127.0.0.1")}


def test_a_post_to_another_cluster_is_refused_there(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody told this one its ports, so that the post is made; the header that every post carries decides."""
    with ElasticQ() as here, ElasticQ() as there:
        queue = there.queue("precious").create()
        queue.send("kept")
        sns = here.client("sns")
        topic = sns.create_topic(Name="t")["TopicArn"]
        paths = ("/000000000000/precious?Action=PurgeQueue", "/api/v1/queues/precious/purge", "/_elasticq/reset")
        for path in paths:
            sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=f"{there.endpoint_url}{path}")

        def reasons() -> list[str]:
            lines = [each for each in caplog.records if each.getMessage() == "notification_dropped"]
            return [each.fields["reason"] for each in lines]  # type: ignore[attr-defined]

        until(lambda: len(reasons()) == len(paths), "all were given up")
        assert set(reasons()) == {"the endpoint answered 403"}
        assert queue.visible() == 1


def test_nothing_is_posted_to_a_port_of_the_cluster(tmp_path: Path) -> None:
    member = Process(tmp_path / "member", "--memory", "--discovery", "seeds", "--peer-port", "0", lines=6)
    peers = member.found(r"peers listening on (\S+)")
    proxy = Process(tmp_path / "proxy", "--role", "proxy", "--seeds", peers, "--node-id", "web1", lines=5)
    try:
        until(lambda: "the proxy web1" in member.log.read_text(), "they are linked")
        sns = boto3.client(
            "sns", endpoint_url=member.url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
        )
        topic = sns.create_topic(Name="t")["TopicArn"]
        sqs_ports = (member.url, proxy.url, member.url.replace("127.0.0.1", "localhost"))
        trusted_ports = (member.admin, proxy.admin, f"http://{peers}")
        for url in (*sqs_ports, *trusted_ports):
            sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=f"{url}/?Action=ListTopics")

        def reasons() -> list[str]:
            return re.findall(r"notification_dropped .*reason=(.*) dead_letter_queue", member.log.read_text())

        until(lambda: len(reasons()) == 6, "all six were given up")
        assert sum("is an SQS port of this cluster" in each for each in reasons()) == len(sqs_ports)
        assert sum("operators or members" in each for each in reasons()) == len(trusted_ports)
    finally:
        proxy.kill()
        member.kill()
