"""The answer to a batch whose entries took several tries."""

from typing import Any

from elasticq.client.batches import Batch

STANDARD = "http://127.0.0.1:9324/000000000000/orders"


def batch(url: str, **groups: str) -> Batch:
    """Entries by id, each of its group."""
    return Batch(
        {"QueueUrl": url, "Entries": [{"Id": each, "MessageGroupId": group} for each, group in groups.items()]}
    )


def failed(name: str, code: str = "InternalFailure", *, sender: bool = False) -> dict[str, Any]:
    return {"Id": name, "SenderFault": sender, "Code": code}


def ids(entries: list[dict[str, Any]]) -> list[str]:
    return [each["Id"] for each in entries]


def test_answer_that_leaves_nothing_is_passed_on_as_it_is() -> None:
    made = batch(STANDARD, a="", b="")
    answer = {"Successful": [{"Id": "a"}], "Failed": [failed("b", "InvalidMessageContents", sender=True)], "More": 1}
    assert made.take(answer) is False
    assert made.whole() == answer


def test_throttled_entry_is_sent_again_though_it_is_called_a_fault_of_the_sender() -> None:
    made = batch(STANDARD, a="", b="")
    assert made.take({"Successful": [{"Id": "a"}], "Failed": [failed("b", "RequestThrottled", sender=True)]})
    assert (made.members["QueueUrl"], ids(made.members["Entries"])) == (STANDARD, ["b"])


def test_answer_tells_of_each_entry_once() -> None:
    made = batch(STANDARD, a="", b="", c="", d="")
    refused = failed("d", "InvalidMessageContents", sender=True)
    assert made.take({"Successful": [{"Id": "a"}], "Failed": [failed("b"), failed("c"), refused]})
    assert made.take({"Successful": [{"Id": "c"}], "Failed": [failed("b", "ServiceUnavailable")]})
    assert ids(made.members["Entries"]) == ["b"]
    left = made.whole()
    assert ids(left["Successful"]) == ["a", "c"]
    assert left["Failed"] == [refused, failed("b", "ServiceUnavailable")]
    assert made.take({"Successful": [{"Id": "b"}]}) is False
    assert (ids(made.whole()["Successful"]), made.whole()["Failed"]) == (["a", "c", "b"], [refused])


def test_entry_does_not_come_behind_a_later_one_of_its_group() -> None:
    made = batch(f"{STANDARD}.fifo", a="g", b="h", c="g", d="h")
    assert made.take({"Successful": [{"Id": "c"}], "Failed": [failed("a"), failed("b"), failed("d")]})
    assert ids(made.members["Entries"]) == ["b", "d"]
    made.take({"Successful": [{"Id": "b"}, {"Id": "d"}]})
    assert made.whole()["Failed"] == [failed("a")]


def test_deletes_from_a_fifo_queue_have_no_order() -> None:
    made = Batch({"QueueUrl": f"{STANDARD}.fifo", "Entries": [{"Id": each, "ReceiptHandle": each} for each in "ab"]})
    assert made.take({"Successful": [{"Id": "b"}], "Failed": [failed("a")]})
    assert ids(made.members["Entries"]) == ["a"]
