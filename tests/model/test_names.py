"""Queue URLs and ARNs: what is read from them, whatever they hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model.names import (
    FIFO_QUEUE_NAME,
    QUEUE_NAME,
    account_of,
    arn_region,
    neighbour,
    owner_in,
    parse_queue_arn,
    queue_arn,
    queue_path,
    queue_url,
    region_of,
)

ACCOUNT = "123456789012"


@pytest.mark.parametrize(
    "url",
    [
        f"http://localhost:9324/{ACCOUNT}/jobs",
        f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/jobs",
        f"https://eu-west-1.queue.amazonaws.com/{ACCOUNT}/jobs",
        f"http://localhost:4566/queue/us-east-1/{ACCOUNT}/jobs",
        f"http://localhost:9324/{ACCOUNT}/jobs/",
        f"{ACCOUNT}/jobs",
    ],
)
def test_only_the_last_two_parts_of_a_url_count(url: str) -> None:
    assert queue_path(url, "000000000000") == (ACCOUNT, "jobs")


@pytest.mark.parametrize("url", ["jobs", "http://localhost:9324/jobs", "http://h/queue/jobs", "http://h/12345/jobs"])
def test_without_an_account_the_callers_is_meant(url: str) -> None:
    assert queue_path(url, ACCOUNT) == (ACCOUNT, "jobs")


@given(name=st.from_regex(r"[A-Za-z0-9_-]{1,80}", fullmatch=True), account=st.from_regex(r"[0-9]{12}", fullmatch=True))
def test_a_url_leads_back_to_its_queue(name: str, account: str) -> None:
    assert queue_path(queue_url("http://localhost:9324", account, name), "000000000000") == (account, name)


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_error(url: str) -> None:
    account, name = queue_path(url, ACCOUNT)
    assert isinstance(account, str)
    assert "/" not in name


def test_names_end_where_the_text_ends() -> None:
    assert QUEUE_NAME.match("x" * 80)
    assert FIFO_QUEUE_NAME.match("x" * 75 + ".fifo")
    for bad in ("", "x" * 81, "jobs\n", "a.b", "é"):
        assert not QUEUE_NAME.match(bad)
    for bad in ("x" * 76 + ".fifo", ".fifo", "a.fifo\n"):
        assert not FIFO_QUEUE_NAME.match(bad)


def test_arn_names_region_account_and_queue() -> None:
    assert queue_arn("eu-west-1", ACCOUNT, "jobs") == f"arn:aws:sqs:eu-west-1:{ACCOUNT}:jobs"


def test_an_owner_of_another_region_is_told_apart_by_it() -> None:
    owner = owner_in(ACCOUNT, "eu-west-1")
    assert owner_in(ACCOUNT, "") == ACCOUNT != owner
    assert account_of(owner) == account_of(ACCOUNT) == ACCOUNT
    assert (region_of(owner, "us-east-1"), region_of(ACCOUNT, "us-east-1")) == ("eu-west-1", "us-east-1")
    assert neighbour("000000000000", owner) == owner_in("000000000000", "eu-west-1")
    assert neighbour("000000000000", ACCOUNT) == "000000000000"


def test_a_url_says_nothing_of_the_region_and_means_the_callers() -> None:
    owner = owner_in(ACCOUNT, "eu-west-1")
    url = queue_url("http://localhost:9324", owner, "jobs")
    assert url == f"http://localhost:9324/{ACCOUNT}/jobs"
    assert queue_path(url, owner_in("000000000000", "eu-west-1")) == (owner, "jobs")
    assert queue_path(url, "000000000000") == (ACCOUNT, "jobs")
    assert queue_path("jobs", owner) == (owner, "jobs")


def test_an_arn_says_the_region_of_its_queue() -> None:
    arn = queue_arn("us-east-1", owner_in(ACCOUNT, "eu-west-1"), "jobs")
    assert arn == f"arn:aws:sqs:eu-west-1:{ACCOUNT}:jobs"
    assert arn_region(arn) == "eu-west-1"
    assert parse_queue_arn(arn, "000000000000/eu-west-1") == (f"{ACCOUNT}/eu-west-1", "jobs")
    assert parse_queue_arn(arn, "000000000000") == (ACCOUNT, "jobs")
    assert parse_queue_arn("jobs", ACCOUNT) is None
