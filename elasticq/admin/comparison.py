"""The comparison of all members' rows, from the order until the digests of all linked voters can be compared."""

import asyncio
from typing import Any, Final

import msgspec

from elasticq.admin import asking
from elasticq.admin.source import AdminSource
from elasticq.node.digests import DAMAGED, INCOMPLETE

WAIT_S: Final = 60.0
PAUSE_S: Final = 0.2


async def compare(source: AdminSource, done: str) -> tuple[bool, str]:
    """Return whether all linked voters have equal rows, and a sentence for the operator.

    ``done``: the answer to the order ``verify``, which ends with the log index of the comparison. Wait at most WAIT_S
    until the members have reached it.
    """
    index = done.rpartition(" ")[2]
    at = f"(entry {int(index):,} of the log)" if index.isdigit() else ""
    status, loop = source.status(), asyncio.get_running_loop()
    voters = [each for each in status.members if each.voter]
    asked = [each for each in voters if each.is_linked or each.id == status.member_id]
    absent = [each.name for each in voters if each not in asked]
    if len(voters) < 2:
        return True, "This server is not in a cluster: there is nothing to compare."
    until_s, digests = loop.time() + WAIT_S, dict[str, str]()
    while True:
        for each in asked:
            digest = digests.get(each.name) or _digest(await asking.page_of(source, each.id), index)
            if digest:
                digests[each.name] = digest
        if len(digests) == len(asked):
            break
        if loop.time() > until_s:
            late = ", ".join(each.name for each in asked if each.name not in digests)
            return False, f"{late} did not finish within {WAIT_S:g} s {at}. Nothing is known to differ."
        await asyncio.sleep(PAUSE_S)
    return verdict(digests, absent, at)


def verdict(digests: dict[str, str], absent: list[str], at: str = "") -> tuple[bool, str]:
    """Return whether the digests, by member, are equal, and a sentence. ``absent``: the members without a link."""
    note = f" Not compared, because there is no link to them: {', '.join(absent)}." if absent else ""
    damaged = [name for name, digest in digests.items() if digest == DAMAGED]
    if damaged:
        return False, f"{', '.join(damaged)} cannot read some of its rows {at}.{note}"
    unfinished = [name for name, digest in digests.items() if digest == INCOMPLETE]
    if unfinished:
        return False, f"{', '.join(unfinished)} restarted during the comparison: verify again.{note}"
    if len(set(digests.values())) == 1:
        return True, f"All rows are equal on {', '.join(sorted(digests))} {at}.{note}"
    groups: dict[str, list[str]] = {}
    for name, digest in sorted(digests.items()):
        groups.setdefault(digest, []).append(name)
    listed = "; ".join(f"{', '.join(names)} have {digest[:8]}" for digest, names in groups.items())
    return False, f"Rows differ {at}: {listed}.{note}"


def _digest(answer: tuple[int, bytes], index: str) -> str:
    status, body = answer
    document: dict[str, Any] = msgspec.json.decode(body)
    return str(document["digests"].get(index, "")) if status == 200 else ""
