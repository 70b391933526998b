"""The wildcards of policies: ``*`` matches any text, ``?`` one character."""

from typing import Final

_ARN_PARTS: Final = 6


def is_like(text: str, pattern: str) -> bool:
    """Return whether the text matches the pattern.

    It is no regular expression, because one with many ``*`` can take exponential time.
    """
    at, place, star, tried = 0, 0, -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "*":
            star, tried = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("?", text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:  # let the last * match one more character
            tried += 1
            at, place = tried, star + 1
        else:
            return False
    return not pattern[place:].strip("*")


def arn_parts(text: str) -> list[str]:
    """Return [arn, partition, service, region, account, resource]. Raise ValueError if there are fewer parts."""
    parts = text.split(":", _ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS:
        raise ValueError("an ARN has six parts")
    return parts


def are_alike(parts: list[str], patterns: list[str]) -> bool:
    """Return whether each part of an ARN matches its pattern. So ``*`` does not match a colon between parts."""
    return all(map(is_like, parts, patterns))
