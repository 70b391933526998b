"""A member that has the secret and does not keep to the rules: what it may say, and a cluster that hears it.

Its frames are well-formed messages, whose fields are right, nearly right or anything of their type, or no more
than bytes. What a node refuses costs the link; the cluster goes on without what was lost.
"""

from random import Random
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from elasticq.engine.stored import mutations as m
from elasticq.node import forwarding as f
from elasticq.node.outputs import Frame
from elasticq.replication import messages as r
from elasticq.replication.messages import FrameError
from tests.node.cluster import Cluster

INTRUDER = "e"
NUMBERS = [-(1 << 63), -1, 0, 1, 2, 3, 7, 50, 1_000, 1 << 23, 1 << 31, 1 << 40, (1 << 40) + 1, 1 << 53, 1 << 62]
NUMBERS += [(1 << 63) - 1, (1 << 64) - 1]
TEXTS = ["", "a", "b", "e", "x", "jobs", "000000000000", "SendMessage", "ReceiveMessageResult", "é\0\n", "t" * 500]
BYTES = [b"", b"\x90", b"\x91\x92", b"\xc1", b"i" * 16, b"i" * 3, b"\xff" * 200]
MESSAGES = list(r.AnyMessage.__args__)
LETTERS = list(f.AnyForwardingMessage.__args__)
MUTATIONS = list(m.Mutation.__args__)


class Invaded(Cluster):
    """A cluster in which a refused frame is lost; ``refused`` counts."""

    refused = 0

    def deliver(self, sender: str, frame: Frame) -> None:
        try:
            super().deliver(sender, frame)
        except FrameError:
            self.refused += 1
            self.members[frame.to].drain()

    def say_as_intruder(self, to: str, frame: bytes) -> bool:
        """False: it was refused, and nothing has changed."""
        member = self.members[to]
        before = self.place(to)
        try:
            member.node.receive(frame, self.now_ms, INTRUDER)
        except FrameError:
            assert self.place(to) == before, "what is refused changes nothing"
            self.refused += 1
            return False
        member.drain()
        self.settle()
        return True

    def place(self, name: str) -> tuple[object, ...]:
        node = self.node(name)
        replica = node.replica
        return node.status(self.now_ms), replica.voted_for, replica.log.last_term, len(node.effects.records)


def frames_for(cluster: Cluster, to: str, chance: Random) -> "Frames":
    """As ``to`` stands now."""
    replica = cluster.node(to).replica
    return Frames(chance, replica.cluster, to, replica.term, replica.log.last_index, cluster.now_ms)


