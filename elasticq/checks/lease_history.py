"""The history of one lease: its receives, the changes of the whole lease, and how long it is certainly active."""

from msgspec import Struct, field

from elasticq.checks.history import LeaseChange, Receive


class LeaseHistory(Struct):
    receives: list[Receive] = field(default_factory=list)
    changes: list[LeaseChange] = field(default_factory=list)

    @property
    def began_us(self) -> int:
        return min(receive.invoke_us for receive in self.receives)

    def deadline_us(self, by_us: int) -> int:
        """Return the earliest moment at which its messages may be visible again, by the events until ``by_us``.

        Any of its receives may have opened the lease. A renewal never shortens the deadline, because all requests for
        one lease ask for the same time. A release of the lease may have its effect even without an ok answer.
        """
        until_us = min(receive.invoke_us + receive.visibility_ms * 1_000 for receive in self.receives)
        for change in self.changes:
            if change.action == "renew" and change.outcome == "ok" and change.invoke_us <= by_us:
                until_us = max(until_us, change.invoke_us + change.visibility_ms * 1_000)
        backs = [change.invoke_us for change in self.changes if change.action == "give_back"]
        return min([until_us, *(back_us for back_us in backs if back_us <= by_us)])

    def told_until(self, receive: Receive) -> set[str]:
        """Return the MessageIds in the answers to the receives of the lease up to ``receive``, by receive number."""
        number = call_of(receive)
        return {message.message_id for each in self.receives if call_of(each) <= number for message in each.messages}


def call_of(receive: Receive) -> int:
    """Return the number of a receive in its lease."""
    return int(receive.attempt_id.rpartition("/")[2])
