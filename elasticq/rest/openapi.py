"""The OpenAPI 3.1 document of the REST API, and a page that shows it without content of other servers."""

from functools import cache
from html import escape
from typing import Any, Final

import msgspec

from elasticq import __version__
from elasticq.model.limits import QUEUE_URL_CHARS_MAX
from elasticq.rest import shapes as s
from elasticq.rest.api import Parameter
from elasticq.rest.routes import BASE, ROUTES, STREAM_QUERY, Route

_JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"
_ABOUT: Final = (
    "Queues and messages of elasticq for clients without an SDK. The port, authentication, accounts, regions and"
    " limits are those of the SQS API. doq's paths (/API/v1, in capitals) answer as doq does."
)


@cache
def document() -> dict[str, Any]:
    """Return the document as plain objects for JSON."""
    kinds = {kind for route in ROUTES for kind in (*route.takes, *route.answers)} | {s.Problem}
    types = sorted(kinds, key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(f"{BASE}{route.path}", {})[route.method.lower()] = _operation(route)
    paths[f"{BASE}/queues/{{queue}}/stream"] = {"get": _stream()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "elasticq", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": route.name, "summary": route.summary}
    parameters = [_in_path(name) for name in ("queue", "id") if f"{{{name}}}" in route.path]
    parameters += map(_in_query, route.query)
    if parameters:
        operation["parameters"] = parameters
    if route.takes:
        content = {_JSON: {"schema": _any_of(route.takes)}}
        operation["requestBody"] = {"required": not route.is_body_optional, "content": content}
    answers: dict[str, Any] = {"204": {"description": "done"}}
    if route.answers:
        answers = {"200": {"description": "done", "content": {_JSON: {"schema": _any_of(route.answers)}}}}
    operation["responses"] = answers | _problems()
    return operation


def _stream() -> dict[str, Any]:
    success = {
        "description": "an event for each message, until the client leaves",
        "content": {"text/event-stream": {}},
    }
    return {
        "operationId": "stream",
        "summary": "Messages as server-sent events, for clients that cannot poll. Acknowledge each message by its id.",
        "parameters": [_in_path("queue"), *map(_in_query, STREAM_QUERY)],
        "responses": {"200": success} | _problems(),
    }


def _problems() -> dict[str, Any]:
    content = {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    words = {"4XX": "refused, and nothing has changed", "5XX": "try again"}
    return {status: {"description": text, "content": content} for status, text in words.items()}


def _any_of(kinds: tuple[type[msgspec.Struct], ...]) -> dict[str, Any]:
    found = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in kinds]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _in_path(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": QUEUE_URL_CHARS_MAX}
    if name == "id":
        schema = {"type": "string", "pattern": "^[0-9]{1,19}$"}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.kind}
    if parameter.kind == "integer":
        schema |= {"minimum": parameter.bound.ge, "maximum": parameter.bound.le}
    elif parameter.kind == "string":
        schema["maxLength"] = parameter.bound.max_length
    return {"name": parameter.name, "in": "query", "description": parameter.description, "schema": schema}


@cache
def page() -> str:
    """Return an HTML page with all operations and shapes. It loads nothing from another server."""
    rows = "".join(_section(path, method, operation) for path, item in document()["paths"].items()
                   for method, operation in item.items())  # fmt: skip
    shapes = "".join(
        f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>{_members(schema)}'
        for name, schema in sorted(document()["components"]["schemas"].items())
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>elasticq REST API</title>"
        f"<style>{_STYLE}</style><h1>elasticq REST API</h1><p>{escape(_ABOUT)}</p>"
        f'<p><a href="openapi.json">OpenAPI 3.1</a></p>{rows}<h2>Shapes</h2>{shapes}</html>'
    )


_STYLE: Final = (
    "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}code{background:#eee;padding:.1em .3em}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}"
)


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    section = f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['summary'])}</p>"
    query = [each for each in operation.get("parameters", ()) if each["in"] == "query"]
    if query:
        rows = "".join(f"<tr><td>{escape(each['name'])}<td>{escape(each['description'])}" for each in query)
        section += f"<table><tr><th>parameter<th>meaning{rows}</table>"
    for words, content in (
        ("takes", operation.get("requestBody", {}).get("content", {})),
        ("answers", operation["responses"].get("200", {}).get("content", {})),
    ):
        names = [ref.rpartition("/")[2] for ref in _references(content.get(_JSON, {}).get("schema", {}))]
        if names:
            links = " or ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in names)
            section += f"<p>{words} {links}</p>"
    return section


def _references(schema: dict[str, Any]) -> list[str]:
    return [schema["$ref"]] if "$ref" in schema else [each["$ref"] for each in schema.get("anyOf", ())]


def _members(schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = "".join(
        f"<tr><td>{escape(name)}{'' if name in needed else '?'}<td>{escape(_kind(member))}"
        for name, member in schema.get("properties", {}).items()
    )
    return f"<table><tr><th>member<th>kind{rows}</table>"


def _kind(member: dict[str, Any]) -> str:
    if "anyOf" in member:
        return " or ".join(map(_kind, member["anyOf"]))
    if "enum" in member:
        return ", ".join(map(str, member["enum"]))
    return str(member.get("type") or member.get("$ref", "").rpartition("/")[2] or "any")


def text() -> str:
    """Return the document in the form of docs/openapi.json."""
    return msgspec.json.format(msgspec.json.encode(document(), order="deterministic"), indent=1).decode() + "\n"


if __name__ == "__main__":
    print(text(), end="")
