"""The result of executing a command, before it is applied."""

from msgspec import Struct

from elasticq.engine.stored import mutations as m
from elasticq.model.errors import SqsError
from elasticq.model.results import Result


class Decision(Struct, gc=False):
    """The decision of a handler. ``payload`` holds the encoded ``mutations`` for the log, and is empty without any."""

    result: Result | SqsError
    mutations: list[m.Mutation]
    payload: bytes = b""
