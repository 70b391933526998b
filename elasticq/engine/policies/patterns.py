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
    parts = arn_patterns(text)
    if parts is None:
        raise ValueError("an ARN has six parts")
    return parts


def arn_patterns(text: str) -> list[str] | None:
    """Return the pattern of each part of an ARN, or None if the text is no ARN. AWS stores such texts, too."""
    parts = text.split(":", _ARN_PARTS - 1)
    return parts if len(parts) == _ARN_PARTS else None


def are_alike(parts: list[str], patterns: list[str] | None) -> bool:
    """Return whether each part of an ARN matches its pattern. So ``*`` does not match a colon between parts.

    No ARN matches None.
    """
    return patterns is not None and all(map(is_like, parts, patterns))
