"""NextTokens of lists of topics and subscriptions: after what the next page goes on, opaque to clients.

A token is a position, so that nothing is left out when something is deleted between two pages.
"""

from base64 import b64decode, b64encode

from elasticq.model.errors import invalid_parameter


def token_of(position: str) -> str:
    return b64encode(position.encode()).decode("ascii")


def read_token(token: str | None) -> str:
    """The position; empty for the first page. Raises InvalidParameter."""
    if not token:
        return ""
    try:
        return b64decode(token.encode("ascii"), validate=True).decode("utf-8")
    except ValueError:
        raise invalid_parameter("NextToken") from None


def read_number(token: str | None) -> int:
    """The position of a list by numbers; 0 for the first page. Raises InvalidParameter."""
    text = read_token(token)
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise invalid_parameter("NextToken")
    return int(text)
