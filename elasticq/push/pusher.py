"""Takes notifications from the inner queues of subscriptions and posts them, while this member is the master.

A notification is an ordinary message of a queue that no client can name: it is replicated, and it is deleted once its
endpoint has taken it. A post that fails makes it invisible until its next attempt; the count of its receives is the
count of its attempts. So it survives crashes and failovers, and may come twice, as it may from SNS.

Each subscription has one worker, which receives a few messages and posts them at the same time: a slow endpoint delays
its own notifications alone, as far as the connections of all reach.
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
from elasticq.push.pace import Pace
from elasticq.push.post import Poster
from elasticq.push.signer import Signer
from elasticq.replication.replica import MASTER
from elasticq.runtime.runtime import Runtime, RuntimeStopped
from elasticq.runtime.ticket import Awaited

LOOK_S: Final = 0.2
"""How often it is looked whether there are other subscriptions than before, or another master."""
AGAIN_S: Final = 1.0
"""After a receive that failed."""
WAIT_S: Final = 20
AT_ONCE: Final = 10
"""Notifications of one subscription that are posted at the same time."""
MARGIN_S: Final = 15
"""A message stays invisible for so much longer than a post may take. AT_ONCE posts at one a second begin within it."""
PRINCIPAL: Final = "topics"
_RECEIVES: Final = "ApproximateReceiveCount"

_log = getLogger(__name__)


class Counts(Struct):
    """What became of the notifications of one topic, since this process began.

    delivered: endpoints took them; retried: attempts that failed and are repeated; failed: given up, among them
    those that a dead-letter queue took.
    """

    delivered: int = 0
    retried: int = 0
    failed: int = 0


class Pusher:
    """Delivers to all subscriptions that are web servers.

    signer: returns the cluster's, and takes a while at the first call, so that it is called outside of the loop;
    timeout_s: how long the poster's posts may take; region: ``node.region``.
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
        self.by_subscription: dict[int, Counts] = {}  # of those that are there, by number

    # --- life -----------------------------------------------------------------------

    def start(self) -> None:
        self._watching = self._loop.create_task(self._watch())

    async def stop(self) -> None:
        """End at once; what is being posted is posted again by the next master, or after the next start."""
        tasks = [*self._workers.values(), *([] if self._watching is None else [self._watching])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._poster.close()

    async def _watch(self) -> None:
        while not self._runtime.stopped:
            self._look()
            await asyncio.sleep(LOOK_S)

    def _look(self) -> None:
        """Have a worker for each subscription that is a web server, and for none where another member is the master."""
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
        """Deliver until the subscription is gone or the task is cancelled."""
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
        """Raises RuntimeStopped."""
        ticket = Awaited()  # what it gets after its end becomes visible again by itself
        self._runtime.submit(Call(command, PRINCIPAL, owner, ""), ticket)
        try:
            return await ticket.outcome
        except asyncio.CancelledError:
            if not self._runtime.stopped:
                self._runtime.cancel(ticket)
            raise

    async def _deliver(self, number: int, message: ReceivedMessage, signer: Signer, pace: Pace) -> None:
        """Post one message once, and act on the outcome. A fault of this server costs that message alone."""
        try:
            await self._attempt(number, message, signer, pace)
        except RuntimeStopped:
            return  # the message is not deleted: it is posted again
        except Exception as fault:
            found = self._found(number)
            if found is not None:
                with suppress(RuntimeStopped):
                    await self._give_up(*found, message, message.body, _place(fault))

    async def _attempt(self, number: int, message: ReceivedMessage, signer: Signer, pace: Pace) -> None:
        """Post one message once, and act on the outcome. Raises RuntimeStopped."""
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
            return  # it was received before it was purged
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
        """A subscription as it is now, since its attributes may have changed, and its topic; None if one is gone."""
        topics = self._runtime.node.state.topics
        subscription = topics.subscription(number)
        topic = None if subscription is None else topics.by_number.get(subscription.row.topic)
        return None if subscription is None or topic is None or topic.row is None else (topic, subscription)

    def _arn(self, topic: Topic) -> str:
        assert topic.row is not None, "it was found"
        return topic_arn(self._region, topic.row.account, topic.row.name)

    def _counts(self, topic: Topic, subscription: Subscription) -> tuple[Counts, Counts]:
        assert topic.row is not None, "it was found"
        of_topic = self.counts.setdefault((topic.row.account, topic.row.name), Counts())
        return of_topic, self.by_subscription.setdefault(subscription.row.number, Counts())

    async def _delete(self, subscription: Subscription, message: ReceivedMessage) -> None:
        owner, name = subscription.target
        await self._call(DeleteMessage(name, message.receipt_handle), owner)

    async def _give_up(
        self, topic: Topic, subscription: Subscription, message: ReceivedMessage, text: str, reason: str
    ) -> None:
        """Move a message to the subscription's dead-letter queue, or drop it. text: of the dead letter.

        A crash in between leaves it in both queues, so that nothing is lost.
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
    """Return where an exception was raised, for the log. Its text stays out, as it may quote the message."""
    frame = extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__} in {frame.name}, {PurePath(frame.filename).name}:{frame.lineno}"


def _wanted(state: State) -> dict[int, Subscription]:
    """The subscriptions that are web servers, but for those that were unsubscribed and have been told so."""
    pushed = state.topics.pushed
    return {number: each for number, each in pushed.items() if not each.row.is_left or _waits(state, each)}


def _waits(state: State, subscription: Subscription) -> bool:
    queue = state.names.get(subscription.target)
    return queue is not None and queue.count > 0


def _policy(topic: Topic, subscription: Subscription) -> DeliveryPolicy:
    """The default where an older version let in a policy that this one cannot read."""
    assert topic.row is not None, "a deleted topic delivers nothing"
    try:
        return in_force(
            topic.row.attributes.get("DeliveryPolicy", ""), subscription.row.attributes.get("DeliveryPolicy", "")
        )
    except InvalidDeliveryPolicy:
        return DEFAULT
