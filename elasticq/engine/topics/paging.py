"""NextTokens of lists of topics and subscriptions, opaque to clients.

A token is the position after which the next page starts. So a page omits nothing if items are deleted between pages.
"""

from base64 import b64decode, b64encode

from elasticq.model.errors import invalid_parameter


def token_of(position: str) -> str:
    return b64encode(position.encode()).decode("ascii")


def read_token(token: str | None) -> str:
    """Return the position in a token; empty for the first page. Raise InvalidParameter if the token is malformed."""
    if not token:
        return ""
    try:
        return b64decode(token.encode("ascii"), validate=True).decode("utf-8")
    except ValueError:
        raise invalid_parameter("NextToken") from None


def read_number(token: str | None) -> int:
    """Return the position in a token of a list ordered by number; 0 for the first page.

    Raise InvalidParameter if the token is malformed.
    """
    text = read_token(token)
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise invalid_parameter("NextToken")
    return int(text)
