"""Turns: exact shares, nobody starves, and a choice rests on nothing but what is stored and who has work."""

import json
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.ordering.shares import GONE, Shares, Stored
from elasticq.engine.ordering.sharing import Sharing
from elasticq.model.limits import GROUP_LEVELS_MAX

WEIGHTS = st.lists(st.integers(1, 12), min_size=1, max_size=8).map(
    lambda found: dict(zip("abcdefgh", found, strict=False))
)


class Table:
    """Shares with what is stored of them; every group has as much work as ``work`` says."""

    def __init__(self, weights: dict[str, int], separator: str = "", strategy: str = "weighted") -> None:
        attributes = {"ElasticqFairness": strategy, "ElasticqGroupSeparator": separator}
        self.sharing = Sharing({**attributes, "ElasticqGroupWeights": json.dumps(weights)})
        self.shares = Shares(self.sharing, {})
        self.stored: dict[str, Stored] = {}
        self.working: set[str] = set()

    def work(self, *names: str) -> None:
        for name in names:
            self.working.add(name)
            self.shares.note(name, True, 0)

    def rest(self, name: str) -> None:
        self.working.discard(name)
        self.shares.note(name, False, 0)

    def choose(self, count: int) -> list[str]:
        self.shares.settle()
        self.shares.begin()
        chosen = []
        for _ in range(count):
            share = self.shares.first()
            if share is None:
                break
            chosen.append(share.path)
            self.shares.charge(share)
        self.shares.end()
        return chosen

    def serve(self, count: int = 1) -> list[str]:
        chosen = self.choose(count)
        for path, stored in self.shares.turns(chosen).items():
            if stored[1] == GONE:
                del self.stored[path]
                self.shares.set_stored(path, None)
            else:
                self.stored[path] = stored
                self.shares.set_stored(path, stored)
        return chosen

    def served(self, total: int, batch: int = 1) -> Counter[str]:
        return Counter(name for _ in range(total // batch) for name in self.serve(batch))

    def restored(self) -> "Table":
        """Another member's, which knows what is stored and who has work."""
        other = Table({}, self.sharing.separator)
        other.sharing = self.sharing
        other.shares = Shares(self.sharing, {})
        for path, stored in self.stored.items():
            other.stored[path] = stored
            other.shares.set_stored(path, stored)
        other.work(*sorted(self.working))
        return other


@given(weights=WEIGHTS, batch=st.sampled_from([1, 2, 7]))
@settings(max_examples=100)
def test_group_gets_its_nth_message_within_n_times_the_sum_of_weights_by_its_own(
    weights: dict[str, int], batch: int
) -> None:
    table, total = Table(weights), sum(weights.values())
    table.work(*weights)
    got = dict.fromkeys(weights, 0)
    for at in range(1, 3 * total // batch + 1):
        for name in table.serve(batch):
            got[name] += 1
        for name, weight in weights.items():
            assert got[name] >= at * batch * weight // total
            assert got[name] <= -(-at * batch * weight // total), "nor earlier"


ACTIONS = st.sampled_from(["work", "rest", "serve", "serve", "serve"])
STEPS = st.lists(st.tuples(ACTIONS, st.integers(0, 7)), max_size=80)


@given(weights=WEIGHTS, steps=STEPS)
@settings(max_examples=150)
def test_nobody_with_work_starves_whoever_comes_and_goes(weights: dict[str, int], steps: list[tuple[str, int]]) -> None:
    table, total, names = Table(weights), sum(weights.values()), sorted(weights)
    waited = dict.fromkeys(weights, 0)
    for step, number in steps:
        name = names[number % len(names)]
        if step == "serve":
            for chosen in table.serve(1 + number % 2):
                assert chosen in table.working
                waited = {each: waited[each] + 1 if each in table.working else 0 for each in names}
                waited[chosen] = 0
        elif step == "work":
            table.work(name)
        else:
            table.rest(name)
            waited[name] = 0
        assert all(waited[each] * weights[each] < 2 * total for each in names)


@given(weights=WEIGHTS, separator=st.sampled_from(["", "."]), steps=STEPS)
@settings(max_examples=150)
def test_another_member_chooses_the_same(weights: dict[str, int], separator: str, steps: list[tuple[str, int]]) -> None:
    table, names = Table(weights, separator), ("a", "a.b", "a.b.c", "b", "b.b", "c", "", "a.")
    for step, number in steps:
        if step == "serve":
            table.serve(1 + number % 3)
        elif step == "work":
            table.work(names[number])
        else:
            table.rest(names[number])
        assert table.restored().choose(10) == table.choose(10)
        assert table.choose(3) == table.choose(10)[:3], "a choice changes nothing"


def test_shares_over_ten_thousand_messages_are_exact_where_weights_differ_most() -> None:
    weights = {"heavy": 1_000, "half": 500, **{f"light{at}": 1 for at in range(500)}}
    table = Table(weights)
    table.work(*weights)
    got = table.served(10_000, 10)
    assert abs(got["heavy"] - 5_000) <= 1
    assert abs(got["half"] - 2_500) <= 1
    assert {got[name] for name in weights if name.startswith("light")} == {5}


def test_round_robin_is_a_round() -> None:
    table = Table({}, strategy="round_robin")
    table.work(*"abcde")
    assert sorted(table.serve(5)) == sorted(table.serve(5)) == list("abcde")


def test_names_share_level_by_level() -> None:
    table = Table({"a": 2, "a.x": 3}, ".")
    table.work("a.x.1", "a.x.2", "a.y", "b.1", "b.2", "b.3", "b")
    got = table.served(4_800)
    assert got == {"a.x.1": 1_200, "a.x.2": 1_200, "a.y": 800, "b": 400, "b.1": 400, "b.2": 400, "b.3": 400}


def test_what_lies_deeper_than_the_last_level_shares_it() -> None:
    deep = ".".join("a" * GROUP_LEVELS_MAX)
    table = Table({}, ".")
    table.work(f"{deep}.1", f"{deep}.1.1", f"{deep}.2")
    assert table.served(300) == {f"{deep}.1": 100, f"{deep}.1.1": 100, f"{deep}.2": 100}
    assert sum(path.startswith(" ") for path in table.stored) == GROUP_LEVELS_MAX


def test_adaptive_weight_falls_with_the_share_in_flight() -> None:
    table = Table({}, strategy="adaptive")
    table.shares.note("holds", True, 90)
    table.shares.note("free", True, 10)
    table.working |= {"holds", "free"}
    got = table.served(1_100)
    assert 4.5 < got["free"] / got["holds"] < 5.5, "weights of 10 - 9 * 10 % and 10 - 9 * 90 %, whole: 10 and 2"


def test_one_alone_stores_nothing_but_that_it_has_work() -> None:
    table = Table({})
    table.work("a")
    table.serve()
    stored = dict(table.stored)
    assert set(stored) == {"a"}
    table.served(100)
    assert table.stored == stored


def test_who_was_away_is_owed_nothing() -> None:
    table = Table({})
    table.work("a", "b")
    table.served(10)
    table.rest("b")
    table.work("c")
    table.served(1_000)
    table.work("b")
    assert table.served(300) == {"a": 100, "b": 100, "c": 100}


def test_what_is_stored_of_groups_that_went_is_forgotten() -> None:
    table = Table({})
    table.work("stays", "stays, too")
    for at in range(500):
        table.work(f"guest{at}")
        while f"guest{at}" not in table.serve():
            pass
        table.rest(f"guest{at}")
    assert len(table.stored) < 50
    table.served(200)
    assert set(table.stored) == {" ", "stays", "stays, too"}
