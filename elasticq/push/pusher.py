"""The workers that post notifications from the inner queues of subscriptions, while this member is the master.

A notification is an ordinary replicated message of an inner queue. The worker deletes it after the endpoint accepted
it. After a failed post the message stays invisible until its next attempt. Its receive count is the number of its
attempts. Therefore notifications survive crashes and failovers, and may be delivered twice, as with SNS.

Each subscription has one worker. A worker receives up to AT_ONCE messages and posts them at the same time. A slow
endpoint delays only its own notifications, unless it uses up the connections that all workers share.
"""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from logging import getLogger
from pathlib import PurePath
from traceback import extract_tb
from typing import Final

from msgspec import Struct

from elasticq.engine.state import State
from elasticq.engine.stored.delivery_policies import DEFAULT, DeliveryPolicy, InvalidDeliveryPolicy, in_force
from elasticq.engine.stored.envelopes import FAREWELL, NOTIFICATION
from elasticq.engine.stored.topic_index import Subscription, Topic
from elasticq.model.commands import Call, ChangeMessageVisibility, Command, DeleteMessage, ReceiveMessage, SendMessage
from elasticq.model.errors import QueueDoesNotExist, SqsError
from elasticq.model.names import topic_arn
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult, Result
from elasticq.push.notification import GROUP, kind_of, posted
from elasticq.push.post import Poster
from elasticq.push.signer import Signer
from elasticq.replication.replica import MASTER
from elasticq.runtime.runtime import Runtime, RuntimeStopped
from elasticq.runtime.ticket import Awaited


