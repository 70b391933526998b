"""Regions with real clients: through restarts, through the members of a cluster, and where all of them are one."""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from elasticq.testing import Cluster, ElasticQ

EU = {"region_name": "eu-west-1"}


def names(client: Any) -> list[str]:
    return [url.rpartition("/")[2] for url in client.list_queues().get("QueueUrls", [])]


def bodies(client: Any, url: str) -> list[str]:
    return [message["Body"] for message in client.receive_message(QueueUrl=url).get("Messages", [])]


def arn_of(client: Any, url: str) -> str:
    attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    return str(attributes["QueueArn"])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_a_restart_keeps_regions_apart(directory: Path) -> None:
    with ElasticQ(data_dir=directory) as server:
        here, europe = server.client(), server.client(**EU)
        url = europe.create_queue(QueueName="jobs")["QueueUrl"]
        dead = europe.create_queue(QueueName="dead")["QueueUrl"]
        policy = json.dumps({"deadLetterTargetArn": arn_of(europe, dead), "maxReceiveCount": 1})
        europe.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": policy})
        assert here.create_queue(QueueName="jobs")["QueueUrl"] == url
        europe.send_message(QueueUrl=url, MessageBody="hello")
    with ElasticQ(data_dir=directory) as server:
        here, europe = server.client(), server.client(**EU)
        url, dead = (f"{server.endpoint_url}/{server.account}/{name}" for name in ("jobs", "dead"))
        assert (names(here), names(europe)) == (["jobs"], ["dead", "jobs"])
        assert arn_of(europe, url) == f"arn:aws:sqs:eu-west-1:{server.account}:jobs"
        assert arn_of(here, url) == f"arn:aws:sqs:us-east-1:{server.account}:jobs"
        assert (bodies(here, url), bodies(europe, url)) == ([], ["hello"])
        server.clock.advance(60)
        assert bodies(europe, url) == []
        assert bodies(europe, dead) == ["hello"]


def test_one_region_for_those_who_sign_with_anything(directory: Path) -> None:
    """Also what an earlier version stored is found again so: it knew one region."""
    settings = {"node": {"single_region": True}}
    with ElasticQ(data_dir=directory, settings=settings) as server:
        url = server.client(**EU).create_queue(QueueName="jobs")["QueueUrl"]
        assert names(server.client()) == names(server.client(**EU)) == ["jobs"]
        assert arn_of(server.client(**EU), url) == f"arn:aws:sqs:us-east-1:{server.account}:jobs"
    with ElasticQ(data_dir=directory) as server:
        assert (names(server.client()), names(server.client(**EU))) == (["jobs"], [])


def test_all_members_of_a_cluster_tell_regions_apart() -> None:
    with Cluster() as cluster:
        clients = [
            cluster.client(endpoint_url=cluster.endpoint_url_of(name), **settings)
            for name in cluster.names
            for settings in ({}, EU)
        ]
        here, europe = clients[::2], clients[1::2]
        url = europe[0].create_queue(QueueName="jobs")["QueueUrl"]
        europe[1].send_message(QueueUrl=url, MessageBody="hello")
        assert [names(client) for client in europe] == [["jobs"]] * 3
        assert [names(client) for client in here] == [[]] * 3
        with pytest.raises(ClientError):
            here[2].receive_message(QueueUrl=url)
        cluster.kill_master()
        living = cluster.client(endpoint_url=cluster.endpoint_url_of(cluster.master), **EU)
        assert bodies(living, url) == ["hello"]
