"""elasticq cluster verify: are the rows of all members the same?

The rows are compared in parts, and each part is an entry in the log. Each member hashes a part of its rows when it
applies that entry, so members are compared at the same state however far apart they are. When the last part is
applied, a member shows the digest of all parts by the log index of the first one. The member that is asked asks the
others over its links, and each answer must be of the member that was meant.
"""

import time
from typing import Any, Final

from elasticq.cli.admin_client import AdminClient, Failure, master_of
from elasticq.cli.ask import BadUrl, Unreachable
from elasticq.node.digests import INCOMPLETE

PAUSE_S: Final = 0.1


def verify(client: AdminClient, wait_s: float) -> tuple[bool, str]:
    """Return whether all linked voters are equal, and a line for the operator. Raises BadUrl, Unreachable, Failure."""
    done = client.order("verify")
    index = done.rpartition(" ")[2]  # "digest at 17"
    deadline_s = time.monotonic() + wait_s
    seen = _of_master(client)
    term = seen["term"]
    while index not in seen["digests"]:
        _pause(deadline_s, "the master noted no digest")
        seen = _of_master(client)
        if seen["term"] != term:
            raise Failure("the mastership moved while the rows were compared: verify again")
    return _judge(client, seen, int(index), deadline_s)


def _of_master(client: AdminClient) -> dict[str, Any]:
    seen = client.view()
    return client.view_of(seen, master_of(seen))


def _judge(client: AdminClient, seen: dict[str, Any], index: int, deadline_s: float) -> tuple[bool, str]:
    digests = {str(seen["node"]): str(seen["digests"][str(index)])}
    skipped: list[str] = []
    for member in seen["members"]:
        if member["id"] == seen["member"] or not member["voter"]:
            continue
        if member["linked"]:
            digests[member["name"]] = _digest_of(client, member, index, deadline_s)
        else:
            skipped.append(member["name"])
    unfinished = [name for name, digest in digests.items() if digest == INCOMPLETE]
    if unfinished:
        raise Failure(
            f"{', '.join(unfinished)} restarted or took a snapshot while the rows were compared: verify again"
        )
    told = f" (not linked, not compared: {', '.join(skipped)})" if skipped else ""
    if len(set(digests.values())) == 1:
        return True, f"equal at index {index}: {', '.join(digests)}{told}"
    listed = ", ".join(f"{name} {digest}" for name, digest in digests.items())
    return False, f"different at index {index}: {listed}{told}"


def _digest_of(client: AdminClient, member: dict[str, Any], index: int, deadline_s: float) -> str:
    """Return a member's digest at ``index``; one that lags, or restarts, gets until the deadline."""
    name = member["name"]
    while True:
        reason = f"{name} has not come to index {index}"
        try:
            digest = client.view_of(client.view(), member["id"])["digests"].get(str(index))
            if digest is not None:
                return str(digest)
        except (Unreachable, BadUrl) as error:
            reason = str(error)
        _pause(deadline_s, reason)


def _pause(deadline_s: float, reason: str) -> None:
    """Wait before the next look, or give up with ``reason``."""
    if time.monotonic() + PAUSE_S > deadline_s:
        raise Failure(f"{reason} in the time given")
    time.sleep(PAUSE_S)
