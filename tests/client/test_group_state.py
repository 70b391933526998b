"""What a consumer may do: rule by rule, and any course of events against a naive model of the server."""

from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.client.group_state import RETRY_MS, Assignment, GroupState, View

HOLD_MS = 6_000
HEARTBEAT_MS = 2_500


def orders(token: int, resource: str = "orders") -> Assignment:
    return Assignment(resource, f"http://there/{resource}", None, token)


def view(version: int, *assigned: Assignment, revoking: tuple[Assignment, ...] = (), consumer: str = "c1") -> View:
    return View(
        consumer,
        version,
        version,
        HOLD_MS,
        HEARTBEAT_MS,
        {each.token: each for each in assigned},
        {each.token: each for each in revoking},
    )


def holding(*assigned: Assignment) -> GroupState:
    """A consumer that has joined and started what it was given."""
    state = GroupState()
    state.ask(0)
    state.joined(view(1, *assigned), 0)
    for each in state.next_steps(1).start:
        state.started(each.token)
    return state


def test_a_view_is_read_as_it_is_written() -> None:
    lane = {"Resource": "jobs/3", "QueueUrl": "http://there/jobs", "Partition": 3, "Token": 8}
    plain = {"Resource": "orders", "QueueUrl": "http://there/orders", "Token": 7}
    written = {"ConsumerId": "c1", "Version": 4, "Generation": 2, "HoldMs": 6_000, "HeartbeatMs": 2_500}
    read = View.read({**written, "GroupName": "g", "SessionTimeoutMs": 9_000, "Assigned": [plain], "Revoking": [lane]})
    assert read.assigned == {7: Assignment("orders", "http://there/orders", None, 7)}
    assert read.revoking == {8: Assignment("jobs/3", "http://there/jobs", 3, 8)}
    assert (read.consumer_id, read.version, read.generation) == ("c1", 4, 2)
    assert View.read(written).assigned == {}


def test_what_is_assigned_is_started_once() -> None:
    state = GroupState()
    assert state.ask_ms() == 0
    assert state.ask(0).consumer_id == ""
    state.joined(view(1, orders(7)), 0)
    assert state.next_steps(1).start == [orders(7)]
    assert state.may_act(7, 1)
    assert state.next_steps(2) == ([], [])
    state.started(7)
    assert state.next_steps(3) == ([], [])


def test_what_is_revoked_is_stopped_and_then_released() -> None:
    state = holding(orders(7))
    state.answered(view(2, revoking=(orders(7),)), 10)
    assert not state.may_act(7, 11)
    assert state.may_finish(7, 11)
    assert state.next_steps(11).stop == [orders(7)]
    assert state.released() == [], "it is still acted on"
    state.stopped(7)
    assert not state.may_finish(7, 12)
    assert state.released() == [7]
    assert state.ask_ms() == 0, "a release does not wait for the next heartbeat"
    assert state.ask(12).released == [7]
    assert state.ask_ms() == 12 + HEARTBEAT_MS
    state.answered(view(3), 12)
    assert state.released() == []


def test_what_is_revoked_before_it_was_started_is_released() -> None:
    state = GroupState()
    state.ask(0)
    state.joined(view(1, revoking=(orders(7),)), 0)
    assert state.next_steps(1) == ([], [])
    assert state.ask(1) == ("c1", [7])


def test_a_start_that_goes_on_is_stopped_when_it_has_ended() -> None:
    state = GroupState()
    state.ask(0)
    state.joined(view(1, orders(7)), 0)
    assert state.next_steps(1).start == [orders(7)]
    state.answered(view(2, revoking=(orders(7),)), 2)
    assert state.next_steps(3) == ([], [])
    state.started(7)
    assert state.next_steps(4).stop == [orders(7)]


def test_without_answers_everything_is_stopped_when_the_hold_is_over() -> None:
    state = holding(orders(7))
    assert state.wake_ms(10) == HOLD_MS
    assert state.may_act(7, HOLD_MS - 1)
    assert state.next_steps(HOLD_MS - 1) == ([], [])
    assert not state.may_act(7, HOLD_MS)
    assert not state.may_finish(7, HOLD_MS)
    assert state.next_steps(HOLD_MS).stop == [orders(7)]
    assert state.wake_ms(HOLD_MS) is None


def test_the_hold_counts_from_when_the_answered_call_was_sent() -> None:
    state = holding(orders(7))
    state.answered(view(1, orders(7)), 1_000)
    assert state.may_act(7, HOLD_MS + 998)
    state.answered(view(1, orders(7)), 500)
    assert state.may_act(7, HOLD_MS + 999), "an answer to an earlier call takes nothing back"
    assert not state.may_act(7, HOLD_MS + 1_000)


