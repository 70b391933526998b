"""Calls of plain boto3 whose replies are cut have one effect, and the second attempt gets the reply of the first."""

from contextlib import closing

import pytest
from botocore.exceptions import ClientError

from tests.system.cluster.cluster import Cluster, boto3_at
from tests.system.cluster.cut_calls import cut_calls, rounds
from tests.system.cluster.cutter import Cutter

CUTS = 24  # of each of two members


@pytest.mark.parametrize("place", ["master", "follower"])
def test_call_whose_reply_was_cut_has_one_effect_and_the_same_reply(formed: Cluster, place: str) -> None:
    name = formed.master() if place == "master" else formed.followers()[0]
    cutter = cut_calls(formed[name].port, place, CUTS)
    print(cutter.cuts)
    assert sum(cutter.cuts.values()) >= CUTS > cutter.cut_hastily > 0
    assert cutter.differing == []


def test_program_notices_where_members_know_no_attempts_for_one_call(formed: Cluster) -> None:
    """The judge can judge: without ids the second attempt has a second effect."""
    port = formed[formed.master()].port
    with (
        Cutter(port, strips_ids=True) as cutter,
        closing(boto3_at(cutter.port)) as sqs,
        pytest.raises((AssertionError, ClientError)),
    ):
        rounds(sqs, cutter, "blind", CUTS)
    assert any(each.startswith("SendMessage:") for each in cutter.differing)
