"""The body of POST /cluster/orders: each order there is, and what is none."""

import pytest

from elasticq.admin.orders import BadOrder, read_order
from elasticq.node.orders import AddVoter, Order, RemoveVoter, ReplaceVoter, TransferMastership, VerifyRows


@pytest.mark.parametrize(
    ("body", "order"),
    [
        (b'{"order": "add", "member": "n4"}', AddVoter("n4")),
        (b'{"order": "remove", "member": "n4"}', RemoveVoter("n4")),
        (b'{"order": "replace", "member": "n4"}', ReplaceVoter("n4")),
        (b'{"order": "transfer", "member": "n2"}', TransferMastership("n2")),
        (b'{"order": "transfer"}', TransferMastership("")),
        (b'{"order": "verify"}', VerifyRows()),
    ],
)
def test_each_order_is_read(body: bytes, order: Order) -> None:
    assert read_order(body) == order


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"order": "add"}', "the order add needs a member"),
        (b'{"order": "verify", "member": "n2"}', "the order verify takes no member"),
        (b'{"order": "stop"}', "stop"),
        (b'{"order": "transfer", "to": "n2"}', "unknown field `to`"),
        (b'{"order": "remove", "member": "%b"}' % (b"x" * 129), "length <= 128"),
        (b"\xff", ""),
        (b"[" * 100_000, ""),
    ],
)
def test_what_is_no_order_is_told(body: bytes, told: str) -> None:
    with pytest.raises(BadOrder) as caught:
        read_order(body)
    assert told in str(caught.value)
