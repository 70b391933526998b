"""What an error of a link says of itself."""

from elasticq.peers.errors import PeerError, Unreachable


def test_an_unreachable_address_is_told_with_the_cause_and_the_cause_alone() -> None:
    error = Unreachable("10.0.0.3:9326", "connection refused")
    assert isinstance(error, PeerError)
    assert (str(error), error.why) == ("10.0.0.3:9326: connection refused", "connection refused")
