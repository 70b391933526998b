"""What a master sends to its followers, and how much of it at once."""

from elasticq.replication.appends import APPEND_ENTRIES_MAX
from elasticq.replication.messages import Append
from elasticq.replication.tracker import IN_FLIGHT_ENTRIES_MAX
from tests.replication.bench import TIMING, Bench, with_log


def test_commit_is_pushed_at_once_when_the_log_goes_idle() -> None:
    bench = Bench()
    bench.win()
    for voter in "bc":
        bench.append_reply(voter, 0)
    bench.propose(b"x", 10)
    pushed = bench.append_reply("b", 1)
    assert {(message.to, message.commit_index) for message in pushed} == {("b", 1), ("c", 1)}


def test_followers_that_match_get_entries_at_once_and_probed_ones_wait() -> None:
    bench = Bench()
    bench.win()
    assert [message for message in bench.propose(b"x", 10) if isinstance(message, Append)] == []
    (sent,) = bench.append_reply("b", 0)
    assert ([made.payload for made in sent.entries], sent.to) == ([b"x"], "b")
    (sent,) = bench.propose(b"y", 10)
    assert (sent.to, [made.payload for made in sent.entries]) == ("b", [b"y"])


def test_refused_follower_is_asked_where_its_hint_says() -> None:
    bench = Bench(with_log(1, 1, 1, 1, 1))
    bench.win()
    (sent,) = bench.append_reply("b", 2, ok=False)
    assert (sent.prev_index, sent.prev_term) == (2, 1)
    (sent,) = bench.append_reply("b", 3)
    assert [made.index for made in sent.entries] == [4, 5]


def test_late_hint_never_moves_the_probe_forward() -> None:
    bench = Bench(with_log(1, 1, 1))
    bench.win()
    for hint, expected in ((1, 1), (0, 0), (2, 0), (99, 0)):
        (sent,) = bench.append_reply("b", hint, ok=False)
        assert sent.prev_index == expected


def test_frames_and_unacknowledged_entries_are_bounded() -> None:
    bench = Bench()
    bench.win()
    for _ in range(IN_FLIGHT_ENTRIES_MAX + 700):
        bench.propose(b"", 10)
    (sent,) = bench.append_reply("b", 0)
    assert len(sent.entries) == APPEND_ENTRIES_MAX
    match = 0
    for _ in range(40):
        match += APPEND_ENTRIES_MAX
        messages = bench.append_reply("b", min(match, bench.replica.log.last_index))
        for message in messages:
            if isinstance(message, Append) and message.entries:
                assert len(message.entries) <= APPEND_ENTRIES_MAX
                assert message.entries[-1].index <= match + IN_FLIGHT_ENTRIES_MAX
    assert bench.replica.followers["b"].match_index == bench.replica.log.last_index


def test_lost_entries_are_sent_again_after_the_next_heartbeat() -> None:
    bench = Bench()
    bench.win()
    bench.append_reply("b", 0)
    bench.propose(b"lost", 10)
    (heartbeat,) = [message for message in bench.tick(TIMING.heartbeat_ms) if message.to == "b"]
    assert heartbeat.prev_index == 1
    (sent,) = bench.append_reply("b", 0, ok=False)
    assert [made.payload for made in sent.entries] == [b"lost"]
