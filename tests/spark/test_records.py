"""The bytes of a write-ahead log file: read as they were written, or known to be damaged."""

import pytest

from elasticq.spark.records import DamagedLog, Received, decode, decode_ids, encode, encode_ids

MESSAGE = {
    "MessageId": "a", "ReceiptHandle": "r", "Body": "ä",
    "MessageAttributes": {"raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}},
}  # fmt: skip


def test_what_was_received_is_read_again() -> None:
    received = Received([MESSAGE], [("b", "s")])
    again = decode("file", encode(received))
    assert again == received
    assert again.handles() == [("a", "r"), ("b", "s")]
    assert decode_ids("file", encode_ids(5.5, ["a"])) == (5.5, ["a"])


@pytest.mark.parametrize("at", [0, 20, -1])
def test_a_damaged_file_is_known(at: int) -> None:
    content = bytearray(encode(Received([MESSAGE])))
    content[at] ^= 1
    with pytest.raises(DamagedLog, match=r"1-0\.wal"):
        decode("1-0.wal", bytes(content))
    with pytest.raises(DamagedLog):
        decode("1-0.wal", b"")
