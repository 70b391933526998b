"""Frames of members are judged like requests: what cannot be is refused, costs its link, and changes nothing."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.identity import TERM_SHIFT, next_delivery_number, next_sequence
from elasticq.model import commands as c
from elasticq.model.ranges import INT_MAX, TERM_MAX
from elasticq.model.results import QueueUrlResult, ReceivedMessage, ReceiveMessageResult, SendMessageResult
from elasticq.node import forwarding as f
from elasticq.replication import messages as r
from elasticq.replication.messages import FrameError
from elasticq.replication.records import Entry, Vote, Voter
from tests.node.cluster import Member
from tests.node.intruder import Invaded, frames_for

SEND = c.SendMessage(queue_url="jobs", message_body="body")


def invaded() -> tuple[Invaded, str]:
    """Three members with a queue and some messages in it, and who is master."""
    cluster = Invaded(volatile=False)
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    for _ in range(3):
        cluster.do(master, SEND)
    cluster.advance(500)
    return cluster, master


def serves(cluster: Invaded) -> bool:
    """Within 20 s after the intruder left."""
    for _ in range(200):
        for name in cluster.serving():
            ticket = cluster.submit(name, c.CreateQueue(queue_name="afterwards"))
            cluster.advance(200)
            if any(isinstance(answer, QueueUrlResult) for answer in cluster.answers(name, ticket)):
                return True
        cluster.advance(100)
    return False


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_no_frame_of_a_member_that_breaks_the_rules_ends_another(seed: int) -> None:
    chance = Random(seed)
    cluster, _ = invaded()
    to = chance.choice(cluster.names)
    for _ in range(chance.randint(1, 40)):
        cluster.say_as_intruder(to, frames_for(cluster, to, chance).draw())
        if chance.random() < 0.2:
            cluster.advance(chance.choice([10, 200, 3_000]))
    assert serves(cluster)


# --- one by one -------------------------------------------------------------------------

REFUSED = {
    "a term of which no sequence could be made": lambda told: told(r.PreVoteReply, term=(1 << 23), asked_term=1),
    "a term near 2^64": lambda told: told(r.PreVoteReply, term=(1 << 64) - 2, asked_term=1),
    "more terms ahead than elections were missed": lambda told: told(r.VoteReply, term=1 << 17),
    "a second master in the master's own term": lambda told: told(r.Append),
    "a time that is no date": lambda told: told(r.VoteReply, time_ms=(1 << 64) - 1),
    "a negative index": lambda told: told(r.Join, r.Offer, index=-1),
    "another group": lambda told: told(r.Join, group=1),
    "the master's own id": lambda told: told(r.Join, sender="a"),
    "an answer to a round that never was": lambda told: told(r.AppendReply, round=1 << 60),
    "an acknowledgement of what the master does not have": lambda told: told(r.AppendReply, match_index=1_000),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_by_a_master_and_changes_nothing(case: str) -> None:
    cluster, master = invaded()
    frames = frames_for(cluster, master, Random(1))

    def told(*kinds: type, **given: object) -> bytes:
        fitting = {
            "round": 0,
            "match_index": 0,
            "granted": False,
            "linked": True,
            "ok": True,
            "entries": [],
            "index": 9,
        }
        fitting |= {"prev_index": 0, "prev_term": 0, "commit_index": 0, "is_news": False, "time_ms": 0}
        given = {name: master if value == "a" else value for name, value in given.items()}
        return frames.message(kinds[-1], fitting | given)

    node = cluster.node(master)
    before = cluster.place(master)
    with pytest.raises(FrameError):
        node.receive(REFUSED[case](told), cluster.now_ms)
    assert cluster.place(master) == before
    assert node.serving
    assert serves(cluster)


def entry(index: int, term: int, *mutations: m.Mutation, payload: bytes = b"") -> Entry:
    return Entry(index, term, 1, payload or m.encode(list(mutations)))


ENTRIES = {
    "of bytes that are no mutations": lambda at, term: [entry(at, term, payload=b"\xc1")],
    "of a mutation that nobody knows": lambda at, term: [entry(at, term, payload=b"\x91\x92\x7f\x01")],
    "of rows on disk": lambda at, term: [entry(at, term, m.RowsRestored(1, [1], [], [], [], [], []))],
    "whose columns do not fit": lambda at, term: [entry(at, term, m.MessagesReceived(1, 1, 1, [1, 2], [1], [1], [1]))],
    "of a subscription that is left and not pending": lambda at, term: [
        entry(at, term, m.SubscriptionSet(1, 2, "k", "", "http", "http://e", {}, "p", "o", "", 1, is_left=True))
    ],
    "of a mark of a call that is too short": lambda at, term: [
        entry(at, term, m.ReceiveReturned(1, [], [], [], [], 1, b"abc"))
    ],
    "that found the cluster again": lambda at, term: [entry(at, term, m.ClusterFounded("other", b"k", 1))],
    "that give the cluster another name": lambda at, term: [entry(at, term, m.ClusterRenamed("other"))],
    "of a sequence beyond 63 bits": lambda at, term: [entry(at, term, m.MessageStored(1, 1 << 63, "b", 1, "s"))],
    "that leave a place out": lambda at, term: [entry(at + 1, term)],
    "of a later term than their master's": lambda at, term: [entry(at, term + 1)],
    "whose terms fall": lambda at, term: [entry(at, term), entry(at + 1, term - 1)],
    "that name no voters": lambda at, term: [Entry(at, term, 1, b"\x90", ())],
    "that name one voter twice": lambda at, term: [Entry(at, term, 1, b"\x90", (Voter("a"), Voter("a")))],
}


@pytest.mark.parametrize("case", ENTRIES)
def test_entries_that_cannot_be_applied_never_enter_the_log(case: str) -> None:
    cluster, master = invaded()
    follower = next(name for name in cluster.names if name != master)
    replica = cluster.node(follower).replica
    entries = ENTRIES[case](replica.log.last_index + 1, replica.term)
    append = r.Append(
        cluster=replica.cluster,
        group=0,
        sender=master,
        to=follower,
        term=replica.term,
        prev_index=replica.log.last_index,
        prev_term=replica.log.last_term,
        commit_index=replica.log.last_index + len(entries),
        round=1,
        time_ms=1,
        entries=entries,
    )
    before = cluster.place(follower)
    with pytest.raises(FrameError):
        cluster.node(follower).receive(r.encode(append), cluster.now_ms, master)
    assert cluster.place(follower) == before
    assert serves(cluster)


def test_a_master_with_another_history_of_what_is_committed_is_refused() -> None:
    cluster, master = invaded()
    follower = next(name for name in cluster.names if name != master)
    replica = cluster.node(follower).replica
    head = {"cluster": replica.cluster, "group": 0, "sender": "e", "to": follower, "term": replica.term + 1}
    fields = {**head, "commit_index": 0, "round": 1, "time_ms": 1}
    log, before = replica.log, cluster.place(follower)
    for prev_index, entries in ((1, [entry(2, replica.term + 1)]), (log.last_index, [])):
        prev_term = log.term_at(prev_index) if entries else replica.term + 1
        append = r.Append(**fields, prev_index=prev_index, prev_term=prev_term, entries=entries)
        with pytest.raises(FrameError, match="committed entries"):
            cluster.node(follower).receive(r.encode(append), cluster.now_ms, "e")
    assert cluster.place(follower) == before


def test_nobody_speaks_in_the_name_of_another_member() -> None:
    cluster, master = invaded()
    follower = next(name for name in cluster.names if name != master)
    node = cluster.node(follower)
    heartbeat = r.Join(cluster=node.replica.cluster, group=0, sender=master, to=follower, term=1)
    forwarded = f.Withdraw(cluster=node.replica.cluster, sender=master, to=follower, incarnation="b", number=1)
    for frame in (r.encode(heartbeat), f.encode(forwarded)):
        node.receive(frame, cluster.now_ms, master)
        with pytest.raises(FrameError):
            node.receive(frame, cluster.now_ms, "e")


def test_what_a_stranger_to_the_voters_sends_is_not_applied_before_the_log_names_it() -> None:
    """Were it committed here, the true master's history would be another one for ever."""
    cluster, master = invaded()
    follower = next(name for name in cluster.names if name != master)
    replica = cluster.node(follower).replica
    last_index, commit_index = replica.log.last_index, replica.commit_index
    head = {"cluster": replica.cluster, "group": 0, "sender": "e", "to": follower, "term": replica.term + 1}
    place = {"prev_index": last_index, "prev_term": replica.log.last_term, "round": 1, "time_ms": 1}
    forged = r.Append(**head, **place, commit_index=last_index + 1, entries=[entry(last_index + 1, replica.term + 1)])
    assert cluster.say_as_intruder(follower, r.encode(forged))
    assert replica.commit_index == commit_index
    assert serves(cluster)
    cluster.advance(2_000)
    assert len({node.replica.log.last_index for node in map(cluster.node, cluster.names)}) == 1
    assert cluster.node(follower).replica.commit_index > last_index


