"""One request of the REST API as its handlers see it."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from msgspec import Meta, Struct

from elasticq.model.commands import Command
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist, SqsError
from elasticq.model.limits import QUEUE_URL_CHARS_MAX
from elasticq.model.results import Result, StaleResult

Submit = Callable[[Command, str], Awaitable[Result | SqsError]]
"""Executes a command for the caller. The text names the call, so that a second one with it has no second effect."""
Known = TypeVar("Known", bound=Result)


class Parameter(NamedTuple):
    """A parameter of the URL's query; kind: string, integer or boolean.

    bound: of a text its longest length, of an integer both ends.
    """

    name: str
    kind: str
    description: str
    bound: Meta = Meta()


class Request:
    """path: the values of the route's braces; query: by name, checked; body: as the route says, None without one.

    is_doq: it came by doq's path; entropy: for new ids; clock: tells cluster time.
    """

    __slots__ = ("_clock", "body", "entropy", "is_doq", "path", "query", "submit")

    def __init__(
        self,
        submit: Submit,
        path: dict[str, str],
        query: dict[str, Any],
        body: Any = None,
        *,
        clock: Callable[[], int] = int,
        entropy: Callable[[int], bytes] = bytes,
        is_doq: bool = False,
    ) -> None:
        self.submit = submit
        self.path = path
        self.query = query
        self.body = body
        self._clock = clock
        self.entropy = entropy
        self.is_doq = is_doq

    @property
    def now_ms(self) -> int:
        """Cluster time."""
        return self._clock()

    @property
    def queue(self) -> str:
        """The queue's name, which a QueueUrl may be. Raises QueueDoesNotExist for one that no queue can have."""
        name = self.path["queue"]
        if len(name) > QUEUE_URL_CHARS_MAX:
            raise QueueDoesNotExist
        return name

    @property
    def sequence(self) -> int:
        """The place of the message that the path names. Raises InvalidParameterValue."""
        text = self.path["id"]
        if not (text.isascii() and text.isdigit() and len(text) <= 19) or int(text) >= 1 << 63:
            raise InvalidParameterValue("The id of a message is a number, as the answer to its send tells it.")
        return int(text)

    async def do(self, command: Command, kind: type[Known], name: str = "") -> Known:
        """The result of a command. Raises the SqsError that it was answered."""
        outcome = await self.submit(command, name)
        if isinstance(outcome, StaleResult):
            outcome = outcome.result
        if isinstance(outcome, SqsError):
            raise outcome
        assert isinstance(outcome, kind), "an action has one kind of result"
        return outcome


Answer = Struct | None
Handler = Callable[[Request], Awaitable[Answer]]