class Pace:
    """A schedule that spaces posts evenly. Times are in seconds of any monotonic clock."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def wait_s(self, now_s: float, per_second: int | None) -> float:
        """Return how many seconds the next post must wait, and count that post. per_second None: no limit."""
        if per_second is None:
            return 0.0
        at_s = max(now_s, self._next_s)
        self._next_s = at_s + 1 / per_second
        return at_s - now_s


LOOK_S: Final = 0.2
"""The interval at which the pusher checks for changed subscriptions and a changed master, in seconds."""
AGAIN_S: Final = 1.0
"""The pause of a worker after a failed receive, in seconds."""
WAIT_S: Final = 20
AT_ONCE: Final = 10
"""The maximum number of notifications of one subscription that are posted at the same time."""
MARGIN_S: Final = 15
"""Extra visibility timeout beyond the post timeout, in seconds. AT_ONCE posts at one per second all begin within it."""
PRINCIPAL: Final = "topics"
_RECEIVES: Final = "ApproximateReceiveCount"

_log = getLogger(__name__)


class Counts(Struct):
    """The number of notifications of one topic or subscription by outcome, since this process started.

    delivered: accepted by endpoints. retried: failed attempts that are repeated. failed: given up, including those
    that were moved to a dead-letter queue. error: why the last failed attempt failed.
    """

    delivered: int = 0
    retried: int = 0
    failed: int = 0
    error: str = ""


class Pusher:
    """The delivery of notifications to all subscribed web servers.

    signer: returns the cluster's signer. Its first call is slow, so workers call it in a thread.
    timeout_s: the poster's timeout for one post. region: the ``node.region`` setting.
    """

    def __init__(
        self,
        runtime: Runtime,
        poster: Poster,
        loop: AbstractEventLoop,
        *,
        signer: Callable[[], Signer],
        timeout_s: int,
        region: str,
    ) -> None:
        self._runtime = runtime
        self._poster = poster
        self._loop = loop
        self._signer = signer
        self._timeout_s = timeout_s
        self._region = region
        self._workers: dict[int, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None
        self.counts: dict[tuple[str, str], Counts] = {}  # by owner and name of the topic
        self.by_subscription: dict[int, Counts] = {}  # of existing subscriptions, by their number

    # --- life -----------------------------------------------------------------------

    def start(self) -> None:
        self._watching = self._loop.create_task(self._watch())

    async def stop(self) -> None:
        """Stop at once. The next master, or this process after a restart, repeats posts that were interrupted."""
        tasks = [*self._workers.values(), *([] if self._watching is None else [self._watching])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._poster.close()

    async def _watch(self) -> None:
        while not self._runtime.stopped:
            self._update_workers()
            await asyncio.sleep(LOOK_S)

    def _update_workers(self) -> None:
        """Start and cancel workers: one for each subscribed web server, or none if another member is the master."""
        node = self._runtime.node
        wanted = _wanted(node.state) if node.replica.role == MASTER else {}
        for number in [number for number, task in self._workers.items() if number not in wanted or task.done()]:
            self._workers.pop(number).cancel()
        if len(self.by_subscription) > len(node.state.topics.pushed):
            self.by_subscription = {
                number: counts for number, counts in self.by_subscription.items() if number in node.state.topics.pushed
            }
        for number, subscription in wanted.items():
            if number not in self._workers:
                self._workers[number] = self._loop.create_task(self._work(subscription))

    # --- one subscription -------------------------------------------------------------

    async def _work(self, subscription: Subscription) -> None:
        """Deliver notifications until the subscription is gone or the task is cancelled."""
        owner, name = subscription.target
        receive = ReceiveMessage(
            name,
            message_system_attribute_names=[_RECEIVES, GROUP],
            message_attribute_names=["All"],
            max_number_of_messages=AT_ONCE,
            visibility_timeout=self._timeout_s + MARGIN_S,
            wait_time_seconds=WAIT_S,
        )
        signer, pace = await asyncio.to_thread(self._signer), Pace()
        while True:
            try:
                outcome = await self._call(receive, owner)
            except RuntimeStopped:
                return
            if isinstance(outcome, QueueDoesNotExist):
                return
            if not isinstance(outcome, ReceiveMessageResult):
                await asyncio.sleep(AGAIN_S)
                continue
            if outcome.messages:
                number = subscription.row.number
                delivering = [self._deliver(number, each, signer, pace) for each in outcome.messages]
                for fault in await asyncio.gather(*delivering, return_exceptions=True):
                    if fault is not None:
                        _log.error("notification_failed", extra={"fields": {"reason": _place(fault)}})

    async def _call(self, command: Command, owner: str) -> Result | SqsError:
        """Return the result or the error of a command. Raise RuntimeStopped if the process stops.

        If the task is cancelled, cancel the call, too. If a receive was already executed, its messages become visible
        again after their visibility timeout.
        """
        ticket = Awaited()
        self._runtime.submit(Call(command, PRINCIPAL, owner, ""), ticket)
        try:
            return await ticket.outcome
        except asyncio.CancelledError:
            if not self._runtime.stopped:
                self._runtime.cancel(ticket)
            raise

    async def _deliver(self, number: int, message: ReceivedMessage, signer: Signer, pace: Pace) -> None:
        """Post one message once and act on the outcome. If the server itself fails, give up only this message."""
        try:
            await self._attempt(number, message, signer, pace)
        except RuntimeStopped:
            return  # the message is not deleted, so it is posted again later
        except Exception as fault:
            found = self._found(number)
            if found is not None:
                with suppress(RuntimeStopped):
                    await self._give_up(*found, message, message.body, _place(fault))

    async def _attempt(self, number: int, message: ReceivedMessage, signer: Signer, pace: Pace) -> None:
        """Post one message once and act on the outcome. Raise RuntimeStopped if the process stops."""
        found = self._found(number)
        if found is None:
            return  # its queue is being deleted
        policy = _policy(*found)
        wait_s = pace.wait_s(self._loop.time(), policy.per_second)
        if wait_s:
            await asyncio.sleep(wait_s)
            found = self._found(number)
            if found is None:
                return
            policy = _policy(*found)
        topic, subscription = found
        kind = kind_of(message)
        if subscription.row.is_left and kind != FAREWELL:
            return  # the unsubscription purged the queue after this message was received
        arn = self._arn(topic)
        request = posted(
            message,
            topic_arn=arn,
            subscription_arn=f"{arn}:{subscription.row.key}",
            content_type=policy.content_type,
            signer=signer,
        )
        outcome = await self._poster.post(subscription.row.endpoint, request.headers, request.text.encode())
        if self._found(number) is None:
            return
        if not outcome.is_done:
            for counts in self._counts(topic, subscription):
                counts.error = outcome.reason
        retry = int((message.attributes or {}).get(_RECEIVES, "1"))
        delay_s = None if outcome.is_final else policy.delay_s(retry)
        if outcome.is_done:
            for counts in self._counts(topic, subscription):
                counts.delivered += kind == NOTIFICATION
            await self._delete(subscription, message)
        elif delay_s is not None:
            for counts in self._counts(topic, subscription):
                counts.retried += 1
            later = ChangeMessageVisibility(subscription.target[1], message.receipt_handle, round(delay_s))
            await self._call(later, subscription.target[0])
        else:
            await self._give_up(topic, subscription, message, request.text, outcome.reason)

    def _found(self, number: int) -> tuple[Topic, Subscription] | None:
        """Return the current topic and subscription with their current attributes. None if either one is gone."""
        topics = self._runtime.node.state.topics
        subscription = topics.subscription(number)
        topic = None if subscription is None else topics.by_number.get(subscription.row.topic)
        return None if subscription is None or topic is None or topic.row is None else (topic, subscription)

    def _arn(self, topic: Topic) -> str:
        assert topic.row is not None, "_found returns only topics that have a row"
        return topic_arn(self._region, topic.row.account, topic.row.name)

    def _counts(self, topic: Topic, subscription: Subscription) -> tuple[Counts, Counts]:
        assert topic.row is not None, "_found returns only topics that have a row"
        of_topic = self.counts.setdefault((topic.row.account, topic.row.name), Counts())
        return of_topic, self.by_subscription.setdefault(subscription.row.number, Counts())

    async def _delete(self, subscription: Subscription, message: ReceivedMessage) -> None:
        owner, name = subscription.target
        await self._call(DeleteMessage(name, message.receipt_handle), owner)

    async def _give_up(
        self, topic: Topic, subscription: Subscription, message: ReceivedMessage, text: str, reason: str
    ) -> None:
        """Move a message to the subscription's dead-letter queue, or drop it if there is none.

        text: the body of the dead letter. After a crash between send and delete, the message is in both queues.
        """
        arn = self._arn(topic)
        for counts in self._counts(topic, subscription):
            counts.failed += 1
        dead_letters = subscription.dead_letters if kind_of(message) == NOTIFICATION else None
        moved: Result | SqsError | None = None
        if dead_letters is not None:
            owner, name = dead_letters
            moved = await self._call(SendMessage(name, text, message_attributes=message.message_attributes), owner)
        fields = {
            "topic": arn,
            "subscription": subscription.row.key,
            "message_id": message.message_id,
            "reason": reason,
            "dead_letter_queue": "" if dead_letters is None else dead_letters[1],
        }
        if isinstance(moved, SqsError):
            fields["dead_letter_queue_refused"] = moved.message
        event = "notification_dead_letter" if isinstance(moved, Result) else "notification_dropped"
        _log.warning(event, extra={"fields": fields})
        await self._delete(subscription, message)


def _place(fault: BaseException) -> str:
    """Return the type and the place of an exception, for the log. Leave out its text: it may quote the message."""
    frame = extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__} in {frame.name}, {PurePath(frame.filename).name}:{frame.lineno}"


def _wanted(state: State) -> dict[int, Subscription]:
    """Return the subscribed web servers by number. Skip those that received their UnsubscribeConfirmation."""
    pushed = state.topics.pushed
    return {number: each for number, each in pushed.items() if not each.row.is_left or _has_messages(state, each)}


def _has_messages(state: State, subscription: Subscription) -> bool:
    """Return whether a subscription's inner queue has messages."""
    queue = state.names.get(subscription.target)
    return queue is not None and queue.count > 0


def _policy(topic: Topic, subscription: Subscription) -> DeliveryPolicy:
    """Return the delivery policy in force. Return the default if an older version stored an unreadable policy."""
    assert topic.row is not None, "a deleted topic delivers nothing"
    try:
        return in_force(
            topic.row.attributes.get("DeliveryPolicy", ""), subscription.row.attributes.get("DeliveryPolicy", "")
        )
    except InvalidDeliveryPolicy:
        return DEFAULT