@pytest.mark.parametrize("invocation", [b"a", b"abc", b"x" * 17])
def test_a_call_whose_mark_has_another_length_is_refused(invocation: bytes) -> None:
    cluster, master = invaded()
    forwarded = forward(cluster, master, invocation)
    with pytest.raises(FrameError):
        cluster.node(master).receive(forwarded, cluster.now_ms, "e")
    assert cluster.say_as_intruder(master, forward(cluster, master, b"x" * 16))


def forward(cluster: Invaded, master: str, invocation: bytes) -> bytes:
    call = c.Call(SEND, "anonymous", "000000000000", "http://h", invocation)
    return f.encode(f.forward_of(call, cluster.node(master).replica.cluster, "e", master, "incarnation", 1))


@pytest.mark.parametrize("owner", ["", "12345678901", "000000000000/", "000000000000/EU", "000000000000/a/b", "0" * 13])
def test_a_call_of_an_owner_that_no_request_can_have_is_refused(owner: str) -> None:
    cluster, master = invaded()
    forwarded = f.decode(forward(cluster, master, b""))
    with pytest.raises(FrameError):
        cluster.node(master).receive(f.encode(replace(forwarded, account=owner)), cluster.now_ms, "e")
    assert cluster.say_as_intruder(master, f.encode(replace(forwarded, account="000000000000/eu-west-1")))


