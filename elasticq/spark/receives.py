"""The receives of all modes, with the page size and the wait time that fit the server."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from elasticq.spark.clients import Client
from elasticq.spark.options import Read
from elasticq.spark.schema import Message, Rows

BOTO3_PAGE: Final = 10  # the maximum of AWS
LIGHT_PAGE: Final = 1000
ROWS_AT_ONCE: Final = 1000  # of a record batch
AWS_WAIT_S: Final = 1  # on AWS, a receive without a wait asks only some servers and may miss messages


@dataclass(frozen=True)
class Receives:
    """The parameters of receives. extended: whether the light client receives from elasticq, with larger pages."""

    system_attributes: tuple[str, ...]
    wants_attributes: bool
    page: int
    wait_s: int
    extended: bool

    def receive(self, client: Client, queue_url: str, wanted: int, **members: Any) -> list[Message]:
        """Return up to ``wanted`` messages, and at most a page. members: further members of the request."""
        count = min(wanted, self.page)
        if self.extended:
            members["ElasticqPageSize"] = count
        else:
            members["MaxNumberOfMessages"] = count
        if self.wants_attributes:
            members["MessageAttributeNames"] = ["All"]
        if self.wait_s:
            members["WaitTimeSeconds"] = self.wait_s
        answer = client.receive_message(
            QueueUrl=queue_url, MessageSystemAttributeNames=list(self.system_attributes), **members
        )
        messages: list[Message] = answer.get("Messages") or []
        return messages


def receives_for(options: Read, rows: Rows, on_elasticq: bool, is_light: bool) -> Receives:
    """Return the parameters of receives. Page size and wait time default to what server and client allow."""
    extended = on_elasticq and is_light
    page_max = LIGHT_PAGE if extended else BOTO3_PAGE
    wait_s = options.wait_time_seconds
    if wait_s < 0:
        wait_s = 0 if on_elasticq else AWS_WAIT_S
    return Receives(
        tuple(rows.system_attributes),
        rows.wants_attributes(options.include_attributes),
        min(options.page_size or page_max, page_max),
        int(wait_s),
        extended,
    )


def gathered(pages: Iterator[list[Message]], count: int) -> Iterator[list[Message]]:
    """Yield the pages, joined into lists of at least ``count`` messages; the last list may be shorter.

    A record batch of ten rows costs as much as one of a thousand.
    """
    kept: list[Message] = []
    for page in pages:
        kept += page
        if len(kept) >= count:
            yield kept
            kept = []
    if kept:
        yield kept
