"""The answer to a batch whose entries needed several tries.

The server answers a batch with success even if some entries failed. Entries that failed because of the server, or
because it was overloaded, are sent again, without the others. The caller gets one answer with all entries.
"""

from typing import Any, Final

from elasticq.client.lines import is_fifo
from elasticq.client.retries import THROTTLING

OPERATIONS: Final = frozenset(("send_message_batch", "delete_message_batch", "change_message_visibility_batch"))

Members = dict[str, Any]


class Batch:
    """The answers to the tries of one batch. members: the members of the request for the next try."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self._answer: Members | None = None  # the last one
        self._left: list[Members] = []  # failed entries of the last answer that may succeed later
        self._earlier: dict[str, list[Members]] = {"Successful": [], "Failed": []}  # final entries of earlier answers

    @property
    def has_succeeded_in_part(self) -> bool:
        return self._answer is not None

    def take(self, answer: Members) -> bool:
        """Take the answer to a try; return whether some failed entries may succeed in another try."""
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
        """Return the answer to the whole batch. Entries that another try would send again count as failed."""
        assert self._answer is not None
        whole = dict(self._answer)
        for kind, settled in self._earlier.items():
            if settled:
                whole[kind] = [*settled, *whole.get(kind, ())]
        return whole

    def _overtaken(self, answer: Members) -> set[str]:
        """Return the ids of failed sends after which a later send to the same message group succeeded.

        They are not sent again, as that would change the order of the group. Empty for a standard queue.
        """
        if not is_fifo(self.members):
            return set()
        succeeded = {each["Id"] for each in answer.get("Successful", ())}
        groups: set[object] = set()
        overtaken: set[str] = set()
        for entry in reversed(self.members["Entries"]):
            group = entry.get("MessageGroupId")
            if group is None:
                continue  # not a send
            if entry["Id"] in succeeded:
                groups.add(group)
            elif group in groups:
                overtaken.add(entry["Id"])
        return overtaken


def _may_pass(failed: Members) -> bool:
    return not failed.get("SenderFault", True) or failed.get("Code") in THROTTLING
