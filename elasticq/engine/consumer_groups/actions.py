"""The actions on consumer groups: settings, joins, heartbeats, leaves, moves, and descriptions."""

import re
from itertools import islice
from typing import Final

from msgspec.structs import replace

from elasticq.engine.consumer_groups.rebalance import STEP_MAX, AssignmentPlan
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.paging import read_token, token_of
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.consumer_group_index import Consumer, Group, Resource
from elasticq.engine.stored.consumer_group_rows import (
    LAST_TOKEN,
    TOKENS,
    WHOLE,
    ConsumerGroupDeleted,
    ConsumerGroupSet,
    ConsumerRemoved,
    ConsumerRenewed,
    ConsumerSet,
    GroupRebalanced,
    ResourceAssigned,
    ResourceFreed,
    TokensGiven,
)
from elasticq.engine.stored.contents import check_range
from elasticq.model import group_commands as g
from elasticq.model import limits
from elasticq.model.commands import Call
from elasticq.model.errors import (
    ElasticqGroupDoesNotExist,
    ElasticqUnknownConsumer,
    InvalidParameterValue,
    MissingParameter,
    OverLimit,
    quoted,
)
from elasticq.model.group_results import (
    FREE,
    HELD,
    REVOKING,
    ConsumerShown,
    GroupChangedResult,
    GroupJoinedResult,
    GroupShown,
    GroupsResult,
    GroupViewResult,
    HeldResource,
    ResourceShown,
)
from elasticq.model.names import queue_url
from elasticq.model.results import EmptyResult

_GROUP_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}\Z")
_QUEUE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}\Z")
_CONSUMER_NAME: Final = re.compile(r"[ -~]{0,256}\Z")
_CONSUMER_ID: Final = re.compile(r"[0-9a-f]{16}\Z")
_PARTITION: Final = re.compile(r"(.+)/(0|[1-9][0-9]{0,4})\Z")


# --- what commands name ---------------------------------------------------------------------


def _given(value: str | None, name: str) -> str:
    if not value:
        raise MissingParameter(f"The request must contain the parameter {name}.")
    return value


def _named_group(state: State, call: Call, name: str | None) -> Group:
    group = state.groups.names.get((call.account, _given(name, "GroupName")))
    if group is None:
        raise ElasticqGroupDoesNotExist
    return group


def _named_consumer(group: Group, consumer_id: str | None) -> Consumer:
    text = _given(consumer_id, "ConsumerId")
    consumer = group.consumers.get(int(text, 16)) if _CONSUMER_ID.match(text) else None
    if consumer is None:
        raise ElasticqUnknownConsumer
    return consumer


def consumer_id(number: int) -> str:
    return f"{number:016x}"


def resource_name(resource: Resource) -> str:
    name, partition = resource
    return name if partition == WHOLE else f"{name}/{partition}"


def _read_resource(text: str) -> Resource:
    found = _PARTITION.match(text)
    return (found[1], int(found[2])) if found else (text, WHOLE)


def _invalid(value: object, name: str, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"Value {quoted(str(value))} for parameter {name} is invalid. Reason: {reason}.")


def _checked(value: int | None, low: int, high: int, name: str, default: int) -> int:
    if value is None:
        return default
    check_range(value, low, high, name, f"Must be between {low} and {high}, if provided")
    return value


def draft_of(state: State, group: Group, now_ms: int) -> AssignmentPlan:
    """Return an empty plan for changes of a group."""
    return AssignmentPlan(group, last_token(state), now_ms)


def last_token(state: State) -> int:
    """Return the newest token or version that any group has issued; 0 if there is none."""
    given: TokensGiven | None = state.tables[TOKENS.name].get(LAST_TOKEN)
    if given is not None:
        return given.last
    # No token was issued, or a repair lost the row. So no known token or version may be issued again.
    versions = [each.row.version for each in state.groups.consumers.values()]
    return max([*state.groups.assignments, *versions], default=0)


# --- groups ---------------------------------------------------------------------------------


