"""Looks through a queue, in parts, for messages that wait for their time."""

from typing import Any, Final

from elasticq.admin.calls import Ask

PAGE: Final = 100
LOOKS_MAX: Final = 10
"""Parts of a queue, of 10,000 places each, that one request looks at."""


async def found(ask: Ask, queue_url: str, first: int) -> tuple[list[dict[str, Any]], int | None]:
    """Return some PAGE messages that wait for their time, by that time, and the sequence where to go on looking.

    The sequence is None once the end of the queue is reached. What follows from the queue's own delay has no time
    of its own, and stands at the end. Raises NotExecuted.
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
