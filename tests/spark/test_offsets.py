"""What stands in Spark's offset log, and how a batch is divided into shares."""

import pytest

from elasticq.spark.offsets import Offset, Part, from_json, stream_name


def test_shares_add_up_and_survive_the_offset_log() -> None:
    offset = Offset("q-1", 7, "lease", 5, 6, 100, (Part("http://a/0/x", 3, 10), Part("http://a/0/y", 1, 4)))
    assert from_json(offset.to_json()) == offset
    shares = offset.shares()
    assert [(share.partition, share.queue_name, share.messages) for share in shares] == [
        (0, "x", 4), (1, "x", 3), (2, "x", 3), (3, "y", 4),
    ]  # fmt: skip
    assert {share.bytes_max for share in shares} == {25}


def test_an_offset_of_another_source_is_refused() -> None:
    with pytest.raises(ValueError, match="not of this version"):
        from_json({"index": 3})


@pytest.mark.parametrize(
    ("wanted", "name"), [("", "sqs-ab"), ("my jobs/1", "my-jobs-1-ab"), ("ä", "sqs-ab"), ("x" * 99, "x" * 60 + "-ab")]
)
def test_a_name_has_only_what_a_lease_may_have(wanted: str, name: str) -> None:
    assert stream_name(wanted, "ab") == name
