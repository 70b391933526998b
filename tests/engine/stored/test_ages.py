"""Ages are never too early, and what they say of all before a sequence is true."""

from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.stored.ages import Ages

STEPS = st.lists(st.tuples(st.sampled_from(["send", "send", "lose"]), st.integers(0, 2_500)), max_size=60)


@given(STEPS)
def test_ages_agree_with_the_sent_times_also_of_numbers_given_anew(steps: list[tuple[str, int]]) -> None:
    ages, sent_ms, now_ms = Ages(), list[int](), 1_000
    for action, amount in steps:
        if action == "send":
            now_ms += amount
            sent_ms.append(now_ms)
            ages.note(len(sent_ms), now_ms)
        else:
            del sent_ms[max(len(sent_ms) - amount % 5, 0) :]
        for sequence, known_ms in enumerate(sent_ms, start=1):
            assert ages.sent_by_ms(sequence) >= known_ms
            assert all(each <= known_ms for each in sent_ms[: ages.newest_sent_by(known_ms)])


def test_age_is_at_most_a_step_too_late() -> None:
    ages = Ages()
    for sequence in range(1, 3_001):
        ages.note(sequence, 500 * sequence)
    for sequence in (1, 777, 2_999):
        assert ages.sent_by_ms(sequence) - 500 * sequence in range(1_001)
