"""mode=lease: elasticq remembers what each task received, and one delete commits a batch.

The receives of a task carry the ids NAME/BATCH/PARTITION/0, 1, 2 ...; elasticq
answers the same id with the same messages until the batch is committed, so a
task that runs again reads the same. The reasons for this design are in
docs/adr/0012-spark-source.md.
"""

import logging
from collections.abc import Iterator
from typing import Final

from elasticq.client.errors import SqsError
from elasticq.spark.clients import Client
from elasticq.spark.environment import Environment
from elasticq.spark.offsets import Offset, Share
from elasticq.spark.options import Read
from elasticq.spark.receives import Receives
from elasticq.spark.schema import Message

LEASE_MESSAGES_MAX: Final = 20_000  # the bound of elasticq, at which a lease takes no more messages
EXPIRED: Final = "LeaseExpired"
log = logging.getLogger(__name__)


class LeaseLost(RuntimeError):
    """A lease ended before its messages were read: they are visible again and come in a later batch."""


def body_bytes(messages: list[Message]) -> int:
    """Return the bytes of all bodies, in UTF-8 where that is cheap to know, else the characters."""
    return sum(len(message["Body"]) for message in messages)


class Leases:
    """Reads by leases on executors; commits, renews and counts on the driver."""

    share_messages_max = LEASE_MESSAGES_MAX

    def __init__(self, options: Read, receives: Receives, environment: Environment) -> None:
        self._options = options
        self._receives = receives
        self._environment = environment
        self.expired = 0  # leases that this process saw end before their commit

    def _client(self) -> Client:
        return self._environment.connect(self._options.connection)

    # --- on executors ---------------------------------------------------------------------------

    def pages(self, share: Share) -> Iterator[list[Message]]:
        """Yield the share's messages, the same ones in each run.

        The share ends at an empty answer, which elasticq remembers, or at a bound of its own, never by time: a replay
        would end elsewhere. Raise LeaseLost if the lease ends between two pages.
        """
        client = self._client()
        messages = taken = taken_bytes = 0
        call = 0
        while taken < share.messages and (not share.bytes_max or taken_bytes < share.bytes_max):
            try:
                page = self._receives.receive(
                    client,
                    share.queue_url,
                    share.messages - taken,
                    VisibilityTimeout=int(self._options.lease_seconds),
                    ReceiveRequestAttemptId=f"{share.name}/{share.batch}/{share.partition}/{call}",
                )
            except SqsError as error:
                if error.type != EXPIRED:
                    raise
                self._lost(share, call)
                return
            if not page:
                return
            yield page
            messages += len(page)
            taken = messages
            taken_bytes += body_bytes(page) if share.bytes_max else 0
            call += 1

    def _lost(self, share: Share, call: int) -> None:
        """End the share if nothing was read of it, as its messages come later; else raises LeaseLost.

        Otherwise a replay could go on for ever: Spark plans the same batch again and again, but its ids are closed.
        """
        said = (
            f"the lease of batch {share.batch}, partition {share.partition} of {share.name} is over;"
            " its messages are visible again and come in a later batch"
        )
        if call or self._options.on_lease_expired == "fail":
            raise LeaseLost(said)
        log.warning("lease_expired %s", said)

    # --- on the driver --------------------------------------------------------------------------

    def commit(self, offset: Offset) -> None:
        """Delete the batch's messages; a repeated call is harmless. Messages that are no longer held are logged."""
        client = self._client()
        for part in offset.parts:
            handle = f"lease:{offset.name}/{offset.batch}/"
            if not self._delete(client, part.queue_url, handle):
                self._commit_each(client, offset, part.queue_url)

    def _commit_each(self, client: Client, offset: Offset, queue_url: str) -> None:
        for share in offset.shares():
            if share.queue_url == queue_url and not self._delete(client, queue_url, _handle(share)):
                self.expired += 1
                log.warning(
                    "lease_expired_before_commit queue=%s name=%s batch=%d partition=%d: its messages come again",
                    share.queue_name, share.name, share.batch, share.partition,
                )  # fmt: skip

    def _delete(self, client: Client, queue_url: str, handle: str) -> bool:
        try:
            client.delete_message(QueueUrl=queue_url, ReceiptHandle=handle)
        except SqsError as error:
            if error.type == EXPIRED:
                return False
            raise
        return True

    def renew(self, offset: Offset) -> None:
        """Renew the whole batch for leaseSeconds. A lease that has ended shows at the commit."""
        client = self._client()
        for part in offset.parts:
            self._renewed(client, part.queue_url, f"lease:{offset.name}/{offset.batch}/")

    def _renewed(self, client: Client, queue_url: str, handle: str) -> bool:
        try:
            client.change_message_visibility(
                QueueUrl=queue_url, ReceiptHandle=handle, VisibilityTimeout=int(self._options.lease_seconds)
            )
        except SqsError as error:
            if error.type == EXPIRED:
                return False
            raise
        return True

    def replayed(self, offset: Offset) -> list[Share]:
        """Return the shares of a batch that an earlier run planned, without those whose leases may be over.

        elasticq forgets an ended lease some time after its end; its ids would then open a new one, with messages that
        a sink which knows the batch already skips. So the age decides first: a lease cannot have ended before its
        time, and of an older one only those count that can still be renewed. The others are given back, opened or not:
        a receive of the earlier run that is still on its way must not open what the commit would then delete unseen.
        """
        shares = offset.shares()
        if self._environment.now_s() * 1000 - offset.planned_ms < offset.lease_ms * 0.99:
            return shares
        client = self._client()
        alive = [share for share in shares if self._renewed(client, share.queue_url, _handle(share))]
        for share in shares:
            if share not in alive:
                self.expired += 1
                self._give_back(client, share)
                self._lost(share, 0)
        return alive

    def _give_back(self, client: Client, share: Share) -> None:
        try:
            client.change_message_visibility(
                QueueUrl=share.queue_url, ReceiptHandle=_handle(share), VisibilityTimeout=0
            )
        except SqsError as error:
            if error.type != EXPIRED:
                raise


def _handle(share: Share) -> str:
    return f"lease:{share.name}/{share.batch}/{share.partition}"
