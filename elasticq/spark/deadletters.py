"""The dead letters of onParseError=deadletter: messages whose bodies do not fit the schema go to another queue."""

from typing import Final

from elasticq.spark.environment import Environment
from elasticq.spark.options import OptionError, Read
from elasticq.spark.schema import Rejected

REASON_CHARACTERS: Final = 500


class DeadLetters:
    """The sender of messages whose bodies do not fit, with the reason as an attribute.

    It sends before the batch is committed. So no message is lost, but a retried task sends its messages again. The
    constructor raises OptionError without deadLetterQueue.
    """

    def __init__(self, options: Read, environment: Environment) -> None:
        if options.on_parse_error == "deadletter" and not options.dead_letter_queue:
            raise OptionError("onParseError=deadletter needs option deadLetterQueue, the name or URL of a queue")
        self._options = options
        self._environment = environment
        self._url = ""

    def send(self, source_url: str, rejected: list[Rejected]) -> None:
        if not rejected:
            return
        client = self._environment.connect(self._options.connection)
        wanted = self._options.dead_letter_queue
        if not self._url:
            self._url = wanted if "://" in wanted else client.get_queue_url(QueueName=wanted)["QueueUrl"]
        for each in rejected:
            told = {"reason": each.reason[:REASON_CHARACTERS], "source": source_url}
            client.send_message(
                QueueUrl=self._url,
                MessageBody=each.message["Body"],
                MessageAttributes={name: {"DataType": "String", "StringValue": value} for name, value in told.items()},
                **self._fifo(each),
            )

    def _fifo(self, rejected: Rejected) -> dict[str, str]:
        if not self._url.endswith(".fifo"):
            return {}
        group = rejected.message.get("Attributes", {}).get("MessageGroupId", "sqs")
        return {"MessageGroupId": group, "MessageDeduplicationId": rejected.message["MessageId"]}
