"""The light client of SNS: boto3's methods, keywords and answers, over the Query protocol."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from elasticq.client.calls import Client, Members, add_methods
from elasticq.client.connection import Answer
from elasticq.client.errors import SqsError, Unreachable
from elasticq.model.actions import TOPIC_ACTIONS

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

VERSION: Final = "2010-03-31"
_LISTS: Final = frozenset(("Topics", "Subscriptions", "Tags", "Successful", "Failed"))
"""The members of answers that are lists, even if they are empty."""


class Sns(Client):
    """A client of SNS. Threads may share it, as each thread has its own connection."""

    service = "sns"
    content_type = "application/x-www-form-urlencoded"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Members]:
            """Return a method, made from the table of actions."""

    def _written(self, action: str, members: Members) -> bytes:
        fields = [("Action", action), ("Version", VERSION)]
        for name, value in members.items():
            fields += _fields(name, value)
        return urlencode(fields).encode()

    def _head(self, action: str) -> tuple[str, str]:
        return self._path, f"POST {self._path} HTTP/1.1\r\n"

    def _target(self, action: str) -> str:
        return ""

    def _read(self, action: str, answer: Answer) -> Members:
        from xml.etree import ElementTree  # here, as programs without SNS need no XML

        try:
            tree = ElementTree.fromstring(answer.body)
        except ElementTree.ParseError:
            tree = None
        if answer.status != 200:
            raise _error(action, answer, tree)
        if tree is None:
            raise Unreachable(f"{action}: the answer is no XML: something else answers there")
        result = tree.find(f"{{*}}{action}Result")
        return {} if result is None else {_name(each): _value(each) for each in result}


add_methods(Sns, [row.name for row in TOPIC_ACTIONS])


def _fields(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield a member as parameters of a form: lists as ``.member.N``, maps as ``.entry.N``."""
    if isinstance(value, list):
        for number, item in enumerate(value, start=1):
            yield from _fields(f"{name}.member.{number}", item)
    elif isinstance(value, dict) and name.rpartition(".")[2] == "MessageAttributes":
        for number, (key, item) in enumerate(value.items(), start=1):
            yield f"{name}.entry.{number}.Name", key
            yield from _fields(f"{name}.entry.{number}.Value", item)
    elif isinstance(value, dict) and name == "Attributes":
        for number, (key, item) in enumerate(value.items(), start=1):
            yield f"{name}.entry.{number}.key", key
            yield from _fields(f"{name}.entry.{number}.value", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _fields(f"{name}.{key}", item)
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    elif isinstance(value, bytes):
        yield name, b64encode(value).decode()
    else:
        yield name, str(value)


def _name(element: "Element") -> str:
    return element.tag.rpartition("}")[2]


def _value(element: "Element") -> Any:
    if _name(element) in _LISTS:
        return [{_name(each): _value(each) for each in member} for member in element]
    if _name(element) == "Attributes":
        return {entry[0].text or "": entry[1].text or "" for entry in element}
    return element.text or ""


def _error(action: str, answer: Answer, tree: "Element | None") -> SqsError:
    found = None if tree is None else tree.find("{*}Error")
    told = {} if found is None else {_name(each): each.text or "" for each in found}
    if not told:
        told = _json_error(answer)
    code = told.get("Code") or str(answer.status)
    is_senders = told.get("Type") == "Sender" if "Type" in told else 400 <= answer.status < 500
    return SqsError(action, code, code, told.get("Message", ""), answer.status, is_senders)


def _json_error(answer: Answer) -> dict[str, str]:
    """Return the error in a JSON answer, which a proxy in front of a server may send; empty if it is not JSON."""
    try:
        written = json.loads(answer.body)
    except ValueError:
        return {}
    return {"Message": str(written.get("message", ""))} if isinstance(written, dict) else {}
