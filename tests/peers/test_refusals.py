"""When a refusal of this member's name is final."""

from elasticq.peers.refusal_log import Refusals


def test_a_refusal_is_final_only_when_it_lasts() -> None:
    refusals = Refusals()
    assert [refusals.is_final(at_s) for at_s in (100, 101, 103, 103.1)] == [False, False, False, True]
    assert not refusals.is_final(200)
    assert not refusals.is_final(203)
    assert not refusals.is_final(300)
