"""A client of one member's admin port: what that member sees of its cluster, who is the master, and orders to it."""

from typing import Any, Final

from elasticq.cli.ask import Answer, ask

ADMIN_PORT: Final = 9325
STATUS_S: Final = 5
ORDER_S: Final = 65
"""A little more than the admin port itself waits (admin/app.py)."""


class Failure(Exception):
    """The order was not done, or nobody knows; the text is for the operator."""


class AdminClient:
    """``url``: of the admin port; ``token``: empty where the port wants none."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self._token = token

    def view(self) -> dict[str, Any]:
        """The member's page /cluster. Raises BadUrl, Unreachable, Failure."""
        answer = ask(self.url, "GET", "/cluster", STATUS_S, port=ADMIN_PORT, token=self._token)
        if answer.status in (401, 403):
            raise Failure(self._refusal(answer))
        if answer.status != 200 or "members" not in answer.document:
            raise Failure(f"{self.url} is no admin port of elasticq (HTTP {answer.status})")
        return answer.document

    def master(self) -> "AdminClient":
        """A client of the master that this member knows. Raises as ``view``."""
        seen = self.view()
        if seen["role"] == "master":
            return self  # also where its own URL is one that only the other members reach
        if seen["master"] is None:
            raise Failure(f"{seen['node']} knows no master: {seen['reason'] or 'wait for an election'}")
        if not seen["master_admin"]:
            raise Failure(f"the admin port of the master {seen['master']} is not known: ask it with --admin URL")
        return self.to(str(seen["master_admin"]))

    def to(self, url: str) -> "AdminClient":
        """A client of another member of the same cluster."""
        return AdminClient(url, self._token)

    def order(self, order: str, member: str = "") -> str:
        """Give an order to this member, which must be the master; return what it did. Raises as ``view``."""
        document = {"order": order, "member": member} if member else {"order": order}
        answer = ask(self.url, "POST", "/cluster/orders", ORDER_S, document, port=ADMIN_PORT, token=self._token)
        if answer.status == 200 and "done" in answer.document:
            return str(answer.document["done"])
        raise Failure(self._refusal(answer))

    def _refusal(self, answer: Answer) -> str:
        told = answer.document.get("refused") or answer.document.get("error")
        return str(told) if told else f"{self.url} answers HTTP {answer.status}"
