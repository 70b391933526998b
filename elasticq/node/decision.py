"""What became of a command that was judged."""

from msgspec import Struct

from elasticq.engine.stored import mutations as m
from elasticq.model.errors import SqsError
from elasticq.model.results import Result


class Decision(Struct, gc=False):
    """What a handler decided; ``payload`` is ``mutations`` encoded for the log, empty if there are none."""

    result: Result | SqsError
    mutations: list[m.Mutation]
    payload: bytes = b""
