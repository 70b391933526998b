"""A call that is passed on says all that the master needs to judge it."""

import pytest

from elasticq.model.commands import Call, DeleteMessage, ListQueues, Origin
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.results import EmptyResult, ListQueuesResult, QueueUrlResult
from elasticq.node.forwarding import Forward, call_of, decode, encode, fits, forward_of


@pytest.mark.parametrize("origin", [None, Origin("10.1.2.3", True)])
def test_a_call_arrives_as_it_was_sent(origin: Origin | None) -> None:
    """With where it came from: a policy that is not asked on the way through a follower would be none."""
    call = Call(ListQueues(queue_name_prefix="a"), "AKID", "111111111111", "http://h", b"i" * 16, origin)
    forwarded = decode(encode(forward_of(call, "c", "a-1", "b-1", "incarnation", 7)))
    assert isinstance(forwarded, Forward)
    assert call_of(forwarded) == call


def test_an_answer_fits_the_command_that_it_was_asked_by() -> None:
    """What another member says of a call is believed only where the call can have that answer."""
    assert fits(ListQueuesResult(), ListQueues())
    assert fits(EmptyResult(), DeleteMessage())
    assert not fits(QueueUrlResult("u"), ListQueues())
    assert not fits(EmptyResult(), ListQueues())
    assert not fits(QueueUrlResult("u"), DeleteMessage())
    assert fits(ServiceUnavailable("no master"), ListQueues())
