"""A client of one member's admin port: what it and the other members see of their cluster, and orders to the master."""

from typing import Any, Final
from urllib.parse import quote

from elasticq.cli.ask import Answer, Unreachable, ask

ADMIN_PORT: Final = 9325
STATUS_S: Final = 8
ORDER_S: Final = 70
"""A little more than the admin port itself waits for another member (admin/asking.py)."""
NOT_ASKED: Final = 501
NO_ANSWER: Final = 502
BUSY: Final = 503


class Failure(Exception):
    """The order was not done, or nobody knows; the text is for the operator."""


class AdminClient:
    """``url``: of the admin port; ``token``: empty where the port wants none."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self._token = token

    def view(self) -> dict[str, Any]:
        """The member's page /cluster. Raises BadUrl, Unreachable, Failure."""
        return self._page(self._get("/cluster"))

    def events(self) -> list[dict[str, Any]]:
        """What the member's log told last, the newest first. Raises as ``view``."""
        answer = self._get("/cluster/events")
        if "events" not in answer.document:
            raise Failure(self._refusal(answer))
        found: list[dict[str, Any]] = answer.document["events"]
        return found

    def view_of(self, seen: dict[str, Any], member_id: str) -> dict[str, Any]:
        """The page /cluster of the member with this id; ``seen``: the page of the member that is asked.

        That one asks the other over their link. Where a version is too old for that, the other one's admin port is
        asked, and must be answered by that member. Raises as ``view``.
        """
        if seen["member"] == member_id:
            return self.view()
        if seen.get("relays"):
            answer = self._get(f"/cluster/members/{quote(member_id, safe='')}")
            if answer.status != NOT_ASKED:
                if answer.status in (NO_ANSWER, BUSY):
                    raise Unreachable(self._refusal(answer))
                return _checked(self._page(answer), member_id, f"the link of {seen['node']}")
        return self._directly(seen, member_id).view()

    def order(self, order: str, member: str = "") -> str:
        """Give an order to the master that this member knows; return what it did. Raises as ``view``."""
        seen = self.view()
        if seen["master"] is None:
            raise Failure(f"{seen['node']} knows no master: {seen['reason'] or 'wait for an election'}")
        answer = None
        if seen["role"] == "master" or seen.get("relays"):
            answer = self._post(order, member)
        if answer is None or answer.status == NOT_ASKED:  # nothing was done yet
            answer = self._directly(seen, master_of(seen))._post(order, member)
        if answer.status == 200 and "done" in answer.document:
            return str(answer.document["done"])
        raise Failure(self._refusal(answer))

    def _get(self, path: str) -> Answer:
        return ask(self.url, "GET", path, STATUS_S, port=ADMIN_PORT, token=self._token)

    def _post(self, order: str, member: str) -> Answer:
        document = {"order": order, "member": member} if member else {"order": order}
        return ask(self.url, "POST", "/cluster/orders", ORDER_S, document, port=ADMIN_PORT, token=self._token)

    def _page(self, answer: Answer) -> dict[str, Any]:
        if answer.status in (401, 403) or (answer.status != 200 and "error" in answer.document):
            raise Failure(self._refusal(answer))
        if answer.status != 200 or "members" not in answer.document:
            raise Failure(f"{self.url} is no admin port of elasticq (HTTP {answer.status})")
        return answer.document

    def _directly(self, seen: dict[str, Any], member_id: str) -> "AdminClient":
        """A client of another member's own admin port, which that member itself answers."""
        row = next((row for row in seen["members"] if row["id"] == member_id), None)
        if row is None or not row["admin"]:
            name = member_id if row is None else row["name"]
            raise Failure(f"{name} has no admin port that is known here: ask it with --admin URL")
        client = AdminClient(str(row["admin"]), self._token)
        _checked(client.view(), member_id, client.url)
        return client

    def _refusal(self, answer: Answer) -> str:
        told = answer.document.get("refused") or answer.document.get("error")
        return str(told) if told else f"{self.url} answers HTTP {answer.status}"


def master_of(seen: dict[str, Any]) -> str:
    """Return the id of the master that a member's page tells of. Raises Failure."""
    if seen["role"] == "master":
        return str(seen["member"])
    found = [str(row["id"]) for row in seen["members"] if row["role"] == "master"]
    if seen["master"] is None or not found:
        raise Failure(f"{seen['node']} knows no master: {seen['reason'] or 'wait for an election'}")
    return found[0]


def _checked(seen: dict[str, Any], member_id: str, where: str) -> dict[str, Any]:
    """Return the page if it is that of the member that was meant. Raises Failure."""
    if seen.get("member") == member_id:
        return seen
    name = member_id.rpartition("-")[0] or member_id
    raise Failure(
        f"{where} leads to {seen.get('node')} ({seen.get('member')}), and not to {name} ({member_id}): admin.host of "
        f"{name} must be an address that leads there, or bring all members to one version"
    )