class Frames:
    """What the intruder may say to ``to``, a member of ``cluster`` that stands at this place."""

    def __init__(
        self, chance: Random, cluster: str, to: str, term: int, last_index: int, now_ms: int, sender: str = INTRUDER
    ) -> None:
        self._random = chance
        self._cluster = cluster
        self._to = to
        self._term = term
        self._last_index = last_index
        self._now_ms = now_ms
        self._sender = sender

    def draw(self) -> bytes:
        kind = self._pick(["message", "message", "message", "append", "append", "letter", "letter", "bytes"])
        if kind == "bytes":
            return self._pick([b"", b"\x01", b"\x02", b"\x03abc", self._random.randbytes(60)])
        if kind == "append":
            return bytes((r.PROTOCOL_VERSION,)) + self._pack(self._append())
        if kind == "message":
            head = {"group": self._nearly(0), "term": self._nearly(self._term)}
            return bytes((r.PROTOCOL_VERSION,)) + self._pack(self._struct(self._pick(MESSAGES), self._head() | head))
        return bytes((f.FRAME_KIND,)) + self._pack(self._letter())

    def message(self, kind: type[Any], given: dict[str, Any]) -> bytes:
        """Of replication, in order but for what is ``given``."""
        head = {"cluster": self._cluster, "group": 0, "sender": self._sender, "to": self._to, "term": self._term}
        return bytes((r.PROTOCOL_VERSION,)) + self._pack(self._struct(kind, head | given))

    def to_proxy(self, incarnation: str) -> bytes:
        """Who is master, and what became of calls, of this process and of few numbers, so that some are under way."""
        head = {**self._head(), "incarnation": incarnation, "number": self._random.randint(1, 30)}
        kind = self._pick([f.MasterIs, f.MasterIs, f.NotMaster, f.Answer])
        if kind is f.MasterIs:
            head |= {"term": self._nearly(self._term), "master": self._pick(["a", "b", "c", "", self._sender])}
            head |= {"time_ms": self._nearly(self._now_ms)}
        elif kind is f.Answer:
            head |= {"kind": self._pick([*sorted(f._RESULTS), *sorted(f._ERRORS)]), "body": self._pick(["", [], None])}
        return bytes((f.FRAME_KIND,)) + self._pack(self._struct(kind, head))

    def _head(self) -> dict[str, Any]:
        cluster = self._cluster if self._chance(9) else self._text()
        return {"cluster": cluster, "sender": self._sender if self._chance(9) else self._pick("abc"), "to": self._to}

    def _append(self) -> dict[str, Any]:
        """Where it fits, or nearly."""
        prev_index = max(0, self._last_index + self._pick([-3, -1, 0, 0, 0, 1]))
        term = self._term + self._pick([0, 1, 1, 2])
        entries = [self._entry(prev_index + 1 + at, term) for at in range(self._pick([0, 1, 1, 3]))]
        values = {**self._head(), "group": 0, "term": term, "prev_index": prev_index, "entries": entries}
        values |= {"prev_term": self._pick([self._term, self._term, 1, 0]), "round": self._number(), "is_news": False}
        values |= {"commit_index": prev_index + self._pick([-1, 0, 5]), "time_ms": self._nearly(self._now_ms)}
        return self._in_order(r.Append, values)

    def _entry(self, index: int, term: int) -> list[Any]:
        """Its tag, then its fields."""
        payload = self._pack([self._struct(kind) for kind in self._some(MUTATIONS)])
        voters = self._pick([None, None, None, [], [["x", "y"]], [["a", ""], ["a", ""]]])
        term = self._pick([self._term, term, term, 1])
        return [1, index + self._pick([0, 0, 0, 1]), term, self._nearly(self._now_ms), payload, voters, False]

    def _letter(self) -> list[Any]:
        head = {**self._head(), "incarnation": self._text(), "number": self._nearly(self._random.randint(1, 1 << 40))}
        kind = self._pick([f.Forward, *LETTERS])
        if kind is f.Forward:
            name = self._pick(sorted(f._COMMANDS))
            body = self._struct(f._COMMANDS[name].type)
            head |= {"kind": name if self._chance(9) else self._text(), "command": body, "account": "000000000000"}
            head |= {"invocation": self._pick([b"", b"", b"i" * 16, b"abc"])}
        elif kind is f.Answer:
            name = self._pick([*sorted(f._RESULTS), *sorted(f._ERRORS)])
            head |= {"kind": name, "body": self._struct(f._RESULTS[name].type) if name in f._RESULTS else "no"}
        return self._struct(kind, head)

    # --- any value of a type ------------------------------------------------------------

    def _struct(self, kind: type[Any], given: dict[str, Any] | None = None) -> Any:
        """``given``: values of some of its fields."""
        fields = msgspec.structs.fields(kind)
        drawn = {field.name: self._value(field.type) for field in fields if field.name not in (given or {})}
        return self._in_order(kind, drawn | (given or {}))

    @staticmethod
    def _in_order(kind: type[Any], values: dict[str, Any]) -> Any:
        """As it goes on the wire: with its tag where it has one, and no range looked at."""
        fields = msgspec.structs.fields(kind)
        if not kind.__struct_config__.array_like:
            return {field.encode_name: values[field.name] for field in fields}
        tag = kind.__struct_config__.tag
        return [*([] if tag is None else [tag]), *(values[field.name] for field in fields)]

    def _value(self, kind: Any) -> Any:
        if not self._chance(30):
            return self._pick([None, -1, "", b"", [], {}, 1.5, True])
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._value(arguments[0])
        if origin in (Union, UnionType):
            return self._value(self._pick(list(arguments)))
        if origin is list or (origin is tuple and arguments[-1] is Ellipsis):
            return [self._value(arguments[0]) for _ in range(self._pick([0, 1, 2]))]
        if origin is tuple:
            return [self._value(each) for each in arguments]
        if origin is dict:
            return {self._text(): self._value(arguments[1]) for _ in range(self._pick([0, 1]))}
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._struct(kind)
        return self._plain(kind)

    def _plain(self, kind: Any) -> Any:
        if kind is int:
            return self._number()
        if kind is str:
            return self._text()
        if kind is bool:
            return self._pick([True, False])
        if kind is NoneType:
            return None
        assert kind in (bytes, msgspec.Raw), kind
        return self._pick(BYTES)

    def _pack(self, value: Any) -> bytes:
        return msgspec.msgpack.encode(value)

    def _pick(self, of: Any) -> Any:
        return self._random.choice(of)

    def _some(self, of: list[Any]) -> list[Any]:
        return self._random.choices(of, k=self._pick([0, 1, 2]))

    def _chance(self, of: int) -> bool:
        """Mostly."""
        return self._random.randint(0, of) != 0

    def _nearly(self, number: int) -> int:
        return number + self._pick([0, 0, 0, 1, 2, -1]) if self._chance(9) else self._number()

    def _number(self) -> int:
        return self._pick(NUMBERS) if self._chance(1) else self._last_index + self._pick([-2, -1, 0, 1, 2])

    def _text(self) -> str:
        return self._pick([self._cluster, *TEXTS])
