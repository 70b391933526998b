"""Orders of an operator to a cluster. The master carries them out and answers when they are committed.

An order names a member by its ``--node-id`` or, if that is ambiguous, by its member id.
"""

from msgspec import Struct


class AddVoter(Struct, frozen=True, tag=True):
    """An order to make a learner that has caught up a voter."""

    member: str


class RemoveVoter(Struct, frozen=True, tag=True):
    """An order to remove a voter, dead or alive. The quorum becomes that of the remaining voters."""

    member: str


class ReplaceVoter(Struct, frozen=True, tag=True):
    """An order to replace a voter by the learner with the same name (after its disk was emptied)."""

    member: str


class TransferMastership(Struct, frozen=True, tag=True):
    """An order to hand over the mastership to ``member`` or, if that is empty, to the voter with the newest log."""

    member: str = ""


class VerifyRows(Struct, frozen=True, tag=True):
    """An order to compare the rows of all members in parts, each part at the same log index."""


Order = AddVoter | RemoveVoter | ReplaceVoter | TransferMastership | VerifyRows


class OrderDone(Struct, frozen=True):
    """The answer to an order that was carried out. ``text`` is one line for the operator."""

    text: str


class OrderRefused(Struct, frozen=True):
    """The answer to an order that changed nothing. ``reason`` is one line that also says what to do instead."""

    reason: str


OrderOutcome = OrderDone | OrderRefused
