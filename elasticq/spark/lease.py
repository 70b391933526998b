"""Reads with mode=lease: elasticq remembers what each task received, and one delete commits a batch.

The receives of a task have the ids NAME/BATCH/PARTITION/0, 1, 2 and so on. Until the commit, elasticq answers an id
with the same messages, so a retried task reads the same messages. docs/adr/0012-spark-source.md gives the reasons.
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

LEASE_MESSAGES_MAX: Final = 20_000  # the most messages of a lease on elasticq
EXPIRED: Final = "LeaseExpired"
log = logging.getLogger(__name__)


class LeaseLost(RuntimeError):
    """The error of a lease that ended before all its messages were read. They come in a later batch."""


def body_bytes(messages: list[Message]) -> int:
    """Return the sum of the characters of all bodies, which approximates their bytes."""
    return sum(len(message["Body"]) for message in messages)


class Leases:
    """Reads through leases. Executors read; the driver commits, renews and counts."""

    share_messages_max = LEASE_MESSAGES_MAX

    def __init__(self, options: Read, receives: Receives, environment: Environment) -> None:
        self._options = options
        self._receives = receives
        self._environment = environment
        self.expired = 0  # leases that ended before their commit, as far as this process knows

    def _client(self) -> Client:
        return self._environment.connect(self._options.connection)

    # --- on executors ---------------------------------------------------------------------------

    def pages(self, share: Share) -> Iterator[list[Message]]:
        """Yield the share's messages, which are the same in each run.

        The share ends at an empty answer, which elasticq remembers, or at its bound. It never ends by time, because a
        replay would end elsewhere. Raise LeaseLost if the lease ends between two pages.
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
        """Log the end of the share's lease if nothing was read of it. Otherwise raise LeaseLost.

        call: the number of pages read. Without pages the share is empty, and its messages come in a later batch. An
        error would repeat for ever: Spark plans the same batch again, but its lease has ended. With
        onLeaseExpired=fail, always raise LeaseLost.
        """
        said = (
            f"the lease of batch {share.batch}, partition {share.partition} of {share.name} has ended;"
            " its messages are visible again and come in a later batch"
        )
        if call or self._options.on_lease_expired == "fail":
            raise LeaseLost(said)
        log.warning("lease_expired %s", said)

    # --- on the driver --------------------------------------------------------------------------

    def commit(self, offset: Offset) -> None:
        """Delete the batch's messages. Log shares whose lease has ended. A repeated call is harmless."""
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
        """Renew all leases of the batch for leaseSeconds. The commit finds those that have ended."""
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
        """Return the shares of a batch that an earlier run planned, without those whose leases may have ended.

        Some time after its end, elasticq forgets a lease, and its ids would open a new one. A sink that knows the batch
        would skip the new messages. So only a batch younger than leaseSeconds keeps all shares. An older batch
        keeps the shares whose leases can be renewed. The leases of its other shares are ended, even if they never
        opened. Otherwise a late receive of the earlier run could open one, and the commit would delete messages that
        nobody read.
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
