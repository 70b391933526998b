"""Members that would misunderstand each other refuse the link: SCHEMA covers all that they say."""

from collections.abc import Iterator
from hashlib import blake2b
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, structs

from elasticq.engine.stored.mutations import Mutation
from elasticq.model.actions import BY_NAME
from elasticq.model.commands import Command
from elasticq.model.results import Result
from elasticq.node.forwarding import AnyForwardingMessage
from elasticq.node.membership.peer import Peer
from elasticq.peers import messages
from elasticq.replication.messages import AnyMessage

SAID = (AnyMessage, AnyForwardingMessage, Mutation, Peer)


def subclasses(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def described(annotation: Any, known: dict[str, str]) -> str:
    """Return a text for a type, and add the structs in it to ``known``."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return f"{described(arguments[0], known)} {arguments[1:]}"
    if origin in (Union, UnionType):
        return " | ".join(sorted(described(each, known) for each in arguments))
    if origin is not None:
        inner = ", ".join(described(each, known) if each is not ... else "..." for each in arguments)
        return f"{getattr(origin, '__name__', origin)}[{inner}]"
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        describe(annotation, known)
    return getattr(annotation, "__name__", repr(annotation))


def describe(kind: type[Struct], known: dict[str, str]) -> None:
    if kind.__name__ in known:
        return
    known[kind.__name__] = ""
    hints, config = get_type_hints(kind, include_extras=True), kind.__struct_config__
    fields = [f"{each.encode_name}: {described(hints[each.name], known)}" for each in structs.fields(kind)]
    known[kind.__name__] = f"{config.tag} {config.array_like} ({'; '.join(fields)})"


def schema() -> str:
    """Return the digest of the frames, calls, answers and mutations that members exchange."""
    known: dict[str, str] = {}
    for said in SAID:
        described(said, known)
    for command in subclasses(Command):
        if command.__name__ in BY_NAME and command.__module__.startswith("elasticq."):
            describe(command, known)
    for result in subclasses(Result):
        if result.__module__.startswith("elasticq."):
            describe(result, known)
    for kind in vars(messages).values():
        if isinstance(kind, type) and issubclass(kind, Struct) and kind is not Struct:
            describe(kind, known)
    text = "\n".join(f"{name} {known[name]}" for name in sorted(known))
    return blake2b(text.encode(), digest_size=8).hexdigest()


def test_schema_is_that_of_this_build() -> None:
    assert schema() == messages.SCHEMA, "what members say has changed: see SCHEMA in peers/messages.py"


def test_digest_knows_bounds_fields_and_tags() -> None:
    class One(Struct, array_like=True, tag=1):
        a: int

    class Other(Struct, array_like=True, tag=2):
        a: int

    class More(Struct, array_like=True, tag=1):
        a: int
        b: str = ""

    texts = set()
    for kind in (One, Other, More):
        known: dict[str, str] = {}
        describe(kind, known)
        texts.add(known[kind.__name__])
    assert len(texts) == 3
