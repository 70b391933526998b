"""A consumer of a group: the server assigns the group's queues to its consumers, each queue to only one.

A consumer has three threads. One sends a heartbeat every few seconds, which prolongs the session and releases stopped
resources. One waits at the server for changes. One makes the callbacks, one after another. group_state.py makes their
decisions. Further threads receive messages once a program iterates over the group (group_messages.py).
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self
from uuid import uuid4

from elasticq.client.calls import Members
from elasticq.client.errors import ClientError, SqsError, Unreachable
from elasticq.client.fencing import error_code
from elasticq.client.group_calls import GroupCalls
from elasticq.client.group_held import Held, Message
from elasticq.client.group_messages import Receivers
from elasticq.client.group_state import RETRY_MS, Ask, GroupState, View
from elasticq.client.retries import Retries, is_transient
from elasticq.client.sqs import Sqs

JOIN_S: Final = 30.0
WATCH_S: Final = 20
CALL_READ_S: Final = 5.0
UNKNOWN_CONSUMER: Final = "ElasticqUnknownConsumer"

Callback = Callable[[Held], object]


_SLEEPS_TOO: Final = getattr(time, "CLOCK_BOOTTIME", None)
"""The monotonic clock of Linux that also counts while the machine sleeps. ``monotonic`` does not."""


def now_ms() -> float:
    """Return the time of a monotonic clock of this machine in milliseconds, including the time for which it slept."""
    return (time.monotonic() if _SLEEPS_TOO is None else time.clock_gettime(_SLEEPS_TOO)) * 1_000


class Group:
    """A consumer of one group, while its context is entered. Threads may share it.

    on_assigned and on_revoked are called with a Held, one at a time, in a thread of the group. A revoked resource is
    released for other consumers when on_revoked has returned and all its yielded messages are done. An exception in a
    callback ends the consumer. The iteration, ``wait`` and the end of the context then raise it.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        *,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        weight: int = 1,
        consumer_name: str = "",
        endpoints: Iterable[str] = (),
        admin: Iterable[str] = (),
        verify: bool | str = True,
        receivers: int = 16,
        receive: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Prepare a consumer, which joins when the context is entered.

        client: an endpoint, a light client or a boto3 client, also one from ``wrap``. weight: how many resources this
        consumer gets, relative to the weights of the others, 0 to 1,000. endpoints, admin and verify: as for ``wrap``.
        receivers: how many threads receive for iterations. receive: members of their ReceiveMessage, such as
        VisibilityTimeout.
        """
        self.name = name
        self._calls = GroupCalls(client, endpoints, admin, verify)
        self.messages = self._calls.messages
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._weight, self._consumer_name = weight, consumer_name
        self._state = GroupState()
        self._held: dict[int, Held] = {}
        self._changed = threading.Condition()
        self._is_closing = False
        self._revoked: set[int] = set()  # on_revoked has returned
        self._stuck: set[int] = set()  # on_revoked failed, so the program may still work on the resource
        self._is_broken = False  # the thread of the callbacks has failed
        self._failure: BaseException | None = None
        self._join_id = ""
        self._join_sent_ms = 0.0
        self._process_id = os.getpid()
        self._threads: list[threading.Thread] = []
        self._is_leaving = False  # a thread has begun close()
        self._has_left = False
        self.receivers = Receivers(self._changed, self.messages, receivers, receive, self._fail, self._settle)

    # --- what is held -------------------------------------------------------------------

    @property
    def held(self) -> Mapping[str, Held]:
        """Return the resources that are held and whose on_assigned has returned, by name."""
        with self._changed:
            return {each.resource: each for each in self._held.values() if each.is_held()}

    @property
    def consumer_id(self) -> str:
        """Return the id that the server gave to this consumer; empty without a session."""
        return self._state.view.consumer_id

    @property
    def generation(self) -> int:
        """Return how often the server had assigned the group's resources again, as of its last answer."""
        return self._state.view.generation

    @property
    def hold_until_s(self) -> float:
        """Return the time, by ``time.monotonic()``, at which this consumer stops unless a heartbeat is answered."""
        return time.monotonic() + (self._state.hold_until_ms - now_ms()) / 1_000

    def may_act(self, token: int) -> bool:
        """Return whether new work with this token may begin, as Held.is_held does."""
        if self._is_forked():
            return False
        with self._changed:
            return self._state.may_act(token, now_ms())

    def may_finish(self, token: int) -> bool:
        """Return whether begun work with this token may be finished, as Held.may_finish does."""
        if self._is_forked():
            return False
        with self._changed:
            return self._state.may_finish(token, now_ms())

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the consumer ends, and return whether it has. Raise the error that ended it, if any."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing, timeout_s)
            if self._failure is not None:
                raise self._failure
            return self._is_closing

    def __iter__(self) -> Iterator[Message]:
        """Yield messages of all resources that are held, also later ones, until the consumer ends.

        A message is done when the next one is requested. Only one message of a resource is yielded at a time, so
        several threads can iterate and keep the order of a resource.
        """
        if self._is_forked():
            raise RuntimeError("this consumer lives in the process that forked this one: make a Group of its own here")
        self.receivers.start()
        yield from self.receivers
        if self._failure is not None:
            raise self._failure

    # --- life ---------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.join()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if failure is None and self._failure is not None:
            raise self._failure

    def join(self) -> None:
        """Join the group and start the threads. Do nothing if the consumer has joined.

        Raise SqsError, such as ElasticqGroupDoesNotExist, or Unreachable.
        """
        if self._threads and not self._has_left:
            return
        self._process_id = os.getpid()
        self._threads, self._is_leaving, self._has_left = [], False, False
        retries = Retries(JOIN_S)
        while not self._state.view.consumer_id:
            try:
                self._ask(self._state.ask(now_ms()))
            except (ClientError, OSError) as failure:
                if self._is_closing or not retries.wait(failure):
                    raise
        for run in (self._renew, self._watch, self._act):
            thread = threading.Thread(
                target=self._guarded, args=(run,), name=f"elasticq-group{run.__name__}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Stop all work, with on_revoked for all that is held, and leave the group. Others then get the resources.

        Wait for messages that iterations in other threads have, and for another thread in ``close``. Return at once in
        a callback, and in a forked process. A thread for which on_revoked waits must call ``end`` instead.
        """
        if self._is_forked():
            return
        self.end()
        if threading.current_thread() in self._threads:
            return
        self.receivers.let_go(threading.get_ident())
        with self._changed:
            if self._is_leaving:
                self._changed.wait_for(lambda: self._has_left)
                return
            if not self._threads:
                return
            self._is_leaving = True
        try:
            self._leave()
        finally:
            with self._changed:
                self._has_left = True
                self._changed.notify_all()

    def end(self) -> None:
        """Begin to end the consumer, and return at once. Any thread and callback may call this before ``close``.

        No new work begins, iterations end, and on_revoked is called for all that is held.
        """
        with self._changed:
            self._is_closing = True
            self._state.close()
            self.receivers.stop()

    def _leave(self) -> None:
        """Wait until all work has stopped, then leave the group.

        Wait at most CALL_READ_S for the answer, and then at most CALL_READ_S for the threads to end.
        """
        with self._changed:
            self._changed.wait_for(self._has_stopped)
            consumer_id = self._state.view.consumer_id
            self._state.lost(consumer_id)
            self._changed.notify_all()
        if consumer_id and not self._stuck and not self._is_broken:
            with suppress(ClientError, OSError):  # then the end of the session releases the resources
                self._calls.try_once(
                    lambda sqs: sqs.leave_group(GroupName=self.name, ConsumerId=consumer_id), CALL_READ_S
                )
        until_s = time.monotonic() + CALL_READ_S
        for thread in (*self._threads, *self.receivers.threads):
            thread.join(max(0.0, until_s - time.monotonic()))
        self._calls.close()

    def _has_stopped(self) -> bool:
        """Return whether the consumer is closing and no resource is worked on, except those whose stop failed."""
        return self._is_closing and (self._is_broken or self._state.acting == len(self._stuck))

    def _is_forked(self) -> bool:
        """Return whether this is a forked child of the consumer's process, without the threads that stop work."""
        return self._process_id != os.getpid()

    def _fail(self, failure: BaseException) -> None:
        with self._changed:
            if self._failure is None:
                self._failure = failure
        self.end()

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as failure:
            with self._changed:
                self._is_broken |= run == self._act
            self._fail(failure)

    # --- heartbeats ---------------------------------------------------------------------

    def _renew(self) -> None:
        while True:
            with self._changed:
                if self._has_stopped():
                    return
                pause_ms = self._state.ask_ms() - now_ms()
                if pause_ms > 0:
                    self._changed.wait(pause_ms / 1_000)
                    continue
                if self._is_closing and not self._state.view.consumer_id:
                    self._changed.wait()  # a closing consumer does not join again; it stops its assignments first
                    continue
                ask = self._state.ask(now_ms())
            try:
                self._ask(ask)
            except (ClientError, OSError) as failure:
                if not is_transient(failure):
                    raise

    def _ask(self, ask: Ask) -> None:
        """Send one call and take its answer. Raise its error, unless that only means that the session is over."""
        sent_ms = now_ms()
        try:
            if not ask.consumer_id:
                view = self._join()
                sent_ms = self._join_sent_ms
            elif ask.released:
                view = self._heartbeat(ask.consumer_id, Released=ask.released)
            else:
                view = self._heartbeat(ask.consumer_id)
        except Exception as failure:
            with self._changed:
                self._state.failed(now_ms())
                if not self._is_over(failure, ask.consumer_id):
                    raise
            return
        with self._changed:
            if ask.consumer_id:
                self._state.answered(view, sent_ms)
            else:
                self._state.joined(view, sent_ms)
            self._changed.notify_all()

    def _join(self) -> View:
        """Join the group. All tries until an answer have one invocation id, so they make one consumer.

        The consumer counts its session from the first try, as the server may have executed that one.
        """
        if not self._join_id:
            self._join_id, self._join_sent_ms = str(uuid4()), now_ms()
        given: dict[str, Any] = {"GroupName": self.name, "Weight": self._weight}
        if self._consumer_name:
            given["ConsumerName"] = self._consumer_name
        try:
            view = self._view(lambda sqs: sqs.join_group(invocation_id=self._join_id.encode(), **given), CALL_READ_S)
        except SqsError as failure:
            if not is_transient(failure):
                self._join_id = ""
            raise
        self._join_id = ""
        return view

    def _heartbeat(self, consumer_id: str, **more: Any) -> View:
        read_s = CALL_READ_S + more.get("WaitTimeSeconds", 0)
        return self._view(lambda sqs: sqs.heartbeat(GroupName=self.name, ConsumerId=consumer_id, **more), read_s)

    def _view(self, call: Callable[[Sqs], Members], read_s: float) -> View:
        answer = self._calls.try_once(call, read_s)
        try:
            return View.read(answer)
        except (KeyError, TypeError, ValueError) as failure:
            raise Unreachable("the answer is no view of a group: something else answers there") from failure

    def _is_over(self, failure: Exception, consumer_id: str) -> bool:
        """Return whether a failure means that the consumer's session is over; if so, drop it. The lock must be held."""
        if not consumer_id or error_code(failure) != UNKNOWN_CONSUMER:
            return False
        self._state.lost(consumer_id)
        self._changed.notify_all()
        return True

    def _watch(self) -> None:
        """Wait at the server for changes, which heartbeats would report later."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing or bool(self._state.view.consumer_id))
                if self._is_closing:
                    return
                view = self._state.view
            sent_ms = now_ms()
            try:
                newer = self._heartbeat(view.consumer_id, KnownVersion=view.version, WaitTimeSeconds=WATCH_S)
            except (ClientError, OSError) as failure:
                with self._changed:
                    if self._is_over(failure, view.consumer_id) or self._is_closing:
                        continue
                    if not is_transient(failure):
                        raise
                    self._changed.wait(CALL_READ_S / 5)
                continue
            with self._changed:
                self._state.answered(newer, sent_ms)
                self._changed.notify_all()
                if newer.version <= view.version and now_ms() - sent_ms < RETRY_MS:
                    self._changed.wait(RETRY_MS / 1_000)  # an early answer without news: do not ask at once again

    # --- callbacks ----------------------------------------------------------------------

    def _act(self) -> None:
        while True:
            with self._changed:
                if self._has_stopped():
                    return
                steps = self._state.next_steps(now_ms())
                if not steps.stop and not steps.start:
                    wake_ms = self._state.wake_ms(now_ms())
                    self._changed.wait(None if wake_ms is None else max(0.001, (wake_ms - now_ms()) / 1_000))
                    continue
            for assignment in steps.stop:
                self._stop(self._held[assignment.token])
            for assignment in steps.start:
                self._start(Held(self.name, assignment, self.messages, self.may_act, self.may_finish))

    def _start(self, held: Held) -> None:
        try:
            if self._on_assigned is not None:
                self._on_assigned(held)
        except BaseException as failure:  # including sys.exit() and pytest.fail(), which a thread would hide
            self._fail(failure)  # on_revoked follows, as on_assigned may have begun work
        with self._changed:
            self._held[held.token] = held
            self._state.started(held.token)
            self.receivers.add(held)

    def _stop(self, held: Held) -> None:
        self.receivers.drop(held)
        try:
            if self._on_revoked is not None:
                self._on_revoked(held)
        except BaseException as failure:
            with self._changed:
                self._stuck.add(held.token)
            self._fail(failure)
            return
        with self._changed:
            self._revoked.add(held.token)
            self._settle(held.token)

    def _settle(self, token: int) -> None:
        """Mark the resource as stopped if its on_revoked has returned and all its received messages are done."""
        if token in self._revoked and not self.receivers.is_busy(token):
            self._revoked.discard(token)
            del self._held[token]
            self._state.stopped(token)
            self._changed.notify_all()