def set_group(state: State, call: Call, command: g.ElasticqSetGroup, context: ExecutionContext) -> Outcome:
    """Create a group or change its settings. Settings that are not given stay.

    The next step of background work rebalances the group.
    """
    name = _given(command.group_name, "GroupName")
    if not _GROUP_NAME.match(name):
        raise _invalid(name, "GroupName", "Must be 1 to 80 letters, digits, hyphens, underscores or dots")
    group = state.groups.names.get((call.account, name))
    old = None if group is None else group.row
    if old is None and len(state.groups.by_number) >= limits.CONSUMER_GROUPS_MAX:
        raise OverLimit(f"There are {limits.CONSUMER_GROUPS_MAX} consumer groups already.")
    row = _settings(command, old or ConsumerGroupSet(0, call.account, name, limits.SESSION_MS_DEFAULT, 0, 0, []))
    if group is None:
        row = replace(row, number=context.next_number())
        return GroupChangedResult(name, 1), [row, GroupRebalanced(row.number, 1, 1, 0, 0, 0, 0)]
    if row == old:
        return GroupChangedResult(name, group.status.generation), []
    generation = group.status.generation + 1
    started_ms = group.status.started_ms or context.now_ms
    due_ms = group.status.due_ms or context.now_ms + row.delay_ms
    status = replace(group.status, generation=generation, changed=generation, started_ms=started_ms, due_ms=due_ms)
    return GroupChangedResult(name, generation), [row, status]


def _settings(command: g.ElasticqSetGroup, old: ConsumerGroupSet) -> ConsumerGroupSet:
    names, prefix, partitions_of = command.queue_names, command.queue_name_prefix, command.partitions_of
    given = [each for each in (names, prefix, partitions_of) if each]
    if len(given) > 1 or not (given or old.number):
        raise InvalidParameterValue("One of QueueNames, QueueNamePrefix and PartitionsOf must be given.")
    for each in (*names, *([prefix] if prefix else []), *([partitions_of] if partitions_of else [])):
        if not _QUEUE_NAME.match(each):
            raise _invalid(each, "QueueNames", "Must be a queue's name, or the beginning of one")
    row = replace(
        old,
        session_ms=_checked(
            command.session_timeout_ms, limits.SESSION_MS_MIN, limits.SESSION_MS_MAX, "SessionTimeoutMs", old.session_ms
        ),
        delay_ms=_checked(
            command.rebalance_delay_ms, 0, limits.REBALANCE_DELAY_MS_MAX, "RebalanceDelayMs", old.delay_ms
        ),
        max_per_consumer=_checked(
            command.max_per_consumer, 0, limits.RESOURCES_MAX, "MaxPerConsumer", old.max_per_consumer
        ),
    )
    if not given:
        return row
    return replace(row, queue_names=list(dict.fromkeys(names)), prefix=prefix or "", partitions_of=partitions_of or "")


def delete_group(state: State, call: Call, command: g.ElasticqDeleteGroup, context: ExecutionContext) -> Outcome:
    """Delete a group. Its tokens are invalid at once; its consumers learn of it with their next heartbeat."""
    return EmptyResult(), removed_group(_named_group(state, call, command.group_name))


def removed_group(group: Group) -> list[m.Mutation]:
    """Return the mutations that delete a group. Background work removes rows beyond the bound of one entry."""
    return [*rows_of_gone(group), ConsumerGroupDeleted(group.row.number)]


def rows_of_gone(group: Group) -> list[m.Mutation]:
    """Return the mutations that remove the next rows of a deleted group: assignments, then consumers."""
    rows = list(islice(group.by_resource.values(), STEP_MAX))
    found: list[m.Mutation] = [ResourceFreed(row.token, row.queue_id) for row in rows]
    return found + [ConsumerRemoved(number) for number in islice(group.consumers, STEP_MAX - len(rows))]


# --- consumers ------------------------------------------------------------------------------


def join_group(state: State, call: Call, command: g.ElasticqJoinGroup, context: ExecutionContext) -> Outcome:
    group = _named_group(state, call, command.group_name)
    name = command.consumer_name or ""
    if not _CONSUMER_NAME.match(name):
        raise _invalid(name, "ConsumerName", "Must be up to 256 printable ASCII characters")
    weight = _checked(command.weight, 0, limits.CONSUMER_WEIGHT_MAX, "Weight", 1)
    if len(group.consumers) >= limits.CONSUMERS_MAX:
        raise OverLimit(f"The group has {limits.CONSUMERS_MAX} consumers already.")
    if len(state.groups.consumers) >= limits.CONSUMERS_TOTAL_MAX:
        raise OverLimit(f"There are {limits.CONSUMERS_TOTAL_MAX} consumers of groups already.")
    address = call.origin.source_ip if call.origin is not None else ""
    now_ms = context.now_ms
    number = context.next_number()
    plan = draft_of(state, group, now_ms)
    deadline_ms = now_ms + group.row.session_ms
    row = ConsumerSet(number, group.row.number, name, weight, now_ms, deadline_ms, plan.version(), address)
    plan.join(row)
    plan.share_out()
    return _joined(_planned_view(call, group, plan, number, plan.version())), plan.mutations


