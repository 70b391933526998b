"""The light client of a whole cluster, for the option ``endpoints``."""

from collections.abc import Sequence

from elasticq.client.connection import Answer
from elasticq.client.credentials import UNSIGNED
from elasticq.client.endpoints import Endpoints
from elasticq.client.errors import Unreachable
from elasticq.client.sqs import Sqs


class Anywhere(Sqs):
    """The light client of a cluster. After no answer or a 5xx status, an attempt goes to the next member.

    All attempts of a call have the same invocation id, so the cluster executes it once.
    """

    def __init__(self, clients: Sequence[Sqs]) -> None:
        """Prepare a client that uses the others, one for each member, with the time for retries of the first."""
        super().__init__(clients[0].endpoint, clients[0].region, UNSIGNED, retry_s=clients[0].retry_s)
        self._clients = {client.endpoint.rstrip("/"): client for client in clients}
        self._endpoints = Endpoints(clients[0].endpoint, self._clients, ())

    def _attempt(self, action: str, body: bytes, invocation_id: bytes, wait_s: float) -> Answer:
        endpoint = self._endpoints.current
        try:
            answer = self._clients[endpoint]._attempt(action, body, invocation_id, wait_s)
        except Unreachable:
            self._endpoints.leave(endpoint)
            raise
        if answer.status >= 500:
            self._endpoints.leave(endpoint)
        return answer

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
