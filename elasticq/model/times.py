"""Conversion between the times in clients' texts and seconds since the epoch, without ``datetime``."""

import re
from functools import lru_cache
from typing import Final

_BASIC: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\Z", re.ASCII)
_BASIC_CHARS: Final = len("20260131T235959Z")
_EXTENDED: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(?:Z|([+-])(\d\d):?(\d\d)))?\Z", re.ASCII
)
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def basic_s(text: str) -> int | None:
    """Return the seconds of a text like 20260131T235959Z, the format of signatures. None for any other text."""
    return _basic_s(text) if len(text) == _BASIC_CHARS else None


@lru_cache(maxsize=256)  # one a second from each client
def _basic_s(text: str) -> int | None:
    match = _BASIC.match(text)
    return _epoch_s(*map(int, match.groups())) if match is not None else None


def extended_s(text: str) -> int | None:
    """Return the seconds of a text like 2026-01-31T23:59:59Z, the format of policies. None for any other text.

    An offset from UTC and a day without a time are valid, too.
    """
    match = _EXTENDED.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, sign, offset_hours, offset_minutes = match.groups(default="0")
    at_s = _epoch_s(int(year), int(month), int(day), int(hour), int(minute), int(second))
    if at_s is None or sign == "0":
        return at_s
    offset_s = int(offset_hours) * 3_600 + int(offset_minutes) * 60
    return at_s - offset_s if sign == "+" else at_s + offset_s


def basic(at_s: int) -> str:
    """Return the time in the format 20260131T235959Z."""
    days, rest_s = divmod(at_s, 86_400)
    # Days count from 1 March of year 0, so that the leap day is the last day of a year.
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = era * 400 + year_of_era + (month <= 2)
    return f"{year:04}{month:02}{day:02}T{rest_s // 3_600:02}{rest_s // 60 % 60:02}{rest_s % 60:02}Z"


def extended(at_ms: int) -> str:
    """Return the time in the format 2026-01-31T23:59:59.123Z."""
    at_s, rest_ms = divmod(at_ms, 1_000)
    return f"{_extended_s(at_s)}.{rest_ms:03}Z"


@lru_cache(maxsize=16)  # callers format many times of the same second
def _extended_s(at_s: int) -> str:
    text = basic(at_s)
    return f"{text[:4]}-{text[4:6]}-{text[6:11]}:{text[11:13]}:{text[13:15]}"


def _epoch_s(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    if not (1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] and hour < 24 and minute < 60 and second < 61):
        return None
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    return days * 86_400 + hour * 3_600 + minute * 60 + second
