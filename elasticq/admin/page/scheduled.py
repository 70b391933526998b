"""The search for messages of a queue that wait for their delivery time."""

from typing import Any, Final

from elasticq.admin.calls import Ask

PAGE: Final = 100
LOOKS_MAX: Final = 10
"""The number of Peek calls of one request. Each searches at most 10,000 messages."""


async def found(ask: Ask, queue_url: str, first: int) -> tuple[list[dict[str, Any]], int | None]:
    """Return about PAGE messages that wait for their delivery time, sorted by it, and the next sequence to search.

    The sequence is None at the end of the queue. Messages that wait because of the queue's delay have no time of
    their own and come last. Raise NotExecuted if the queue cannot be read.
    """
    messages: list[dict[str, Any]] = []
    following: int | None = first
    for _ in range(LOOKS_MAX):
        given = {"QueueUrl": queue_url, "FromSequence": following, "Limit": PAGE, "States": ["delayed"]}
        page = await ask("Peek", given)
        messages += page["Messages"]
        following = page["NextSequence"]
        if following is None or len(messages) >= PAGE:
            break
    return sorted(messages, key=_order), following


def _order(message: dict[str, Any]) -> tuple[bool, int, int]:
    return "DeliverAt" not in message, message.get("DeliverAt", 0), message["Sequence"]
