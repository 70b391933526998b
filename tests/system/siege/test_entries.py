"""The siege makes sound and extreme calls for every action, member and route of the server's tables."""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import Struct, inspect

from elasticq.admin.calls import ACTIONS as OPERATORS_ACTIONS
from elasticq.admin.definitions import Definitions
from elasticq.http.faults import Order
from elasticq.http.pages.testing import METHODS
from elasticq.model.actions import (
    ACTIONS,
    BY_NAME,
    BY_SEQUENCE,
    EXTENSIONS,
    IDENTITY_ACTIONS,
    INTERNAL,
    NOT_HERE,
    TOPIC_ACTIONS,
)
from elasticq.rest.routes import ROUTES
from elasticq.wire import json, query
from elasticq.wire.operations import PEEK, SNS, SQS, Operation
from tests.system.siege.entries import ENTRIES, TESTING, Entry, draw, form_of, operators_routes, parting, set_up
from tests.system.siege.maker import Maker, bare, shape
from tests.system.siege.request import MANNERS, ROLES
from tests.system.siege.values import write
from tests.system.siege.world import DOCUMENTS, SETTABLE, World

NAMES = {entry.name for entry in ENTRIES}
COMMANDS = {row.command for row in (*ACTIONS, *EXTENSIONS, *TOPIC_ACTIONS, *IDENTITY_ACTIONS, *BY_SEQUENCE)} | {
    PEEK.command.__name__
}
KINDS: list[type[Struct]] = [operation.command for operation in OPERATORS_ACTIONS.values()]
KINDS += [kind for route in ROUTES for kind in route.takes] + [Definitions, Order]
TRIES = 40
FORMED = [*((SQS, each) for each in SQS.operations.values()), *((SNS, each) for each in SNS.operations.values())]
UNFORMED = ("ElasticqPageSize", "MessageSystemAttributeNames")
"""Members that only JSON has, or that a form has under the name of another one."""


@pytest.fixture
def maker() -> Maker:
    return Maker(World(Random(1)))


@pytest.fixture
def sound() -> Maker:
    """A maker whose values are sound unless extreme ones are asked for."""
    world = World(Random(1))
    world.spoilt_share = 0.0
    return Maker(world)


def structs(kind: inspect.Type) -> Iterator[inspect.StructType]:
    """Return the classes within a type, at any depth."""
    kind = bare(kind)
    if isinstance(kind, inspect.StructType):
        yield kind
        for field in kind.fields:
            yield from structs(field.type)
    elif isinstance(kind, inspect.ListType):
        yield from structs(kind.item_type)
    elif isinstance(kind, inspect.DictType):
        yield from structs(kind.value_type)


CLASSES = {each.cls.__name__: each for kind in KINDS for each in structs(shape(kind))}


def test_commands_of_all_tables_are_attacked() -> None:
    assert {kind.__name__ for kind in KINDS} >= COMMANDS
    assert COMMANDS | {row.name for row in INTERNAL} == set(BY_NAME)


def test_every_action_has_an_entry_at_each_of_its_entry_points() -> None:
    wanted = {f"{way}:{row.name}" for row in (*ACTIONS, *EXTENSIONS) for way in ("json", "query")} | {"json:Peek"}
    wanted |= {f"sns:{row.name}" for row in TOPIC_ACTIONS} | {f"operators:{name}" for name in OPERATORS_ACTIONS}
    wanted |= {f"unknown:{name}" for name in (*NOT_HERE, *(row.name for row in INTERNAL))}
    assert wanted - NAMES == set()


def test_every_route_has_an_entry() -> None:
    wanted = {f"rest:{route.name}" for route in ROUTES} | {"rest:stream"} | {f"testing:{path}" for path in METHODS}
    wanted |= {f"operators:{method} {path}" for method, path in operators_routes()}
    assert wanted - NAMES == {"operators:POST /api/actions/{action}"}  # which has one for each action
    assert {entry.name for entry in TESTING} == {f"testing:{path}" for path in METHODS}


