"""What an operator asks of a cluster; the master does it and answers when it is committed.

Members are named by their ``--node-id`` or, where that is not enough, by their member id.
"""

from msgspec import Struct


class AddVoter(Struct, frozen=True, tag=True):
    """Make a learner that has caught up a voter."""

    member: str


class RemoveVoter(Struct, frozen=True, tag=True):
    """Take a voter out, dead or alive; the quorum becomes that of the rest."""

    member: str


class ReplaceVoter(Struct, frozen=True, tag=True):
    """Put the learner that came under the name of ``member`` (a wiped disk) in the old voter's place."""

    member: str


class TransferMastership(Struct, frozen=True, tag=True):
    """Hand over to ``member``, or to whoever has the newest log if it is empty."""

    member: str = ""


class VerifyRows(Struct, frozen=True, tag=True):
    """Compare the rows of all members in parts, each at the same place in the log."""


Order = AddVoter | RemoveVoter | ReplaceVoter | TransferMastership | VerifyRows


class OrderDone(Struct, frozen=True):
    """``text``: one line for the operator."""

    text: str


class OrderRefused(Struct, frozen=True):
    """``reason``: one line that says what to do instead. Nothing was changed."""

    reason: str


OrderOutcome = OrderDone | OrderRefused