def test_messages_under_handles_that_are_none_are_not_given_back() -> None:
    cluster, master = invaded()
    result = ReceiveMessageResult([ReceivedMessage("id", "no handle", "body")])
    cluster_id = cluster.node(master).replica.cluster
    forwarded = f.GiveBack(cluster=cluster_id, sender="e", to=master, incarnation="b", number=1, result=result)
    with pytest.raises(FrameError):
        cluster.node(master).receive(f.encode(forwarded), cluster.now_ms, "e")


def test_an_answer_to_another_question_or_of_another_member_is_none() -> None:
    cluster, master = invaded()
    cluster.introduce_all()
    follower, other = (name for name in cluster.names if name != master)
    cluster.cut |= {(follower, master)}  # the call is on its way
    ticket = cluster.say(follower, SEND)
    forwarded = next(f.decode(frame.data) for _, frame in cluster.lost_frames if frame.data[0] == f.FRAME_KIND)
    assert isinstance(forwarded, f.Forward)
    asked = (follower, forwarded.incarnation, forwarded.number)
    for sender, outcome in ((master, ReceiveMessageResult()), (other, SendMessageResult("id"))):
        answer = f.encode(f.answer_of(outcome, asked, forwarded.cluster, sender))
        with pytest.raises(FrameError):
            cluster.node(follower).receive(answer, cluster.now_ms, sender)
        assert cluster.answers(follower, ticket) == []
    answer = f.encode(f.answer_of(SendMessageResult("id"), asked, forwarded.cluster, master))
    cluster.node(follower).receive(answer, cluster.now_ms, master)
    cluster.members[follower].drain()
    assert cluster.answers(follower, ticket) == [SendMessageResult("id")]


