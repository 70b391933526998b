"""The queue of the model: the real engine on a virtual clock, spoken to in the bytes of the JSON protocol."""

import json
import random
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from elasticq.client import SqsError
from elasticq.model.commands import Call
from elasticq.model.errors import SqsError as EngineError
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.replication.records import NOTHING
from elasticq.wire import json as wire
from elasticq.wire.operations import OPERATIONS

WALL_MS = 1_700_000_000_000
ENDPOINT = "http://127.0.0.1:9324"


class Killed(BaseException):
    """The process that was running is dead. No ``except Exception`` may survive it."""


class Clock:
    """Virtual time. ``hook`` is called with what is about to happen, and after it with "" in front."""

    def __init__(self) -> None:
        self.now_ms = 1_000

    def now_s(self) -> float:
        return (WALL_MS + self.now_ms) / 1000

    def sleep(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)


class Engine:
    """One volatile node; a request's bytes in, an answer's bytes out."""

    def __init__(self, clock: Clock, entropy: bytes) -> None:
        self._clock = clock
        settings = NodeSettings(member_id="a", voters=("a",), volatile=True)
        self.node = Node(settings, NOTHING, entropy.ljust(32, b"e"))
        self.node.start(clock.now_ms, WALL_MS + clock.now_ms)
        self._tick()

    def ask(self, action: str, body: bytes) -> tuple[bytes, EngineError | None]:
        operation = OPERATIONS[action]
        self._tick()
        try:
            command = wire.decode(operation, body)
        except EngineError as error:
            return b"", error
        self.node.submit(Call(command, "anonymous", DEFAULT_ACCOUNT, ENDPOINT), "ask", self._clock.now_ms)
        outcome = self._answer()
        if isinstance(outcome, EngineError):
            return b"", outcome
        return wire.encode(operation, command, outcome), None

    def _answer(self) -> Any:
        """At once, or after the wait that was asked for."""
        effects = self.node.effects
        while not effects.replies:
            assert effects.wake_at_ms is not None
            self._clock.now_ms = max(self._clock.now_ms, effects.wake_at_ms)
            self.node.tick(self._clock.now_ms)
        (reply,) = effects.replies
        self._drain()
        return reply.outcome

    def _drain(self) -> None:
        effects = self.node.effects
        effects.records.clear()
        effects.replies.clear()
        effects.frames.clear()
        effects.committed.clear()

    def _tick(self) -> None:
        effects = self.node.effects
        while effects.wake_at_ms is not None and effects.wake_at_ms <= self._clock.now_ms:
            before_ms = effects.wake_at_ms
            self.node.tick(self._clock.now_ms)
            self._drain()
            if effects.wake_at_ms is not None and effects.wake_at_ms <= before_ms:
                return


class Client:
    """boto3-shaped calls on the engine. ``around`` is told of each call before and after it was answered."""

    def __init__(self, engine: Engine, around: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._engine = engine
        self._environment = around

    def __getattr__(self, method: str) -> Callable[..., dict[str, Any]]:
        if method.startswith("_") or method == "peek":
            raise AttributeError(method)
        action = "".join(word.capitalize() for word in method.split("_"))

        def call(**members: Any) -> dict[str, Any]:
            body = json.dumps(members).encode()
            return self._environment(action, lambda: self.answered(action, body))  # type: ignore[no-any-return]

        return call

    def answered(self, action: str, body: bytes) -> dict[str, Any]:
        answer, error = self._engine.ask(action, body)
        if error is not None:
            raise SqsError(action, error.code, error.json_type, error.message, error.status, error.sender_fault)
        decoded: dict[str, Any] = json.loads(answer) if answer else {}
        for message in decoded.get("Messages", ()):
            for attribute in message.get("MessageAttributes", {}).values():
                if "BinaryValue" in attribute:
                    attribute["BinaryValue"] = b64decode(attribute["BinaryValue"])
        return decoded


class MemoryStore:
    """Log files of the model; each write is a place to die before and after."""

    is_exclusive = True

    def __init__(self, files: dict[str, bytes], around: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._files = files
        self._environment = around

    def read(self, name: str) -> bytes | None:
        return self._files.get(name)

    def create(self, name: str, content: bytes) -> bool:
        def write() -> bool:
            if name in self._files:
                return False
            self._files[name] = content
            return True

        return bool(self._environment("create", write))

    def put(self, name: str, content: bytes) -> None:
        self._environment("put", lambda: self._files.__setitem__(name, content))

    def remove(self, name: str) -> None:
        self._environment("remove", lambda: self._files.pop(name, None))

    def names(self, folder: str) -> list[str]:
        return sorted(name.partition("/")[2] for name in self._files if name.startswith(f"{folder}/"))


def pick(draw: random.Random, chance: float) -> bool:
    return chance > 0 and draw.random() < chance
