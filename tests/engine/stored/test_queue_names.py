"""Names in order, against sorting them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.stored.queue_names import QueueNames
from elasticq.model import commands as c
from elasticq.model.limits import LIST_RESULTS_MAX
from elasticq.model.results import ListQueuesResult
from tests.engine.desk import Desk

names = st.text("ab-z", max_size=3)
keys = st.tuples(st.sampled_from(["1", "2"]), names)


@given(st.lists(st.tuples(keys, st.booleans())), st.integers(0, 20), names, names)
def test_names_are_those_of_an_account_in_order(
    changes: list[tuple[tuple[str, str], bool]], ordered_at: int, prefix: str, after: str
) -> None:
    found, plain = QueueNames(), dict[tuple[str, str], Any]()
    for at, (key, is_set) in enumerate(changes):
        if at == ordered_at:
            found.order()
        if is_set:
            found[key] = plain[key] = None  # type: ignore[assignment]
        elif key in plain:
            del found[key], plain[key]
    assert found == plain
    wanted = sorted(name for account, name in plain if account == "1" and name.startswith(prefix) and name > after)
    assert list(found.of("1", prefix, after)) == wanted


def test_a_page_looks_at_no_more_names_than_it_shows(monkeypatch: Any) -> None:
    """Counted, not timed: of 100,000 queues a page once took 25 ms."""
    desk = Desk()
    for at in range(3 * LIST_RESULTS_MAX):
        desk.do(c.CreateQueue(queue_name=f"queue-{at:05}"))
    desk.state.names.order()
    looked: list[str] = []
    plain = QueueNames.of

    def counted(self: QueueNames, account: str, prefix: str, after: str) -> Any:
        for name in plain(self, account, prefix, after):
            looked.append(name)
            yield name

    def refused(self: QueueNames) -> Any:
        raise AssertionError("nothing walks through all names")

    monkeypatch.setattr(QueueNames, "of", counted)
    monkeypatch.setattr(QueueNames, "__iter__", refused)
    token = None
    for max_results in (1, 10, LIST_RESULTS_MAX):
        result = desk.do(c.ListQueues(queue_name_prefix="queue-", max_results=max_results, next_token=token))
        assert isinstance(result, ListQueuesResult)
        assert len(result.queue_urls) == max_results
        assert len(looked) == max_results + 1
        looked.clear()
        token = result.next_token