def test_who_was_not_asked_cannot_say_that_a_call_had_no_effect() -> None:
    """Else a call without a GUID, which the master executed, would be executed a second time."""
    cluster, master = invaded()
    cluster.introduce_all()
    follower = next(name for name in cluster.names if name != master)
    cluster.cut |= {(master, follower)}  # the answer is on its way
    ticket = cluster.say(follower, SEND)
    number = cluster.node(follower)._forwarder._pending_calls.next_number() - 1
    incarnation = cluster.node(follower)._forwarder._pending_calls.incarnation
    cluster_id = cluster.node(master).replica.cluster
    denial = f.NotMaster(cluster=cluster_id, sender="e", to=follower, incarnation=incarnation, number=number)
    with pytest.raises(FrameError, match="about a call that went to"):
        cluster.node(follower).receive(f.encode(denial), cluster.now_ms, "e")
    cluster.node(follower).receive(f.encode(replace(denial, sender=master)), cluster.now_ms, master)
    cluster.members[follower].drain()
    assert cluster.answers(follower, ticket) == [], "it waits for the next master"
    assert cluster.node(follower).status(cluster.now_ms).held_calls == 1


def test_a_late_copy_of_an_answer_to_an_earlier_node_gives_nothing_back() -> None:
    """That node may have told its client: the messages are the client's until their visibility timeout ends."""
    cluster, master = invaded()
    cluster.introduce_all()
    follower = next(name for name in cluster.names if name != master)
    cluster.do(master, SEND)
    receive = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)
    result = cluster.do(follower, receive)
    assert result.messages
    pending_calls = cluster.node(follower)._forwarder._pending_calls
    for incarnation in ("earlier", pending_calls.incarnation):
        asked = (follower, incarnation, pending_calls.next_number())
        answer = f.answer_of(result, asked, cluster.node(master).replica.cluster, master)
        cluster.node(follower).receive(f.encode(answer), cluster.now_ms, master)
        cluster.members[follower].drain()
        cluster.settle()
        given_back = [] if incarnation == "earlier" else result.messages  # of this node: its client has left
        again = cluster.do(master, receive).messages
        assert [message.message_id for message in again] == [message.message_id for message in given_back]


def test_the_rest_of_a_link_whose_frame_was_refused_is_not_looked_at() -> None:
    cluster, master = invaded()
    node = cluster.node(master)
    sends = [("e", forward(cluster, master, b"")), ("e", b"\x01nothing"), ("e", forward(cluster, master, b"a"))]
    last_index = node.replica.log.last_index
    refused = node.receive_all([*sends, ("b", b"\x02nothing")], cluster.now_ms)
    assert [link for link, _ in refused] == ["e", "b"]
    assert node.replica.log.last_index == last_index + 1


def test_a_letter_of_another_version_is_told_from_a_bad_one() -> None:
    """It is passed by, and the link stays: while members are upgraded one after the other they understand less."""
    cluster, master = invaded()
    forwarded = f.decode(forward(cluster, master, b""))
    newer = f.encode(replace(forwarded, kind="FoldMessages"))
    ((link, error),) = cluster.node(master).receive_all([("e", newer)], cluster.now_ms)
    assert link == "e"
    assert isinstance(error, f.ContentRefused)


def test_where_no_term_is_left_nobody_stands() -> None:
    cluster, _ = invaded()
    for name in cluster.names:
        cluster.crash(name)
    cluster.down = {name: replace_vote(member, Vote(TERM_MAX, None)) for name, member in cluster.down.items()}
    for name in cluster.names:
        cluster.restart(name)
    cluster.advance(5_000)
    assert [cluster.node(name).replica.term for name in cluster.names] == [TERM_MAX] * 3
    assert cluster.masters() == []


def replace_vote(member: Member, vote: Vote) -> Member:
    member.disk.append((0, vote))
    return member


def test_terms_make_sequences_of_63_bits() -> None:
    assert next_sequence((TERM_MAX << TERM_SHIFT) + (1 << TERM_SHIFT) - 2, TERM_MAX) == INT_MAX
    assert next_delivery_number((1 << 32) - 2, TERM_MAX) < INT_MAX
