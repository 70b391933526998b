"""Receives from all that a consumer holds, for those who iterate over its group.

A resource is in one place at a time: it waits for a receiver, a receiver is asking for its messages, its batch waits
for somebody who iterates, or one message of that batch is in somebody's hands. So its order is kept, whoever iterates,
and when it is revoked there is one place to look for what was not given out yet, which goes back to the queue. That is
a call without the token, as the resource may be another's by then: a receive that is under way is not waited for, and
what it brings is given out to nobody.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from elasticq.client import patience
from elasticq.client.errors import DigestMismatch, Unreachable
from elasticq.client.fencing import error_code, is_not_holder
from elasticq.client.group_held import Held, Message

WAIT_S: Final = 20
CROWDED_WAIT_S: Final = 1
"""How long a receive waits where there are more resources than receivers, as the others wait for it."""
PAUSE_S: Final = 0.5
BATCH: Final = 10
ALL: Final = {"AttributeNames": ["All"], "MessageAttributeNames": ["All"]}
GONE: Final = frozenset(("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"))


class Batch:
    """Messages of one resource that are not done yet. owner: who has taken it, to give out its first message."""

    __slots__ = ("held", "messages", "owner")

    def __init__(self, held: Held, messages: list[dict[str, Any]]) -> None:
        self.held = held
        self.messages = deque(messages)
        self.owner: object = None


class Receivers:
    """The threads that receive, and what they have received. Everything is guarded by the group's condition."""

    def __init__(
        self,
        changed: threading.Condition,
        client: Any,
        number: int,
        receive: Mapping[str, Any],
        fail: Callable[[BaseException], None],
        idle: Callable[[int], None],
    ) -> None:
        """number: of threads; receive: members of each ReceiveMessage; idle: is told tokens that are not busy now."""
        if number < 1:
            raise ValueError(f"receivers is {number}, and must be at least 1")
        self._changed = changed
        self._client = client
        self._number = number
        self._given = {"MaxNumberOfMessages": BATCH, **ALL, **receive}
        self._fail = fail
        self._idle = idle
        self._known: dict[int, Held] = {}
        self._rotation: deque[Held] = deque()
        self._ready: deque[Batch] = deque()
        self._taken: list[Batch] = []
        self._busy: set[int] = set()
        self.is_closing = False
        self.on_ready: Callable[[], object] = lambda: None  # called, with the lock, when take() may have something
        self.threads: list[threading.Thread] = []  # which receive, once somebody iterates

    def start(self) -> None:
        """Start the threads, unless they run."""
        with self._changed:
            if self.threads or self.is_closing:
                return
            for number in range(self._number):
                thread = threading.Thread(target=self._run, name=f"elasticq-group-receiver-{number}", daemon=True)
                self.threads.append(thread)
                thread.start()

    def stop(self) -> None:
        """Let the threads and the iterations end."""
        with self._changed:
            self.is_closing = True
            self._changed.notify_all()
            self.on_ready()

    def add(self, held: Held) -> None:
        """Receive from this as well."""
        with self._changed:
            self._known[held.token] = held
            self._rotation.append(held)
            self._changed.notify_all()

    def drop(self, held: Held) -> None:
        """Receive no more from this. What was received and not given out goes back; what is in hand is waited for."""
        with self._changed:
            self._known.pop(held.token, None)
            with suppress(ValueError):
                self._rotation.remove(held)
            batch = next((each for each in self._ready if each.held is held), None)
            if batch is not None:
                self._ready.remove(batch)
        if batch is not None:
            self._put_back(batch)

    def is_busy(self, token: int) -> bool:
        """True while messages that were received are not done."""
        return token in self._busy

    def let_go(self, owner: object) -> None:
        """Take what ``owner`` has in hand for done: it ends the group in the middle of an iteration."""
        for batch in [each for each in self._taken if each.owner == owner]:
            self.put_down(batch)

    def __iter__(self) -> Iterator[Message]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.is_closing or self._ready)
                batch = self.take(threading.get_ident())
            if batch is None:
                if self.is_closing:
                    return
                continue
            try:
                if batch.held.is_held():
                    yield Message(batch.held, batch.messages.popleft())
            finally:
                self.put_down(batch)

    def take(self, owner: object) -> Batch | None:
        """Return what is next to be given out, if anything is: its first message, while it is held."""
        with self._changed:
            if self.is_closing or not self._ready:
                return None
            batch = self._ready.popleft()
            batch.owner = owner
            self._taken.append(batch)
            return batch

    def put_down(self, batch: Batch) -> None:
        """What was taken is done."""
        with self._changed:
            if batch not in self._taken:
                return
            self._taken.remove(batch)
            if batch.messages and batch.held.token in self._known and batch.held.is_held():
                self._offer(batch)
                return
        self._put_back(batch)

    def _offer(self, batch: Batch) -> None:
        """The lock is held."""
        self._busy.add(batch.held.token)
        self._ready.append(batch)
        self._changed.notify_all()
        self.on_ready()

    # --- where a resource goes next -----------------------------------------------------

    def _put_back(self, batch: Batch) -> None:
        """Give messages back that nobody got. Where that fails, they come again after their visibility timeout."""
        if batch.messages:
            with suppress(Exception):
                entries = [
                    {"Id": str(at), "ReceiptHandle": each["ReceiptHandle"], "VisibilityTimeout": 0}
                    for at, each in enumerate(batch.messages)
                ]
                self._client.change_message_visibility_batch(QueueUrl=batch.held.queue_url, Entries=entries)
        self._rest(batch.held)

    def _rest(self, held: Held) -> None:
        with self._changed:
            self._busy.discard(held.token)
            if held.token in self._known:
                self._rotation.append(held)
            self._idle(held.token)
            self._changed.notify_all()

    # --- receivers ----------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                held = self._chosen()
                while held is None:
                    if self.is_closing:
                        return
                    self._changed.wait()
                    held = self._chosen()
                wait_s = WAIT_S if len(self._known) <= self._number else CROWDED_WAIT_S
            try:
                answer = held.client.receive_message(**{"WaitTimeSeconds": wait_s, **self._given})
            except Exception as failure:
                self._failed(held, failure)
                continue
            batch = Batch(held, answer.get("Messages") or [])
            with self._changed:
                is_wanted = bool(batch.messages) and held.token in self._known and held.is_held()
                if is_wanted:
                    self._offer(batch)
            if not is_wanted:
                self._put_back(batch)

    def _chosen(self) -> Held | None:
        """Take the next resource out of the rotation. One whose hold is over stays: an answer may prolong it."""
        if self.is_closing:
            return None
        found = next((each for each in self._rotation if each.is_held()), None)
        if found is not None:
            self._rotation.remove(found)
        return found

    def _failed(self, held: Held, failure: Exception) -> None:
        """Go on after a pause where another answer is to come: a view without this resource, or a server that is up."""
        is_passing = isinstance(failure, (Unreachable, DigestMismatch)) or patience.is_transient(failure)
        if is_passing or is_not_holder(failure) or error_code(failure) in GONE:
            with self._changed:
                self._changed.wait_for(lambda: self.is_closing or held.token not in self._known, PAUSE_S)
        else:
            self._fail(failure)
        self._rest(held)