def test_entries_have_a_name_and_a_weight_each() -> None:
    assert len(NAMES) == len(ENTRIES)
    assert all(entry.weight > 0 for entry in ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_entry_makes_requests_of_one_head(entry: Entry, maker: Maker) -> None:
    for _ in range(20):
        maker.world.begin(entry.name)
        request = entry.make(maker)
        head = request.head("127.0.0.1:9324", {})
        assert head.index(b"\r\n\r\n") == len(head) - 4
        assert head.split(b" ", 2)[1].startswith(b"/")
        assert request.is_operators == entry.name.startswith("operators:")


def wanted_of(kind: inspect.Type) -> set[str]:
    """Return the labels of extreme values that a member of this type must have."""
    kind, wanted = bare(kind), {"null", "another type", "nested", "wide"}
    match kind:
        case inspect.StrType() | inspect.BytesType():
            wanted |= {"empty", "odd", "long", "number"} | ({"below", "at", "beyond"} if kind.max_length else set())
        case inspect.IntType() | inspect.FloatType():
            low = kind.ge if kind.ge is not None else kind.gt
            bounds = [bound for bound in (low, kind.le) if bound is not None]
            wanted |= {"negative", "any", "no integer", "text"}
            wanted |= {f"{where} {bound}" for bound in bounds for where in ("below", "at", "beyond")}
        case inspect.ListType() | inspect.DictType():
            wanted |= {"empty", "below", "at", "beyond"}
        case inspect.StructType():
            wanted |= {"inside"}
    return wanted


@pytest.mark.parametrize("name", CLASSES)
def test_every_member_gets_its_extreme_values(name: str, maker: Maker) -> None:
    for field in CLASSES[name].fields:
        edges = maker.edges(field.type, field.encode_name, name)
        assert wanted_of(field.type) <= set(edges), field.encode_name
        for label in edges:
            write(maker.edge(CLASSES[name], field, label))
            assert (name, field.encode_name, label) in maker.noted


@pytest.mark.parametrize("name", CLASSES)
def test_every_member_is_made_sound_and_extreme_by_chance(name: str, maker: Maker) -> None:
    for field in CLASSES[name].fields:
        for _ in range(TRIES):
            maker.world.begin()
            maker.members(CLASSES[name])
            maker.members(CLASSES[name], field.encode_name)
    for field in CLASSES[name].fields:
        labels = {label for *place, label in maker.noted if place == [name, field.encode_name]}
        assert "sound" in labels, field.encode_name
        assert len(labels) > 4, field.encode_name


def test_values_at_bounds_have_the_length_that_the_class_allows(maker: Maker) -> None:
    for owner in CLASSES.values():
        for field in owner.fields:
            kind = bare(field.type)
            if isinstance(kind, inspect.StrType) and kind.max_length and kind.max_length <= 65_536:
                lengths = [len(maker.edge(owner, field, label)) for label in ("below", "at", "beyond")]
                assert lengths == [kind.max_length - 1, kind.max_length, kind.max_length + 1]


def formed(value: Any) -> Any:
    """Return the part of a value that a form can express: no empty lists and maps, and no extensions."""
    if isinstance(value, list):
        return [formed(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: formed(each) for name, each in value.items() if name not in UNFORMED and each not in ([], {})}


@pytest.mark.parametrize("operation", OPERATORS_ACTIONS.values(), ids=lambda operation: operation.command.__name__)
def test_sound_members_are_decoded_by_the_server(operation: Operation, sound: Maker) -> None:
    for _ in range(20):
        sound.world.begin(operation.name)
        json.decode(operation, write(sound.members(shape(operation.command))).encode())


@pytest.mark.parametrize(("service", "operation"), FORMED, ids=lambda each: getattr(each, "name", ""))
def test_a_form_is_decoded_to_the_command_of_the_json(service: Any, operation: Operation, sound: Maker) -> None:
    for _ in range(20):
        sound.world.begin(operation.name)
        members = formed(sound.members(shape(operation.command)))
        found, command = query.decode(service, form_of(operation, service, members))
        assert found is operation
        assert command == json.decode(operation, write(members).encode())


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_sound_bodies_of_rest_are_decoded_by_the_server(route: Any, sound: Maker) -> None:
    for kind in route.takes:
        for _ in range(20):
            msgspec.json.decode(write(sound.members(shape(kind))), type=kind)


def test_every_settable_attribute_is_set(maker: Maker) -> None:
    assert {maker.world.queue_attribute()[0] for _ in range(2_000)} == set(SETTABLE)


def test_requests_come_from_the_seed_and_go_everywhere() -> None:
    one, other = (Maker(World(Random("a"))) for _ in range(2))
    requests = [draw(one) for _ in range(500)]
    assert requests == [draw(other) for _ in range(500)]
    assert {request.to for request in requests} == set(ROLES)
    assert {request.manner for request in requests} == set(MANNERS)
    assert requests[:50] != [draw(Maker(World(Random("b")))) for _ in range(50)]


def test_bodies_nest_as_deep_as_the_interpreter_allows_and_deeper() -> None:
    maker = Maker(World(Random(3)))
    entries = tuple(entry for entry in ENTRIES if "SetQueueAttributes" in entry.name)
    bodies = [draw(maker, entries).body for _ in range(1_000)]
    depths = [body.count(b"[") for body in bodies if b"[" * 900 in body]
    assert any(950 < depth < 1_010 for depth in depths)
    assert any(depth >= 100_000 for depth in depths)


def test_set_up_makes_all_queues_and_topics_and_groups() -> None:
    names = [request.name for request in set_up(World(Random(1)))]
    assert {"json:CreateQueue", "json:SetQueueAttributes", "json:ElasticqSetGroup", "sns:CreateTopic"} <= set(names)


def test_parting_stores_each_document_at_each_role_and_at_the_operators_port() -> None:
    requests = list(parting(World(Random(1))))
    for place in ((role, False) for role in ROLES):
        bodies = [request.body.decode() for request in requests if (request.to, request.is_operators) == place]
        assert [name for name in DOCUMENTS if not any(name in body for body in bodies)] == ["DataProtectionPolicy"]
    assert {request.name for request in requests if request.is_operators} == {
        f"operators:Set{what}Attributes" for what in ("Queue", "Topic", "Subscription")
    }
