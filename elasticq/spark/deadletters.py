"""The dead letters of onParseError=deadletter: messages whose bodies do not fit the schema go to another queue."""

import logging
from typing import Any, Final

from elasticq.client.errors import SqsError, Unreachable
from elasticq.spark.clients import Client, may_pass
from elasticq.spark.entries import BATCH_BYTES_MAX, Batch, Outgoing, message_attributes
from elasticq.spark.environment import Environment
from elasticq.spark.options import OptionError, Read
from elasticq.spark.pages import pages_for
from elasticq.spark.queues import explained, find_queues
from elasticq.spark.schema import Rejected
from elasticq.spark.sending import Pace, Sender

REASON_CHARACTERS: Final = 500
ATTRIBUTES_MAX: Final = 10  # of a message, on AWS
SIZE: Final = "MaximumMessageSize"
log = logging.getLogger("elasticq.spark")


class DeadLetters:
    """The sender of messages whose bodies do not fit, with the sender's attributes.

    It adds the attributes reason and source where they fit. It sends before the batch is committed. So no message is
    lost, but a retried task sends its messages again.
    """

    def __init__(self, options: Read, environment: Environment) -> None:
        """Find the queue. Raise OptionError if there is none, or if it refuses sizes that a source queue allows."""
        self._options = options
        self._environment = environment
        wanted = options.dead_letter_queue
        if not wanted:
            raise OptionError("onParseError=deadletter needs option deadLetterQueue, the name or URL of a queue")
        client = environment.connect(options.connection)
        try:
            self._url = wanted if "://" in wanted else client.get_queue_url(QueueName=wanted)["QueueUrl"]
            self._size_bytes_max = _size_bytes_max(client, self._url)
        except (SqsError, Unreachable) as error:
            said = explained(error, wanted, options.endpoint)
            if may_pass(error):
                raise said from error
            raise OptionError(f"option deadLetterQueue: {said}") from error
        for source in find_queues(client, options):
            if _size_bytes_max(client, source) > self._size_bytes_max:
                raise OptionError(f"option deadLetterQueue: its {SIZE} {self._size_bytes_max} is less than of {source}")

    def send(self, source_url: str, rejected: list[Rejected]) -> None:
        """Send the messages in batches. Raise Failed if one cannot be sent."""
        if not rejected:
            return
        connection = self._options.connection
        client = self._environment.connect(connection)
        sender = Sender(client, self._url, self._options.retry_seconds, Pace(0.0))
        batch = Batch(pages_for(connection).size_max)
        for each in rejected:
            if full := batch.add(self._letter(source_url, each)):
                sender.send(full)
        sender.send(batch.take())
        log.warning("dead_letters source=%s queue=%s messages=%d", source_url, self._url, len(rejected))

    def _letter(self, source_url: str, rejected: Rejected) -> Outgoing:
        body, given = rejected.message["Body"], rejected.message.get("MessageAttributes") or {}
        written = {
            name: {"type": each["DataType"], "string": each.get("StringValue"), "binary": each.get("BinaryValue")}
            for name, each in given.items()
        }
        attributes, size_bytes = message_attributes(written)
        size_bytes += len(body.encode("utf-8", "surrogatepass"))
        for name, value in (("reason", rejected.reason[:REASON_CHARACTERS]), ("source", source_url)):
            made, more_bytes = message_attributes({name: value})
            fits = size_bytes + more_bytes <= self._size_bytes_max and len(attributes) < ATTRIBUTES_MAX
            if fits and name not in attributes:
                attributes |= made
                size_bytes += more_bytes
        entry: dict[str, Any] = {"MessageBody": body}
        if attributes:
            entry["MessageAttributes"] = attributes
        if self._url.endswith(".fifo"):
            entry["MessageGroupId"] = rejected.message.get("Attributes", {}).get("MessageGroupId", "sqs")
            entry["MessageDeduplicationId"] = rejected.message["MessageId"]
        return Outgoing({}, entry, size_bytes)


def _size_bytes_max(client: Client, queue_url: str) -> int:
    """Return the largest size of a message of a queue. Without the right to read it, return that of AWS."""
    try:
        attributes = client.get_queue_attributes(QueueUrl=queue_url, AttributeNames=[SIZE]).get("Attributes", {})
    except SqsError as error:
        if "AccessDenied" not in error.code:
            raise
        attributes = {}
    return int(attributes.get(SIZE, BATCH_BYTES_MAX))
