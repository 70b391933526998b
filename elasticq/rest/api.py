"""The input of the REST API's handlers: a request and its parameters."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from msgspec import Meta, Struct

from elasticq.model.commands import Command
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist, SqsError
from elasticq.model.limits import QUEUE_URL_CHARS_MAX
from elasticq.model.results import Result, StaleResult
from elasticq.rest.shapes import Server

Submit = Callable[[Command, str], Awaitable[Result | SqsError]]
"""A function that executes a command for the caller. The text is the id of the call: a repeat has no second effect."""
Known = TypeVar("Known", bound=Result)


class Parameter(NamedTuple):
    """A parameter of the URL's query.

    kind: string, integer or boolean. bound: the maximum length of a string, both ends of an integer.
    """

    name: str
    kind: str
    description: str
    bound: Meta = Meta()


class Request:
    """A request of the REST API.

    submit: executes a command. path: the values of the route's braces. query: the checked parameters by name.
    body: an object of the route's type, or None. clock: returns cluster time in milliseconds.
    entropy: returns random bytes, for new ids. is_doq: whether the request used a path of doq. servers: returns the
    members of the cluster.
    """

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
        servers: Callable[[], list[Server]] = list,
    ) -> None:
        self.submit = submit
        self.path = path
        self.query = query
        self.body = body
        self._clock = clock
        self.entropy = entropy
        self.is_doq = is_doq
        self.servers = servers

    @property
    def now_ms(self) -> int:
        """Return cluster time in milliseconds."""
        return self._clock()

    @property
    def queue(self) -> str:
        """Return the name or QueueUrl of the queue. Raise QueueDoesNotExist if it is too long for any queue."""
        name = self.path["queue"]
        if len(name) > QUEUE_URL_CHARS_MAX:
            raise QueueDoesNotExist
        return name

    @property
    def sequence(self) -> int:
        """Return the sequence of the message that the path names. Raise InvalidParameterValue if it is not valid."""
        text = self.path["id"]
        if not (text.isascii() and text.isdigit() and len(text) <= 19) or int(text) >= 1 << 63:
            raise InvalidParameterValue("The id of a message is the number in the answer to its send.")
        return int(text)

    async def do(self, command: Command, kind: type[Known], name: str = "") -> Known:
        """Return the result of a command. Raise the SqsError if the answer is one.

        kind: the class of the action's result. name: the id of the call, empty for none.
        """
        outcome = await self.submit(command, name)
        if isinstance(outcome, StaleResult):
            outcome = outcome.result
        if isinstance(outcome, SqsError):
            raise outcome
        assert isinstance(outcome, kind), "an action has one kind of result"
        return outcome


Answer = Struct | None
Handler = Callable[[Request], Awaitable[Answer]]