def heartbeat(state: State, call: Call, command: g.ElasticqHeartbeat, context: ExecutionContext) -> Outcome:
    """Renew the session of a consumer and release resources. The node delays the answer if the call may wait."""
    group = _named_group(state, call, command.group_name)
    consumer = _named_consumer(group, command.consumer_id)
    _checked(command.wait_time_seconds, 0, limits.WAIT_S_MAX, "WaitTimeSeconds", 0)
    now_ms = context.now_ms
    if not consumer.lives(state.grace, now_ms):
        plan = draft_of(state, group, now_ms)
        plan.remove(consumer)
        plan.share_out()
        return ElasticqUnknownConsumer(), plan.mutations
    number = consumer.row.number
    renewed = ConsumerRenewed(number, now_ms + group.row.session_ms)
    if not command.released:
        return view_of(call, group, consumer), [renewed]
    plan = draft_of(state, group, now_ms)
    plan.release(consumer, command.released)
    plan.share_out()
    version = plan.version() if plan.has_touched(number) else consumer.row.version
    return _planned_view(call, group, plan, number, version), [renewed, *plan.mutations]


def awaited_view(state: State, call: Call, context: ExecutionContext) -> Outcome:
    """Return the answer to a heartbeat that has waited: the consumer's current view.

    Raise ElasticqUnknownConsumer if its session is over.
    """
    command = call.command
    assert isinstance(command, g.ElasticqHeartbeat)
    group = _named_group(state, call, command.group_name)
    consumer = _named_consumer(group, command.consumer_id)
    if not consumer.lives(state.grace, context.now_ms):
        raise ElasticqUnknownConsumer
    return view_of(call, group, consumer), []


def leave_group(state: State, call: Call, command: g.ElasticqLeaveGroup, context: ExecutionContext) -> Outcome:
    group = _named_group(state, call, command.group_name)
    plan = draft_of(state, group, context.now_ms)
    plan.remove(_named_consumer(group, command.consumer_id))
    plan.share_out()
    return EmptyResult(), plan.mutations


def move_resource(state: State, call: Call, command: g.ElasticqMoveResource, context: ExecutionContext) -> Outcome:
    group = _named_group(state, call, command.group_name)
    text = _given(command.resource, "Resource")
    resource = _read_resource(text)
    if resource not in group.present:
        raise _invalid(text, "Resource", "The group has no such resource")
    consumer = _named_consumer(group, command.consumer_id)
    if not consumer.row.weight:
        raise _invalid(command.consumer_id, "ConsumerId", "The consumer has weight 0 and gets no resources")
    plan = draft_of(state, group, context.now_ms)
    plan.move(resource, consumer.row.number)
    plan.share_out()
    return GroupChangedResult(group.row.name, plan.status.generation), plan.mutations


def drain_consumer(state: State, call: Call, command: g.ElasticqDrainConsumer, context: ExecutionContext) -> Outcome:
    group = _named_group(state, call, command.group_name)
    consumer = _named_consumer(group, command.consumer_id)
    if not consumer.row.weight:
        return GroupChangedResult(group.row.name, group.status.generation), []
    plan = draft_of(state, group, context.now_ms)
    plan.weigh(consumer, 0)
    plan.share_out()
    return GroupChangedResult(group.row.name, plan.status.generation), plan.mutations


# --- views ----------------------------------------------------------------------------------


def view_of(call: Call, group: Group, consumer: Consumer) -> GroupViewResult:
    """Return the current view of a consumer: what it holds and what it must release."""
    held, revoking = list(consumer.held.values()), list(consumer.revoking.values())
    return _view(call, group, consumer.row.number, consumer.row.version, group.status.generation, held, revoking)


def joined_view(state: State, call: Call, number: int) -> GroupJoinedResult:
    """Return the view of a consumer that joined in an earlier attempt of the call.

    Raise ElasticqUnknownConsumer if it is gone.
    """
    consumer = state.groups.consumers.get(number)
    group = None if consumer is None else state.groups.by_number.get(consumer.row.group)
    if consumer is None or group is None:
        raise ElasticqUnknownConsumer
    return _joined(view_of(call, group, consumer))


