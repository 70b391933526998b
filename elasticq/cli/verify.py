"""The command ``elasticq cluster verify``: it compares the rows of all members, in parts.

Each part is an entry in the log. When a member applies that entry, it hashes a part of its rows. So all hashes of a
part are of the same state, even if members lag. After the last part, a member shows the digest of all parts by the log
index of the first one. The member at ``--admin`` asks the others over its links. Each answer must come from the member
that was asked.
"""

import time
from typing import Any, Final

from elasticq.cli.admin_client import AdminClient, Failure, master_of
from elasticq.cli.ask import BadUrl, Unreachable
from elasticq.node.digests import INCOMPLETE

PAUSE_S: Final = 0.1


def verify(client: AdminClient, wait_s: float) -> tuple[bool, str]:
    """Return whether all linked voters have equal rows, and a line for the operator.

    Raise BadUrl, Unreachable or Failure if a digest cannot be had within ``wait_s``.
    """
    done = client.order("verify")
    index = done.rpartition(" ")[2]  # "digest at 17"
    deadline_s = time.monotonic() + wait_s
    seen = _of_master(client)
    term = seen["term"]
    while index not in seen["digests"]:
        _pause(deadline_s, "the master has no digest")
        seen = _of_master(client)
        if seen["term"] != term:
            raise Failure("another member became the master during the comparison: verify again")
    return _compare(client, seen, int(index), deadline_s)


def _of_master(client: AdminClient) -> dict[str, Any]:
    seen = client.view()
    return client.view_of(seen, master_of(seen))


def _compare(client: AdminClient, seen: dict[str, Any], index: int, deadline_s: float) -> tuple[bool, str]:
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
        raise Failure(f"{', '.join(unfinished)} restarted or took a snapshot during the comparison: verify again")
    note = f" (not linked, not compared: {', '.join(skipped)})" if skipped else ""
    if len(set(digests.values())) == 1:
        return True, f"equal at index {index}: {', '.join(digests)}{note}"
    listed = ", ".join(f"{name} {digest}" for name, digest in digests.items())
    return False, f"different at index {index}: {listed}{note}"


def _digest_of(client: AdminClient, member: dict[str, Any], index: int, deadline_s: float) -> str:
    """Return a member's digest at ``index``. A member that lags or restarts has time until the deadline."""
    name = member["name"]
    while True:
        reason = f"{name} has not reached index {index}"
        try:
            digest = client.view_of(client.view(), member["id"])["digests"].get(str(index))
            if digest is not None:
                return str(digest)
        except (Unreachable, BadUrl) as error:
            reason = str(error)
        _pause(deadline_s, reason)


def _pause(deadline_s: float, reason: str) -> None:
    """Sleep until the next attempt. Raise Failure with ``reason`` if that would be after the deadline."""
    if time.monotonic() + PAUSE_S > deadline_s:
        raise Failure(f"{reason} within --wait-s")
    time.sleep(PAUSE_S)
