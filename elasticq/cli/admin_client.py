"""A client of one member's admin port: the views of its cluster's members, and orders to the master."""

from typing import Any, Final
from urllib.parse import quote

from elasticq.cli.ask import Answer, Unreachable, ask, ask_bytes

ADMIN_PORT: Final = 9325
STATUS_S: Final = 8
ORDER_S: Final = 70
"""A little more than the time that the admin port waits for another member (admin/asking.py)."""
NO_ANSWER: Final = 502
BUSY: Final = 503


class Failure(Exception):
    """An order that was not executed, or whose result is unknown. The text is for the operator."""


class AdminClient:
    """A client of the admin port at ``url``. token: empty if the port needs none."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self._token = token

    def view(self) -> dict[str, Any]:
        """Return the member's page /cluster. Raise BadUrl, Unreachable or Failure if there is none."""
        return self._page(self._get("/cluster"))

    def events(self) -> list[dict[str, Any]]:
        """Return the latest events of the member, the newest first. Raise the errors of ``view``."""
        answer = self._get("/cluster/events")
        if "events" not in answer.document:
            raise Failure(self.refusal(answer))
        found: list[dict[str, Any]] = answer.document["events"]
        return found

    def view_of(self, seen: dict[str, Any], member_id: str) -> dict[str, Any]:
        """Return the page /cluster of the member with this id. seen: the page of this client's member.

        This client's member asks the other one over their link. Raise the errors of ``view``.
        """
        if seen["member"] == member_id:
            return self.view()
        answer = self._get(f"/cluster/members/{quote(member_id, safe='')}")
        if answer.status in (NO_ANSWER, BUSY):
            raise Unreachable(self.refusal(answer))
        return _checked(self._page(answer), member_id, f"the link of {seen['node']}")

    def order(self, order: str, member: str = "") -> str:
        """Give an order to the master that this member knows. Return the result. Raise the errors of ``view``."""
        seen = self.view()
        if seen["master"] is None:
            raise Failure(f"{seen['node']} knows no master: {seen['reason'] or 'wait for an election'}")
        answer = self._post(order, member)
        if answer.status == 200 and "done" in answer.document:
            return str(answer.document["done"])
        raise Failure(self.refusal(answer))

    def overview(self) -> dict[str, Any]:
        """Return the state of the cluster and what needs attention in it. Raise the errors of ``view``."""
        answer = self._get("/api/attention")
        if "findings" not in answer.document:
            raise Failure(self.refusal(answer))
        return answer.document

    def queues(self) -> list[dict[str, Any]]:
        """Return the queues with their counts and rates. Raise the errors of ``view``."""
        answer = self._get("/api/queues")
        if "queues" not in answer.document:
            raise Failure(self.refusal(answer))
        found: list[dict[str, Any]] = answer.document["queues"]
        return found

    def begin_backup(self, index: int | None = None) -> Answer:
        """Ask the member to make a backup, and return its answer. Raise BadUrl or Unreachable.

        index: None in the first request. If the member answers 202 because it is not ready, the index in that answer.
        """
        wanted = {} if index is None else {"index": index}
        return ask(self.url, "POST", "/backups", ORDER_S, wanted, port=ADMIN_PORT, token=self._token)

    def backup_part(self, name: str, offset: int) -> bytes:
        """Return the part of a backup that begins at ``offset``, empty at its end. Raise the errors of ``view``."""
        path = f"/backups/{quote(name, safe='')}?offset={offset}"
        status, body = ask_bytes(self.url, "GET", path, STATUS_S, port=ADMIN_PORT, token=self._token)
        if status != 200:
            raise Failure(f"{self.url} answers HTTP {status} to a request for the rest of the backup: it restarted")
        return body

    def _get(self, path: str) -> Answer:
        return ask(self.url, "GET", path, STATUS_S, port=ADMIN_PORT, token=self._token)

    def _post(self, order: str, member: str) -> Answer:
        document = {"order": order, "member": member} if member else {"order": order}
        return ask(self.url, "POST", "/cluster/orders", ORDER_S, document, port=ADMIN_PORT, token=self._token)

    def _page(self, answer: Answer) -> dict[str, Any]:
        if answer.status in (401, 403) or (answer.status != 200 and "error" in answer.document):
            raise Failure(self.refusal(answer))
        if answer.status != 200 or "members" not in answer.document:
            raise Failure(f"{self.url} is not an admin port of elasticq (HTTP {answer.status})")
        return answer.document

    def refusal(self, answer: Answer) -> str:
        """Return why the member refused a request, for the operator."""
        reason = answer.document.get("refused") or answer.document.get("error")
        return str(reason) if reason else f"{self.url} answers HTTP {answer.status}"


def master_of(seen: dict[str, Any]) -> str:
    """Return the id of the master in a member's page. Raise Failure if it has none."""
    if seen["role"] == "master":
        return str(seen["member"])
    found = [str(row["id"]) for row in seen["members"] if row["role"] == "master"]
    if seen["master"] is None or not found:
        raise Failure(f"{seen['node']} knows no master: {seen['reason'] or 'wait for an election'}")
    return found[0]


def _checked(seen: dict[str, Any], member_id: str, where: str) -> dict[str, Any]:
    """Return the page if it is that of the member with this id, else raise Failure."""
    if seen.get("member") == member_id:
        return seen
    name = member_id.rpartition("-")[0] or member_id
    raise Failure(
        f"{where} leads to {seen.get('node')} ({seen.get('member')}), not to {name} ({member_id}): set admin.host of "
        f"{name} to an address that leads to it, or upgrade all members to one version"
    )
