"""Times in text against the standard library's calendar."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model.times import basic, basic_s, extended, extended_s

moments = st.datetimes(
    datetime.datetime(1970, 1, 1), datetime.datetime(9999, 12, 31), timezones=st.just(datetime.UTC)
).map(lambda moment: moment.replace(microsecond=0))


@given(moments)
def test_times_are_those_of_the_calendar(moment: datetime.datetime) -> None:
    at_s, text = int(moment.timestamp()), moment.strftime("%Y%m%dT%H%M%SZ").rjust(16, "0")
    assert basic_s(text) == at_s
    assert basic(at_s) == text
    assert extended(at_s * 1_000 + 7) == f"{moment.isoformat().partition('+')[0]}.007Z"
    assert extended_s(moment.isoformat()) == extended_s(moment.strftime("%Y-%m-%dT%H:%M:%SZ")) == at_s


@given(moments, st.integers(-14 * 60, 14 * 60))
def test_offsets_are_counted(moment: datetime.datetime, minutes: int) -> None:
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    if 1970 < moment.year < 9999:
        assert extended_s(moment.astimezone(zone).isoformat()) == int(moment.timestamp())


@pytest.mark.parametrize(
    "text", ["", "20260131", "20261301T000000Z", "20260132T000000Z", "20260131T240000Z", "２0260131T000000Z"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert basic_s(text) is None
    assert extended_s(text) is None
