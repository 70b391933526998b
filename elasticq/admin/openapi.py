"""The OpenAPI 3.1 document of the admin API, made from the table of routes and the shapes of their answers."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from elasticq.admin import shapes as s
from elasticq.admin.definitions import Definitions, QueueDefinition, SubscriptionDefinition, TopicDefinition
from elasticq.admin.routes import CLUSTER, ROUTES, Answer, Parameter, Route

_ABOUT: Final = (
    "The API behind the page on the admin port, for the command line and other programs. If admin.token_file is set, "
    "each request needs the header Authorization: Bearer TOKEN."
)
_REFERENCE: Final = "#/components/schemas/{name}"
_DEFINITIONS: Final = (Definitions, QueueDefinition, TopicDefinition, SubscriptionDefinition)
_RAW_LISTS: Final = (
    ("Definitions", "queues", "QueueDefinition"),
    ("Definitions", "topics", "TopicDefinition"),
    ("TopicDefinition", "subscriptions", "SubscriptionDefinition"),
)
"""The lists that are decoded item by item: struct, member, and the struct of an item."""


@cache
def document() -> dict[str, Any]:
    """Return the document as plain objects for JSON."""
    paths: dict[str, Any] = {}
    for route in (*ROUTES, CLUSTER):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "elasticq admin API", "version": "1", "description": _ABOUT},
        "paths": paths,
        "components": {"schemas": _schemas()},
    }


def _answers() -> Iterator[type[Struct]]:
    """Yield the structs of answers, each once, without those of definitions."""
    for shape in {answer.shape for route in ROUTES for answer in (route.answer, *route.errors.values())}:
        if shape is not None and issubclass(shape, Struct) and shape is not Definitions:
            yield shape


def _schemas() -> dict[str, Any]:
    named: list[type[Struct]] = [*sorted(_answers(), key=str), *_DEFINITIONS]
    _, schemas = msgspec.json.schema_components(named, ref_template=_REFERENCE)
    for name, member, item in _RAW_LISTS:
        schemas[name]["properties"][member]["items"] = {"$ref": _REFERENCE.format(name=item)}
    for name in schemas.keys() - {kind.__name__ for kind in _DEFINITIONS}:
        schemas[name]["required"] = list(schemas[name]["properties"])  # answers write defaults, too
    for name in schemas.keys() - {kind.__name__ for kind in named}:
        schemas[name].pop("description", None)  # it is for readers of the code
    for path, more in s.MEMBERS.items():
        name, _, member = path.partition(".")
        schemas[name]["properties"][member] |= {"description": more} if isinstance(more, str) else more
    return schemas


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {"summary": route.summary}
    if route.description:
        operation["description"] = route.description
    if route.query:
        operation["parameters"] = [_parameter(each) for each in route.query]
    if route.body is not None:
        content = {content_type: {"schema": _schema(route.body)} for content_type in route.body_types}
        operation["requestBody"] = {"required": True, "content": content}
    answers = {200: route.answer, **route.errors}
    operation["responses"] = {str(status): _response(answers[status]) for status in sorted(answers)}
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    required = {"required": True} if parameter.is_required else {}
    described = {"description": parameter.description, "schema": parameter.schema}
    return {"name": parameter.name, "in": parameter.place, **required, **described}


def _response(answer: Answer) -> dict[str, Any]:
    content = {} if answer.shape is None else {"content": {answer.content_type: {"schema": _schema(answer.shape)}}}
    return {"description": answer.description, **content}


def _schema(shape: type[Any]) -> dict[str, Any]:
    if shape is dict or shape is str:
        return {"type": "object" if shape is dict else "string"}
    return {"$ref": _REFERENCE.format(name=shape.__name__)}
