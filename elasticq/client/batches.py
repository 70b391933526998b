"""Puts the answer to a batch together whose entries took several tries.

A batch is answered with success though some of its entries failed. Those that failed by a fault of the server, or as it
was overloaded, are sent again, and only they; so the answer tells of all entries, and of none that it may pass.
"""

from typing import Any, Final

from elasticq.client.lines import is_fifo
from elasticq.client.retries import THROTTLING

OPERATIONS: Final = frozenset(("send_message_batch", "delete_message_batch", "change_message_visibility_batch"))

Members = dict[str, Any]


class Batch:
    """The answers to one batch. ``members``: of the next try."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self._answer: Members | None = None  # the last one
        self._left: list[Members] = []  # entries of the last answer that failed and may pass
        self._earlier: dict[str, list[Members]] = {"Successful": [], "Failed": []}  # what earlier answers settled

    @property
    def has_succeeded_in_part(self) -> bool:
        return self._answer is not None

    def take(self, answer: Members) -> bool:
        """Take the answer of a try; return whether it leaves entries that another try may bring through."""
        if self._answer is not None:
            self._earlier["Successful"] += self._answer.get("Successful", ())
            self._earlier["Failed"] += [each for each in self._answer.get("Failed", ()) if each not in self._left]
        self._answer = answer
        passing = {each["Id"] for each in answer.get("Failed", ()) if _may_pass(each)} - self._overtaken(answer)
        self._left = [each for each in answer.get("Failed", ()) if each["Id"] in passing]
        entries = [each for each in self.members["Entries"] if each["Id"] in passing]
        self.members = {**self.members, "Entries": entries}
        return bool(self._left)

    def whole(self) -> Members:
        """The answer to the whole batch. Entries that were to be sent again count as failed."""
        assert self._answer is not None
        whole = dict(self._answer)
        for kind, settled in self._earlier.items():
            if settled:
                whole[kind] = [*settled, *whole.get(kind, ())]
        return whole

    def _overtaken(self, answer: Members) -> set[str]:
        """The entries for a FIFO queue that are followed by one to their group that succeeded."""
        if not is_fifo(self.members):
            return set()
        succeeded = {each["Id"] for each in answer.get("Successful", ())}
        groups: set[object] = set()
        overtaken: set[str] = set()
        for entry in reversed(self.members["Entries"]):
            group = entry.get("MessageGroupId")
            if group is None:
                continue  # it is no send
            if entry["Id"] in succeeded:
                groups.add(group)
            elif group in groups:
                overtaken.add(entry["Id"])
        return overtaken


def _may_pass(failed: Members) -> bool:
    return not failed.get("SenderFault", True) or failed.get("Code") in THROTTLING
