"""The parser of operators' orders to a cluster, such as adding a voter: the body of POST /cluster/orders."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from elasticq.node.orders import AddVoter, Order, RemoveVoter, ReplaceVoter, TransferMastership, VerifyRows


class BadOrder(Exception):
    """A request body that is not a valid operator's order. The exception's text is the reason."""


class _Request(Struct, forbid_unknown_fields=True):
    order: Literal["add", "remove", "replace", "transfer", "verify"]
    member: Annotated[str, Meta(max_length=128)] = ""


_ABOUT_A_MEMBER: Final[dict[str, type[AddVoter | RemoveVoter | ReplaceVoter]]] = {
    "add": AddVoter,
    "remove": RemoveVoter,
    "replace": ReplaceVoter,
}
_decoder: Final = msgspec.json.Decoder(_Request)


def read_order(body: bytes) -> Order:
    """Return the order in a request's body. Raise BadOrder if it is malformed."""
    try:
        request = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadOrder(str(error)) from error
    kind = _ABOUT_A_MEMBER.get(request.order)
    if kind is not None:
        if not request.member:
            raise BadOrder(f"the order {request.order} needs a member")
        return kind(request.member)
    if request.order == "transfer":
        return TransferMastership(request.member)
    if request.member:
        raise BadOrder("the order verify takes no member: it is for all members")
    return VerifyRows()