def _joined(view: GroupViewResult) -> GroupJoinedResult:
    return GroupJoinedResult(*(getattr(view, name) for name in view.__struct_fields__))


def _planned_view(call: Call, group: Group, plan: AssignmentPlan, number: int, version: int) -> GroupViewResult:
    held, revoking = plan.rows_of(number)
    return _view(call, group, number, version, plan.status.generation, held, revoking)


def _view(
    call: Call,
    group: Group,
    number: int,
    version: int,
    generation: int,
    held: list[ResourceAssigned],
    revoking: list[ResourceAssigned],
) -> GroupViewResult:
    row = group.row
    return GroupViewResult(
        group_name=row.name,
        consumer_id=consumer_id(number),
        version=version,
        generation=generation,
        session_timeout_ms=row.session_ms,
        hold_ms=row.session_ms * 2 // 3,
        heartbeat_ms=heartbeat_ms(row.session_ms),
        assigned=[_held(call, row.account, each) for each in held],
        revoking=[_held(call, row.account, each) for each in revoking],
    )


def heartbeat_ms(session_ms: int) -> int:
    """Return the time from one answer to the next heartbeat, in milliseconds."""
    return min(session_ms // 4, limits.HEARTBEAT_MS_MAX)


def heartbeat_wait_ms(command: g.ElasticqHeartbeat, view: GroupViewResult) -> int:
    """Return how long a heartbeat with this view may wait for a change; 0: answer at once.

    This is less than the time for which the consumer may act without an answer.
    """
    if not command.wait_time_seconds or command.known_version != view.version:
        return 0
    return min(command.wait_time_seconds * 1_000, view.session_timeout_ms // 3)


def _held(call: Call, account: str, row: ResourceAssigned) -> HeldResource:
    partition = None if row.partition == WHOLE else row.partition
    url = queue_url(call.endpoint, account, row.name)
    return HeldResource(resource_name((row.name, row.partition)), url, row.token, partition)


def describe_groups(state: State, call: Call, command: g.ElasticqDescribeGroups, context: ExecutionContext) -> Outcome:
    """Return a page of groups by name: the named ones, or all of the account. Large groups make the page shorter."""
    most = _checked(command.max_results, 1, limits.DESCRIBED_GROUPS_MAX, "MaxResults", limits.DESCRIBED_GROUPS_MAX)
    after = read_token(command.next_token)
    if command.group_names:
        names = sorted(set(command.group_names))
        ahead = [_named_group(state, call, name) for name in names if name > after]
    else:
        ahead = state.groups.behind(call.account, after, most + 1)
    shown: list[GroupShown] = []
    items = 0
    for group in ahead:
        items += len(group.consumers) + len(group.present)
        if len(shown) == most or (shown and items > limits.DESCRIBED_ITEMS_MAX):
            return GroupsResult(shown, token_of(shown[-1].group_name)), []
        shown.append(_shown(call, group))
    return GroupsResult(shown), []


def _shown(call: Call, group: Group) -> GroupShown:
    row, status = group.row, group.status
    resources = {**dict.fromkeys(group.present), **dict.fromkeys(group.by_resource)}
    return GroupShown(
        group_name=row.name,
        generation=status.generation,
        session_timeout_ms=row.session_ms,
        rebalance_delay_ms=row.delay_ms,
        max_per_consumer=row.max_per_consumer,
        moves=status.moves,
        rebalanced_ms=status.rebalanced_ms,
        consumers=[_shown_consumer(each.row) for each in group.consumers.values()],
        resources=[_shown_resource(call, group, each) for each in sorted(resources)],
        queue_names=row.queue_names,
        queue_name_prefix=row.prefix or None,
        partitions_of=row.partitions_of or None,
    )


def _shown_consumer(row: ConsumerSet) -> ConsumerShown:
    return ConsumerShown(
        consumer_id(row.number), row.name, row.weight, row.joined_ms, row.deadline_ms, row.address or None
    )


def _shown_resource(call: Call, group: Group, resource: Resource) -> ResourceShown:
    name, partition = resource
    row = group.by_resource.get(resource)
    shown = ResourceShown(
        resource_name(resource),
        queue_url(call.endpoint, group.row.account, name),
        FREE if row is None else REVOKING if row.is_revoked else HELD,
        None if partition == WHOLE else partition,
    )
    if row is not None:
        shown.consumer_id, shown.token = consumer_id(row.consumer), row.token
    return shown
