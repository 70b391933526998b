"""Pages of contents: their bounds, and one that a watermark cuts."""

from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.stored import mutations as m
from elasticq.node.outputs import Committed
from elasticq.storage.rows.pages import PAGE_MESSAGES_MAX, PAGE_SPAN_MAX, PAGE_WEIGHT_MAX, cut
from elasticq.storage.rows.rows import Rows
from tests.storage.rows.test_rows import created, fetched, filled, flush, loaded, opened, stored


def test_page_across_a_watermark_keeps_what_lies_above() -> None:
    connection = opened()
    rows = filled(connection, 300)
    rows.take(Committed(400, 1, 1, [m.QueuePurged(7, 200, 9)]))
    flush(rows, connection)
    assert [sequence for _, sequence in loaded(connection)[2][3]] == list(range(200, 301))
    assert [message.sequence for message in fetched(rows, connection, 7, [150, 200])] == list(range(200, 257))


def test_pages_are_bounded_in_messages_span_and_weight() -> None:
    connection, rows = opened(), Rows()
    sequences = [*range(1, 200), *range(1_000, 2_000, 10)]
    heavy = [stored(3_000 + number, body="y" * 40_000) for number in range(5)] + [stored(3_005, body="z" * 1_000_000)]
    rows.take(Committed(1, 1, 1, [created(), *[stored(sequence) for sequence in sequences], *heavy]))
    flush(rows, connection)
    pages = [mutation for mutation in Rows().load(connection)[1] if isinstance(mutation, m.UntouchedRestored)]
    assert max(page.last - page.first for page in pages) < 256
    assert max(len(page.firsts) for page in pages) <= 26
    assert [page.first for page in pages if page.first >= 3_000] == [3_000 + number for number in range(6)]
    assert [page.last_sent_ms for page in pages][:2] == [1_128, 1_199]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=400),
    st.lists(st.sampled_from([1, 300, 600, 2_000, 70_000]), min_size=1, max_size=5),
)
def test_runs_are_as_long_as_a_page_allows(steps: list[int], sizes: list[int]) -> None:
    sequences = accumulate(steps)
    bodies = {size: "x" * size for size in sizes}
    messages = [stored(sequence, body=bodies[sizes[at % len(sizes)]]) for at, sequence in enumerate(sequences)]
    runs = cut(messages)
    assert [message for run in runs for message in run] == messages
    for run, following in zip(runs, [*runs[1:], None], strict=True):
        assert len(run) == 1 or fits(run)
        assert following is None or not fits([*run, following[0]])


def fits(run: list[m.MessageStored]) -> bool:
    return (
        len(run) <= PAGE_MESSAGES_MAX
        and run[-1].sequence - run[0].sequence < PAGE_SPAN_MAX
        and sum(len(message.body) for message in run) <= PAGE_WEIGHT_MAX
    )


def test_fetch_of_large_messages_brings_only_the_first_ones() -> None:
    """512 contents are asked for ahead of need: of a megabyte each they would fill the memory."""
    connection = opened()
    rows = filled(connection, 20, body="x" * 1_000_000)
    wanted = list(range(3, 21))
    sequences = [message.sequence for message in fetched(rows, connection, 7, wanted)]
    assert sorted(sequences) == wanted[: len(sequences)]
    assert 8 <= len(sequences) <= 10
