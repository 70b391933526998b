"""The receivers of a group: threads that receive from all resources of a consumer, for the iterations over its group.

A resource is always in one of four states. So iterations in several threads keep the order of a resource:

1. The resource waits until a receiver is free.
2. A receiver receives from the resource.
3. The received batch waits for an iteration.
4. An iteration has yielded one message of the batch, and that message is not done.

When a resource is revoked, the messages that were not yielded are returned to the queue. That call is made without the
token, as another consumer may have the resource. A receive that is in progress is not waited for, and its messages are
never yielded.
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
"""How long a receive waits if there are more resources than receivers, as other resources wait for the receiver."""
PAUSE_S: Final = 0.5
BATCH: Final = 10
ALL: Final = {"AttributeNames": ["All"], "MessageAttributeNames": ["All"]}
GONE: Final = frozenset(("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"))


class Batch:
    """The messages of one resource that are not done yet. owner: the iteration that took the batch, or None."""

    def __init__(self, held: Held, messages: list[dict[str, Any]]) -> None:
        self.held = held
        self.messages = deque(messages)
        self.owner: object = None


class Receivers:
    """The threads that receive, and the messages that they received. The group's condition guards all fields."""

    def __init__(
        self,
        changed: threading.Condition,
        client: Any,
        number: int,
        receive: Mapping[str, Any],
        fail: Callable[[BaseException], None],
        idle: Callable[[int], None],
    ) -> None:
        """Prepare the receivers. number: the number of threads; receive: members of each ReceiveMessage.

        fail: is called with an error that ends the consumer. idle: is called with the token of a resource when its
        received messages are done or returned.
        """
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
        self.on_ready: Callable[[], object] = lambda: None  # called, with the lock, when take() may return a batch
        self.threads: list[threading.Thread] = []  # empty until the first iteration starts them

    def start(self) -> None:
        """Start the threads, unless they were started or stopped before."""
        with self._changed:
            if self.threads or self.is_closing:
                return
            for number in range(self._number):
                thread = threading.Thread(target=self._run, name=f"elasticq-group-receiver-{number}", daemon=True)
                self.threads.append(thread)
                thread.start()

    def stop(self) -> None:
        """Make the threads and the iterations end."""
        with self._changed:
            self.is_closing = True
            self._changed.notify_all()
            self.on_ready()

    def add(self, held: Held) -> None:
        """Receive from this resource as well."""
        with self._changed:
            self._known[held.token] = held
            self._rotation.append(held)
            self._changed.notify_all()

    def drop(self, held: Held) -> None:
        """Stop receiving from this resource, and return its waiting messages to the queue.

        If an iteration has yielded a message of the resource, ``is_busy`` stays true until that message is done.
        """
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
        """Return whether messages of the resource were received and are neither done nor returned."""
        return token in self._busy

    def let_go(self, owner: object) -> None:
        """Treat the messages that ``owner`` has as done, because it closes the group during its iteration."""
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
        """Return the next batch for an iteration, or None if no batch is ready or the receivers are closing.

        The caller may yield the first message of the batch if this consumer still holds the resource.
        """
        with self._changed:
            if self.is_closing or not self._ready:
                return None
            batch = self._ready.popleft()
            batch.owner = owner
            self._taken.append(batch)
            return batch

    def put_down(self, batch: Batch) -> None:
        """Mark the yielded message of a batch from ``take`` as done.

        Offer the rest of the batch to the iterations if the resource is still held. Else return the rest to the queue.
        """
        with self._changed:
            if batch not in self._taken:
                return
            self._taken.remove(batch)
            if batch.messages and batch.held.token in self._known and batch.held.is_held():
                self._offer(batch)
                return
        self._put_back(batch)

    def _offer(self, batch: Batch) -> None:
        """Offer a batch to the iterations. The caller holds the lock."""
        self._busy.add(batch.held.token)
        self._ready.append(batch)
        self._changed.notify_all()
        self.on_ready()

    # --- where a resource goes next -----------------------------------------------------

    def _put_back(self, batch: Batch) -> None:
        """Return messages that were not yielded to the queue. If that fails, their visibility timeout returns them."""
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
        """Take the next held resource out of the rotation, or return None.

        A resource whose hold is over stays in the rotation, as an answer may prolong the hold.
        """
        if self.is_closing:
            return None
        found = next((each for each in self._rotation if each.is_held()), None)
        if found is not None:
            self._rotation.remove(found)
        return found

    def _failed(self, held: Held, failure: Exception) -> None:
        """Continue after a pause if the failure can pass: the server returns, or a new view lacks this resource.

        End the consumer for any other failure.
        """
        is_passing = isinstance(failure, (Unreachable, DigestMismatch)) or patience.is_transient(failure)
        if is_passing or is_not_holder(failure) or error_code(failure) in GONE:
            with self._changed:
                self._changed.wait_for(lambda: self.is_closing or held.token not in self._known, PAUSE_S)
        else:
            self._fail(failure)
        self._rest(held)
