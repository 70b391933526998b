"""The background work of a member as people can see it. It reads known facts and changes nothing."""

from collections.abc import Mapping
from itertools import islice

from msgspec import Struct

from elasticq.engine.state import State
from elasticq.node.membership.members import name_of
from elasticq.replication.progress import Progress

MOVE, DELIVERY, REMOVAL, RECLAIM, SWEEP, TRANSFER, FETCH = (
    "move",
    "delivery",
    "removal",
    "reclaim",
    "sweep",
    "transfer",
    "fetch",
)


class Task(Struct, gc=False):
    """One piece of work that continues in steps.

        move        a message move task; done, left: messages; rate: messages a second at most, 0: unlimited
        delivery    a publish to more subscriptions than one entry holds; left: subscriptions without their copy
        removal     the removal of the subscriptions of deleted topics; left: how many
        reclaim     the release of the memory of purged messages; left: messages and rows of messages
        sweep       the removal of expired messages, of which more wait than one step removes
        transfer    the state goes to a member that needs entries before the log's begin; left: entries to catch up
        fetch       this member fetches the state from another one

    owner, name: of the queue or topic; only the name of a member.
    to: the ARN of the destination of a move; empty if each message returns to its source.
    A field that a kind does not have is None.
    """

    kind: str
    owner: str = ""
    name: str = ""
    to: str = ""
    done: int | None = None
    left: int | None = None
    rate: int | None = None
    since_ms: int | None = None


def of_state(state: State, limit: int) -> list[Task]:
    """Return up to ``limit`` tasks of each kind that every member knows of and the master carries out."""
    tasks = [
        Task(
            MOVE,
            move.account,
            move.source_arn.rpartition(":")[2],
            move.destination_arn,
            move.moved,
            max(0, move.to_move - move.moved),
            move.rate,
            move.started_ms,
        )
        for move in islice(state.moving.values(), limit)
    ]
    topics = state.topics
    for publish in islice(state.publishes.values(), limit):
        topic = topics.by_number.get(publish.topic)
        if topic is not None and topic.row is not None:
            owner, name = topic.row.account, topic.row.name
            tasks.append(Task(DELIVERY, owner, name, left=len(publish.waiting), since_ms=publish.published_ms))
    if topics.orphans:
        orphans = islice(topics.orphans.values(), limit)
        tasks.append(Task(REMOVAL, left=sum(len(topic.subscriptions) for topic in orphans)))
    if state.trash:
        purged = [messages for _, messages in islice(state.trash, limit)]
        tasks.append(Task(RECLAIM, left=sum(len(each.contents) + len(each.rows) for each in purged)))
    return tasks


def of_member(
    followers: Mapping[str, Progress], commit_index: int, source: str | None, *, is_sweep_behind: bool
) -> list[Task]:
    """Return the tasks that only this member knows of.

    followers: those of a master.
    source: the member whose snapshot this member fetches, if any.
    """
    tasks = [
        Task(TRANSFER, name=name_of(member), left=max(0, commit_index - progress.match_index))
        for member, progress in followers.items()
        if progress.offered_index
    ]
    if source is not None:
        tasks.append(Task(FETCH, name=name_of(source)))
    if is_sweep_behind:
        tasks.append(Task(SWEEP))
    return tasks
