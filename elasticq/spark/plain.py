"""Reads with ackMode=none and ackMode=onRead. They store nothing, so a retried task reads other messages."""

from collections.abc import Iterator
from typing import Final

from elasticq.spark.environment import Environment
from elasticq.spark.lease import body_bytes
from elasticq.spark.offsets import Offset, Share
from elasticq.spark.options import Read
from elasticq.spark.receives import Receives
from elasticq.spark.schema import Message

ENTRIES_MAX: Final = 10


class Plain:
    """Reads without protection against failures. With onRead, a page is deleted as soon as it was received."""

    share_messages_max = 10_000_000
    expired = 0

    def __init__(self, options: Read, receives: Receives, environment: Environment) -> None:
        self._options = options
        self._receives = receives
        self._environment = environment

    def pages(self, share: Share) -> Iterator[list[Message]]:
        """Yield messages until the queue is empty or a bound of the share is reached."""
        client = self._environment.connect(self._options.connection)
        taken = taken_bytes = 0
        while taken < share.messages and (not share.bytes_max or taken_bytes < share.bytes_max):
            page = self._receives.receive(
                client,
                share.queue_url,
                share.messages - taken,
                VisibilityTimeout=int(self._options.visibility_timeout),
            )
            if not page:
                return
            if self._options.ack_mode == "onRead":
                self._delete(share.queue_url, page)
            yield page
            taken += len(page)
            taken_bytes += body_bytes(page) if share.bytes_max else 0

    def _delete(self, queue_url: str, page: list[Message]) -> None:
        client = self._environment.connect(self._options.connection)
        for start in range(0, len(page), ENTRIES_MAX):
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(page[start : start + ENTRIES_MAX])
            ]
            client.delete_message_batch(QueueUrl=queue_url, Entries=entries)

    def commit(self, offset: Offset) -> None:
        """Do nothing: the user deletes the messages, or the read has deleted them."""

    def renew(self, offset: Offset) -> None:
        """Do nothing: no messages are held for the batch."""

    def replayed(self, offset: Offset) -> list[Share]:
        return offset.shares()
