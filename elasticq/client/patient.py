"""A wrapper for boto3's SQS client: its calls wait while a server or a whole cluster is away for minutes.

A plain boto3 client gives up within a tenth of a second. The wrapper tries a call at one endpoint after another, until
it is answered or its time is over. All tries have the same ``amz-sdk-invocation-id``. So elasticq treats them as one
call with one effect, within the five minutes for which it remembers the id. Sends to one message group of a FIFO queue
stay in the order in which they were called, also between threads.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from time import sleep
from typing import Any, TypeVar, cast

from elasticq.client.endpoints import Endpoints
from elasticq.client.patience import Call, Patience, check_length

Client = TypeVar("Client", bound=Any)


def wrap(
    client: Client,
    *,
    endpoints: Iterable[str] = (),
    admin: Iterable[str] = (),
    max_wait_s: float = 600,
    verify: bool | str = True,
) -> Client:
    """Return an object with the methods of ``client``, a boto3 SQS client, whose calls wait for up to ``max_wait_s``.

    endpoints: URLs of SQS ports that are tried in turn, after the client's own. admin: URLs of admin ports. The first
    call and each failed one ask one of them for the members of its cluster, at most once in some seconds. verify: for
    the certificates of admin ports, as in boto3. An error that no retry can avoid is raised at once.
    """
    known = Endpoints(client.meta.endpoint_url, endpoints, admin, verify)
    return cast(Client, _Patient(client, Patience(client, known, max_wait_s)))


class _Patient:
    def __init__(self, client: Any, patience: Patience) -> None:
        self._client = client
        self._patience = patience
        client.meta.events.register("after-call.sqs", check_length, unique_id="elasticq-check-length")

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in self._patience.operations:
            return found

        @wraps(found)
        def call(**members: Any) -> Any:
            made, lines = Call(self._patience, name, members), self._patience.lines
            try:
                if made.place is not None:
                    lines.join(made.place)
                    made.place.turn.result()
                return self._until_answered(found, made)
            finally:
                made.leave(lines)

        return call

    def get_paginator(self, operation_name: str) -> Any:
        """Return the client's paginator. It fetches pages with the methods of its ``self``: the patient ones."""
        return type(self._client).get_paginator(self, operation_name)

    def _until_answered(self, method: Callable[..., Any], call: Call) -> Any:
        endpoints = self._patience.endpoints
        if endpoints.is_new:
            endpoints.learn()
        while True:
            try:
                with call.attempt():
                    answer = method(**call.members)
            except Exception as failure:
                pause_s = call.failed(failure)
            else:
                pause_s = call.answered(answer)
            if pause_s is None:
                return call.answer
            endpoints.learn()
            endpoints.leave(call.endpoint)
            sleep(pause_s)
