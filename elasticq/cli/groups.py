"""The commands ``elasticq groups``: they show, create and change consumer groups, and move resources of consumers."""

import argparse
from typing import TYPE_CHECKING, Any, Final

from elasticq.cli.confirm import confirm
from elasticq.cli.parser import did_you_mean
from elasticq.cli.queues import URL_VARIABLE, Failure, Misuse, add_command, pages, run_with
from elasticq.cli.show import count, json_lines, one_line, outcome, table
from elasticq.model.group_figures import figures, held_by, shares_out

if TYPE_CHECKING:
    from elasticq.client import Sqs

SETTINGS: Final = ("SessionTimeoutMs", "RebalanceDelayMs", "MaxPerConsumer")


def add_groups(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add(commands, "ls", "list groups with the numbers of their resources and consumers", _ls)
    show = _add(commands, "show", "show a group: its settings, its consumers and what each holds", _show)
    show.add_argument("group", metavar="GROUP")
    change = _add(commands, "set", "create a group, or change it", _set)
    change.add_argument("group", metavar="GROUP", help="1 to 80 of A-Z a-z 0-9 _ . -")
    shared = change.add_mutually_exclusive_group()
    shared.add_argument("--queue", action="append", metavar="NAME", help="assign this queue; may be repeated")
    shared.add_argument("--prefix", metavar="PREFIX", help="assign all queues whose names begin so, later ones too")
    shared.add_argument("--partitions-of", metavar="QUEUE", help="assign the partitions of this queue")
    change.add_argument("--session-ms", type=int, metavar="MS", help="end a consumer's session after so long a silence")
    change.add_argument("--delay-ms", type=int, metavar="MS", help="wait so long for more changes before a rebalance")
    words = "a consumer holds at most so many; 0: no bound"
    change.add_argument("--max-per-consumer", type=int, metavar="N", help=words)
    move = _add(commands, "move", "assign a resource to another consumer", _move)
    move.add_argument("group", metavar="GROUP")
    move.add_argument("resource", metavar="RESOURCE", help="a queue's name, or NAME/K for its partition K")
    move.add_argument("consumer", metavar="CONSUMER", help="its id or its name, as show prints them")
    drain = _add(commands, "drain", "take all resources from a consumer, and assign it no others", _drain)
    drain.add_argument("group", metavar="GROUP")
    drain.add_argument("consumer", metavar="CONSUMER", help="its id or its name, as show prints them")
    delete = _add(commands, "delete", "delete a group: its consumers stop, its queues stay", _delete)
    delete.add_argument("group", metavar="GROUP")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _add(commands: Any, name: str, words: str, run: Any) -> argparse.ArgumentParser:
    parser = add_command(commands, name, words, URL_VARIABLE)
    parser.set_defaults(run=lambda options: run_with("Sqs", run, options))
    return parser


def _all(client: "Sqs") -> list[dict[str, Any]]:
    return list(pages(client.describe_groups, "Groups"))


def _one(client: "Sqs", name: str) -> dict[str, Any]:
    """Return the consumer group ``name``. Raise Failure, which suggests the most similar name, if there is none."""
    found = _all(client)
    for each in found:
        if each["GroupName"] == name:
            return each
    raise Failure(f"there is no group {name}{did_you_mean(name, [each['GroupName'] for each in found])}")


def _ls(client: "Sqs", options: argparse.Namespace) -> int:
    found = [figures(each) for each in _all(client)]
    if options.json:
        json_lines(found)
        return 0
    heads = ["NAME", "ASSIGNS", "GENERATION", "RESOURCES", "FREE", "CONSUMERS", "WITHOUT WORK"]
    table(heads, [[str(value) for value in each.values()] for each in found])
    return 0


def _show(client: "Sqs", options: argparse.Namespace) -> int:
    group = _one(client, options.group)
    if options.json:
        json_lines([group])
        return 0
    print(f"assigns {one_line(shares_out(group))}")
    for name in ("Generation", *SETTINGS, "Moves", "RebalancedMs"):
        if name in group:
            print(f"{name}={group[name]}")
    held = held_by(group)
    names = {each["ConsumerId"]: each.get("ConsumerName") or "" for each in group["Consumers"]}
    table(
        ["CONSUMER", "NAME", "WEIGHT", "HOLDS"],
        [
            [each["ConsumerId"], names[each["ConsumerId"]], str(each["Weight"]), str(held[each["ConsumerId"]])]
            for each in group["Consumers"]
        ],
    )
    table(
        ["RESOURCE", "STATE", "CONSUMER", "NAME", "TOKEN"],
        [
            [
                each["Resource"],
                each["State"],
                each.get("ConsumerId") or "",
                names.get(each.get("ConsumerId") or "", ""),
                str(each.get("Token") or ""),
            ]
            for each in group["Resources"]
        ],
    )
    return 0


def _set(client: "Sqs", options: argparse.Namespace) -> int:
    given = {
        "QueueNames": options.queue,
        "QueueNamePrefix": options.prefix,
        "PartitionsOf": options.partitions_of,
        "SessionTimeoutMs": options.session_ms,
        "RebalanceDelayMs": options.delay_ms,
        "MaxPerConsumer": options.max_per_consumer,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        raise Misuse("nothing to set: give --queue, --prefix or --partitions-of, or a setting to change")
    client.set_group(GroupName=options.group, **wanted)
    outcome(options.json, "group", options.group)
    return 0


def _consumer(client: "Sqs", options: argparse.Namespace) -> str:
    """Return the id of a consumer that is given by id or name. Raise Failure unless exactly one matches."""
    consumers, given = _one(client, options.group)["Consumers"], options.consumer
    ids = [each["ConsumerId"] for each in consumers]
    named = [each["ConsumerId"] for each in consumers if each.get("ConsumerName") == given]
    if given in ids:
        return str(given)
    if len(named) > 1:
        raise Failure(f"several consumers ({len(named)}) are named {given}: give the id of one, {' or '.join(named)}")
    if not named:
        known = ids + [each["ConsumerName"] for each in consumers if each.get("ConsumerName")]
        raise Failure(f"the group {options.group} has no consumer {given}{did_you_mean(given, known)}")
    return str(named[0])


def _move(client: "Sqs", options: argparse.Namespace) -> int:
    consumer = _consumer(client, options)
    client.move_resource(GroupName=options.group, Resource=options.resource, ConsumerId=consumer)
    outcome(options.json, "moved", options.resource)
    return 0


def _drain(client: "Sqs", options: argparse.Namespace) -> int:
    consumer = _consumer(client, options)
    client.drain_consumer(GroupName=options.group, ConsumerId=consumer)
    outcome(options.json, "drained", consumer)
    return 0


def _delete(client: "Sqs", options: argparse.Namespace) -> int:
    group = _one(client, options.group)
    if not options.yes:
        consumers = count(len(group["Consumers"]), "consumer")
        question = f"Delete the group {options.group}, which has {consumers}? Type the group's name:"
        confirm("the deletion of a group", question, options.group, "nothing was deleted")
    client.delete_group(GroupName=options.group)
    outcome(options.json, "deleted", options.group)
    return 0