def test_what_stopped_by_itself_is_not_released_and_starts_again() -> None:
    state = holding(orders(7))
    state.next_steps(HOLD_MS)
    state.stopped(7)
    assert state.released() == []
    state.answered(view(1, orders(7)), HOLD_MS + 10)
    assert state.next_steps(HOLD_MS + 20).start == [orders(7)]


def test_a_hold_that_is_prolonged_before_anybody_looked_stops_nothing() -> None:
    state = holding(orders(7))
    state.answered(view(1, orders(7)), HOLD_MS + 10)
    assert state.next_steps(HOLD_MS + 20) == ([], [])


def test_who_was_told_that_nothing_is_held_is_stopped_although_an_answer_came_late() -> None:
    for ask in (GroupState.may_act, GroupState.may_finish):
        state = holding(orders(7))
        assert state.next_steps(1) == ([], [])
        assert not ask(state, 7, HOLD_MS), "a worker that asks ends here"
        state.answered(view(1, orders(7)), HOLD_MS + 10)
        assert not state.may_act(7, HOLD_MS + 20), "it has ended: nobody would begin anything"
        assert state.may_finish(7, HOLD_MS + 20)
        assert state.next_steps(HOLD_MS + 20) == ([orders(7)], [])
        state.stopped(7)
        assert state.next_steps(HOLD_MS + 30) == ([], [orders(7)])
        assert state.may_act(7, HOLD_MS + 30)


def test_a_start_during_which_the_hold_was_over_is_stopped_and_begins_again() -> None:
    state = GroupState()
    state.ask(0)
    state.joined(view(1, orders(7)), 0)
    assert state.next_steps(1).start == [orders(7)]
    assert state.next_steps(HOLD_MS) == ([], [])
    state.answered(view(1, orders(7)), HOLD_MS + 10)
    assert state.next_steps(HOLD_MS + 20) == ([], [])
    state.started(7)
    assert state.next_steps(HOLD_MS + 30) == ([orders(7)], [])
    state.stopped(7)
    assert state.next_steps(HOLD_MS + 40) == ([], [orders(7)])


def test_an_older_view_prolongs_the_hold_and_changes_nothing_else() -> None:
    state = holding(orders(7))
    state.answered(view(3), 10)
    state.answered(view(2, orders(7)), 20)
    assert state.view.version == 3
    assert state.wake_ms(30) == 20 + HOLD_MS
    state.answered(view(9, orders(7), consumer="c2"), 30)
    assert state.view.version == 3, "that was about another session"


def test_a_lost_session_stops_everything_and_joins_again() -> None:
    state = holding(orders(7))
    state.lost("c0")
    assert state.may_act(7, 10)
    state.lost("c1")
    assert not state.may_act(7, 10)
    assert state.ask_ms() == 0
    assert state.ask(10).consumer_id == ""
    assert state.next_steps(10).stop == [orders(7)]
    state.joined(view(1, orders(8), consumer="c2"), 10)
    assert state.next_steps(11) == ([], []), "the former assignment of this resource is still being stopped"
    state.stopped(7)
    assert state.next_steps(12).start == [orders(8)]


def test_a_call_that_failed_is_made_again_soon() -> None:
    state = GroupState()
    state.ask(100)
    state.failed(100)
    assert state.ask_ms() == 100 + RETRY_MS
    state.joined(view(1, revoking=(orders(7),)), 400)
    assert state.ask(500).released == [7]
    state.failed(600)
    assert state.ask_ms() == 600 + RETRY_MS
    assert state.ask(900).released == [7], "it is told again, as nobody knows whether it was heard"


def test_a_consumer_that_closes_stops_everything_and_starts_nothing() -> None:
    state = holding(orders(7))
    state.close()
    assert not state.may_act(7, 1)
    assert state.may_finish(7, 1)
    state.answered(view(2, orders(7), orders(8, "jobs")), 2)
    assert state.next_steps(3) == ([orders(7)], [])
    assert state.acting == 1
    state.stopped(7)
    assert state.acting == 0
    assert state.next_steps(4) == ([], [])


NAMES = ("a", "b")
KINDS = ("beat", "beat", "steps", "steps", "done", "done", "done", "slow", "late", "cut", "lose")
EVENT = st.one_of(
    st.tuples(st.sampled_from(("assign", "assign", "revoke")), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(KINDS), st.integers(0, 3)),
    st.tuples(st.sampled_from(KINDS), st.integers(0, 3)),
    st.tuples(st.just("wait"), st.sampled_from((10, 900, 6_500, 9_500))),
)


