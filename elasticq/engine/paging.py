"""Pages of queue names (MaxResults, NextToken). A token is the encoded last name of a page, opaque to clients."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from itertools import islice

from elasticq.model import limits
from elasticq.model.errors import InvalidParameterValue


def page(
    names_behind: Callable[[str], Iterable[str]], max_results: int | None, token: str | None
) -> tuple[list[str], str | None]:
    """Return the names of a page, in order, and the token of the next page.

    The token is None if no names follow, or if the client gave no MaxResults (as in AWS).
    names_behind: yields the names that follow a name, in order; at most page size + 1 of them are consumed.
    Raise InvalidParameterValue if MaxResults or the token is invalid.
    """
    if max_results is not None and not 1 <= max_results <= limits.LIST_RESULTS_MAX:
        raise InvalidParameterValue(
            f"Value {max_results} for parameter MaxResults is invalid. Reason: Must be between 1 and 1000, if provided."
        )
    size = limits.LIST_RESULTS_MAX if max_results is None else max_results
    ahead = list(islice(names_behind(read_token(token)), size + 1))
    if max_results is None or len(ahead) <= size:
        return ahead[:size], None
    return ahead[:size], token_of(ahead[size - 1])


def token_of(name: str) -> str:
    """Return the token of the page that follows this name."""
    return urlsafe_b64encode(name.encode()).decode("ascii")


def read_token(token: str | None) -> str:
    """Return the name after which a page begins; empty for the first page.

    Raise InvalidParameterValue if the token is malformed.
    """
    if not token:
        return ""
    try:
        return urlsafe_b64decode(token.encode("ascii")).decode("utf-8")
    except ValueError:
        raise InvalidParameterValue("Invalid or expired NextToken value.") from None
