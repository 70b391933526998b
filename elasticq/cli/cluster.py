"""The commands ``elasticq cluster``: they show a cluster and give orders to its master, through the admin ports."""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from elasticq.cli import data
from elasticq.cli.admin_options import add_admin_options, admin_client, run_asking
from elasticq.cli.show import table
from elasticq.cli.verify import verify

STALE_MS: Final = 1_500  # heartbeats come every 100

_STATE: Final = ("NAME", "ROLE", "VOTER", "LINKED", "LAG", "MEMBER")
_PLACES: Final = ("NAME", "PEERS", "SQS", "ADMIN")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    status = _add(commands, "status", "show the cluster as one member sees it", _status)
    status.add_argument("--json", action="store_true", help="print the answer as JSON")
    for name, words in (
        ("add", "make the learner MEMBER a voter"),
        ("remove", "remove the voter MEMBER, dead or alive"),
        ("replace", "make the learner MEMBER a voter in place of the dead voter with the same name"),
    ):
        _add(commands, name, words, _order).add_argument("member", metavar="MEMBER", help="its --node-id or member id")
    transfer = _add(
        commands, "transfer", "hand the mastership over to MEMBER, or the voter with the newest log", _order
    )
    transfer.add_argument("member", nargs="?", default="", metavar="MEMBER")
    check = _add(commands, "verify", "compare the rows of all members, each part at one place in the log", _verify)
    words = "wait so long for the slowest member (300)"
    check.add_argument("--wait-s", type=float, default=300, metavar="S", help=words)
    _add(commands, "events", "show the latest events of a member: elections, links, disks, purges, deletions", _events)
    words = "make DIR of a stopped server a cluster of one, if most members are lost"
    force = commands.add_parser("force-new", help=words)
    force.add_argument("directory", type=Path, metavar="DIR")
    force.add_argument("--yes", action="store_true", help="do not ask")
    force.set_defaults(run=data.force_new)


def _add(commands: Any, name: str, words: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=words)
    add_admin_options(parser)
    parser.set_defaults(run=lambda options: run_asking(lambda: int(run(options)), options), order=name)
    return parser


def _order(options: argparse.Namespace) -> int:
    print(admin_client(options).order(options.order, options.member))
    return 0


def _verify(options: argparse.Namespace) -> int:
    equal, line = verify(admin_client(options), options.wait_s)
    print(line)
    return 0 if equal else 1


def _events(options: argparse.Namespace) -> int:
    """Print the events, the newest last, as in a log."""
    for each in reversed(admin_client(options).events()):
        at = datetime.fromtimestamp(each["time_ms"] / 1_000, UTC)
        print(f"{at:%Y-%m-%d %H:%M:%S} UTC  {each['level']:<7}  {each['event']}: {each['text']}")
    return 0


def _status(options: argparse.Namespace) -> int:
    seen = admin_client(options).view()
    if options.json:
        print(json.dumps(seen, indent=2))
    else:
        _describe(seen)
    return 0


def _describe(seen: dict[str, Any]) -> None:
    """Print the state of the member that was asked, then the states and the addresses of all members."""
    state = "ready" if seen["ready"] else f"not ready: {seen['reason']}"
    head = [
        f"{seen['node']} is {seen['role']}, {state}",
        f"cluster {seen['cluster'] or '(none yet)'}  master {seen['master'] or '(none)'}  term {seen['term']}"
        f"  commit {seen['commit']}  applied {seen['applied']}",
    ]
    if seen["stale_ms"] > STALE_MS:
        head.append(f"this member has not heard from a master for {seen['stale_ms'] / 1_000:g} s: the rest may be old")
    if seen["discarded"]:
        head.append(f"entries discarded for those of a newer master, though acknowledged: {seen['discarded']}")
    if seen.get("proxies"):
        head.append(f"proxies linked: {', '.join(seen['proxies'])}")
    print("\n".join(head), end="\n\n")
    table(_STATE, [_state(member) for member in seen["members"]])
    print()
    table(_PLACES, [_places(member) for member in seen["members"]], _PLACES[1:])
    for member in seen["members"]:
        if member["replaces"]:
            print(f"{member['name']} has a new disk: elasticq cluster replace {member['name']}")


def _state(member: dict[str, Any]) -> tuple[str, ...]:
    return (
        member["name"],
        member["role"],
        "yes" if member["voter"] else "no",
        "yes" if member["linked"] else "no",
        "?" if member["lag"] is None else str(member["lag"]),
        member["id"],
    )


def _places(member: dict[str, Any]) -> tuple[str, ...]:
    return (member["name"], member["address"] or "-", member["http"] or "-", member["admin"] or "-")