class Server:
    """The naive server: who is assigned what, and that it gives nothing to anybody before it is released."""

    def __init__(self) -> None:
        self.token = 0
        self.version = 1
        self.sessions = 1
        self.assigned: dict[str, int] = {}
        self.revoking: dict[str, int] = {}
        self.released: set[int] = set()

    def view(self) -> View:
        assigned, revoking = (
            [orders(token, name) for name, token in each.items()] for each in (self.assigned, self.revoking)
        )
        return view(self.version, *assigned, revoking=tuple(revoking), consumer=f"c{self.sessions}")

    def assign(self, name: str) -> None:
        if name not in self.assigned and name not in self.revoking:
            self.token += 1
            self.version += 1
            self.assigned[name] = self.token

    def revoke(self, name: str) -> None:
        if name in self.assigned:
            self.version += 1
            self.revoking[name] = self.assigned.pop(name)

    def release(self, tokens: list[int]) -> None:
        for name, token in list(self.revoking.items()):
            if token in tokens:
                self.version += 1
                del self.revoking[name]
                self.released.add(token)

    def end_session(self) -> None:
        self.released |= {*self.assigned.values(), *self.revoking.values()}
        self.assigned, self.revoking = {}, {}
        self.sessions += 1


@settings(max_examples=100, deadline=None)
@given(st.lists(EVENT, min_size=30, max_size=80))
def test_any_course_of_events_keeps_to_the_rules(events: list[tuple[str, int | str]]) -> None:
    server, state = Server(), GroupState()
    now = 0.0
    acting: dict[int, Assignment] = {}
    begun: list[tuple[str, int]] = []  # callbacks that were begun and have not ended
    answers: list[tuple[View, float]] = []  # that are on their way
    refused: set[int] = set()  # whose workers have asked whether they may act, and ended
    heard = 0.0  # when a call of this session came to the server last, answered or not

    def take_steps() -> None:
        steps = state.next_steps(now)
        begun.extend(("stop", each.token) for each in steps.stop)
        for each in steps.start:
            assert each.resource not in {one.resource for one in acting.values()}, "two of one resource"
            assert each.token in server.assigned.values() or each.token in state.view.assigned
            acting[each.token] = each
            refused.discard(each.token)
            begun.append(("start", each.token))

    def beat(*, is_cut: bool = False) -> None:
        nonlocal heard
        ask = state.ask(now)
        assert not set(ask.released) & set(acting), "released what is still acted on"
        if is_cut:
            state.failed(now)
            return
        if not ask.consumer_id:
            state.joined(server.view(), now)
        elif ask.consumer_id != f"c{server.sessions}":
            state.lost(ask.consumer_id)
            return
        else:
            server.release(ask.released)
            state.answered(server.view(), now)
        heard = now

    def end_one(at: int) -> None:
        if begun:
            kind, token = begun.pop(at % len(begun))
            if kind == "start":
                state.started(token)
            else:
                state.stopped(token)
                del acting[token]

    for kind, what in events:
        if kind == "assign":
            server.assign(str(what))
        elif kind == "revoke":
            server.revoke(str(what))
        elif kind == "beat":
            beat()
        elif kind == "cut":
            beat(is_cut=True)
        elif kind == "slow" and state.view.consumer_id == f"c{server.sessions}":
            answers.append((server.view(), now))
            heard = now
        elif kind == "late" and answers:
            answer, sent = answers.pop(int(what) % len(answers))
            state.answered(answer, sent)
        elif kind == "lose" and now - heard >= HOLD_MS * 3 / 2:
            server.end_session()
        elif kind == "done":
            end_one(int(what))
        elif kind == "steps":
            take_steps()
        elif kind == "wait":
            now += int(what)
        for token in range(1, server.token + 1):
            if state.may_act(token, now) or state.may_finish(token, now):
                assert token in acting
                assert token not in server.released, "the server may have given it to somebody else"
            assert not state.may_act(token, now) or state.may_finish(token, now)
            if not state.may_act(token, now):
                refused.add(token)
            assert token not in refused or not state.may_act(token, now), "nobody would begin anything"

    for _ in range(4):  # once nothing happens any more, all that is assigned is acted on, and nothing else
        beat()
        take_steps()
        while begun:
            end_one(0)
    take_steps()
    assert sorted(acting) == sorted(server.assigned.values())
    assert all(state.may_act(token, now) for token in acting)
    assert server.revoking == {}
