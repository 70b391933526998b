"""Pages of queue names: MaxResults, NextToken. A token says after which name to go on; to clients it is opaque."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from itertools import islice

from elasticq.model import limits
from elasticq.model.errors import InvalidParameterValue


def page(
    names_behind: Callable[[str], Iterable[str]], max_results: int | None, token: str | None
) -> tuple[list[str], str | None]:
    """The next names in order, and the token for those behind them, which AWS gives only where MaxResults was given.

    names_behind: in order, those that come behind a name; no more of them are asked for than are shown, and one.
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
    """The token of a page that ends with this name."""
    return urlsafe_b64encode(name.encode()).decode("ascii")


def read_token(token: str | None) -> str:
    """The name behind which a page begins; empty for the first page. Raises InvalidParameterValue."""
    if not token:
        return ""
    try:
        return urlsafe_b64decode(token.encode("ascii")).decode("utf-8")
    except ValueError:
        raise InvalidParameterValue("Invalid or expired NextToken value.") from None
