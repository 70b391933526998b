"""The result of executing a command, before it is applied."""

from elasticq.engine.stored import mutations as m
from elasticq.model.errors import SqsError
from elasticq.model.results import Result


class Decision:
    """The decision of a handler. ``payload`` holds the encoded ``mutations`` for the log, and is empty without any."""

    __slots__ = ("mutations", "payload", "result")

    def __init__(self, result: Result | SqsError, mutations: list[m.Mutation], payload: bytes = b"") -> None:
        self.result = result
        self.mutations = mutations
        self.payload = payload
