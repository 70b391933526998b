"""CreateQueue, GetQueueUrl, ListQueues, DeleteQueue, PurgeQueue."""

import pytest

from elasticq.model import commands as c
from elasticq.model import errors, limits
from elasticq.model.results import EmptyResult, QueueUrlResult
from tests.engine.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def names(desk: Desk, **options: object) -> tuple[list[str], str | None]:
    result = desk.do(c.ListQueues(**options))
    return [url.rsplit("/", 1)[1] for url in result.queue_urls], result.next_token


# --- CreateQueue --------------------------------------------------------------------


def test_create_answers_the_url_under_the_clients_endpoint(desk: Desk) -> None:
    assert desk.create("a-Z_9") == "http://localhost:9324/000000000000/a-Z_9"


def test_creating_again_with_equal_or_no_attributes_is_no_change(desk: Desk) -> None:
    url = desk.create(VisibilityTimeout="40")
    written = len(desk.log)
    assert desk.create() == url
    assert desk.create(VisibilityTimeout="40", DelaySeconds="0") == url
    assert len(desk.log) == written


def test_creating_again_compares_with_present_values(desk: Desk) -> None:
    desk.create()
    desk.do(c.SetQueueAttributes(queue_url="jobs", attributes={"VisibilityTimeout": "5"}))
    desk.create(VisibilityTimeout="5")
    with pytest.raises(errors.QueueNameExists) as caught:
        desk.create(VisibilityTimeout="30")
    assert (caught.value.code, caught.value.json_type) == ("QueueAlreadyExists", "QueueNameExists")
    assert caught.value.message == (
        "A queue already exists with the same name and a different value for attribute VisibilityTimeout"
    )


ALLOW_ALL = '{"redrivePermission":"allowAll"}'


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ({"VisibilityTimeout": "040"}, {"VisibilityTimeout": "40"}),
        ({"SqsManagedSseEnabled": "TRUE"}, {}),
        ({"KmsMasterKeyId": "k"}, {"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "FALSE"}),
        ({"KmsDataKeyReusePeriodSeconds": "600"}, {"KmsDataKeyReusePeriodSeconds": "600"}),
        ({}, {"KmsDataKeyReusePeriodSeconds": "300"}),
        ({}, {"RedriveAllowPolicy": ALLOW_ALL}),
        ({"RedriveAllowPolicy": ALLOW_ALL}, {"RedriveAllowPolicy": ""}),
        ({"ElasticqGroupWeights": '{"a":2,"b":3}'}, {"ElasticqGroupWeights": '{"b": 3, "a": 2}'}),
        ({}, {"ElasticqGroupWeights": "{}"}),
        ({"ElasticqGroupWeights": "{}"}, {"ElasticqGroupWeights": ""}),
        ({}, {"ElasticqGroupSeparator": ""}),
        ({}, {"ElasticqFairness": "sqs"}),
        ({}, {"ElasticqMaxInFlightPerGroup": "0"}),
        ({}, {"ElasticqIdempotencyWindow": "0"}),
        ({}, {"ElasticqSchedule": "False"}),
    ],
)
def test_creating_again_compares_meanings_and_not_spellings(
    desk: Desk, first: dict[str, str], again: dict[str, str]
) -> None:
    url = desk.create(**first)
    written = len(desk.log)
    assert desk.create(**again) == desk.create(**first) == url
    assert len(desk.log) == written


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ({}, {"KmsDataKeyReusePeriodSeconds": "600"}),
        ({"KmsDataKeyReusePeriodSeconds": "600"}, {"KmsDataKeyReusePeriodSeconds": "300"}),
        ({}, {"RedriveAllowPolicy": '{"redrivePermission":"denyAll"}'}),
        ({"RedriveAllowPolicy": '{"redrivePermission":"denyAll"}'}, {"RedriveAllowPolicy": ""}),
        ({"ElasticqGroupWeights": '{"a":2}'}, {"ElasticqGroupWeights": ""}),
        ({"ElasticqFairness": "round_robin"}, {"ElasticqFairness": "sqs"}),
        ({}, {"ElasticqSchedule": "true"}),
    ],
)
def test_creating_again_with_another_meaning_is_refused(
    desk: Desk, first: dict[str, str], again: dict[str, str]
) -> None:
    desk.create(**first)
    with pytest.raises(errors.QueueNameExists, match=f"attribute {next(iter(again))}$"):
        desk.create(**again)


@pytest.mark.parametrize("name", ["a b", "x" * 81, "a/b", "é", "../x", "jobs.fifo", "a.b", "jobs\n"])
def test_bad_names_are_refused(desk: Desk, name: str) -> None:
    with pytest.raises(errors.InvalidParameterValue) as caught:
        desk.create(name)
    assert caught.value.message == (
        "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
    )


@pytest.mark.parametrize("name", [None, ""])
def test_missing_name_is_told(desk: Desk, name: str | None) -> None:
    with pytest.raises(errors.MissingParameter, match="parameter QueueName"):
        desk.do(c.CreateQueue(queue_name=name))


def test_names_know_case_and_accounts_are_apart(desk: Desk) -> None:
    desk.create("jobs")
    desk.create("Jobs")
    other = desk.do(c.CreateQueue(queue_name="jobs"), account="111111111111")
    assert other == QueueUrlResult("http://localhost:9324/111111111111/jobs")
    assert names(desk)[0] == ["Jobs", "jobs"]
    desk.send(url=other.queue_url)
    assert desk.counts("jobs") == (0, 0, 0)


def test_fifo_attribute_false_is_unknown_on_a_standard_queue(desk: Desk) -> None:
    with pytest.raises(errors.InvalidAttributeName, match=r"Unknown Attribute FifoQueue\."):
        desk.create(FifoQueue="false")


def test_fifo_with_a_bad_name_is_refused_by_its_name(desk: Desk) -> None:
    with pytest.raises(errors.InvalidParameterValue) as caught:
        desk.create("jobs", FifoQueue="true")
    assert caught.value.message == (
        "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, "
        "must end with .fifo suffix and be 1 to 80 in length."
    )


def test_queue_count_is_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "QUEUES_MAX", 2)
    desk.create("a")
    desk.create("b")
    with pytest.raises(errors.OverLimit):
        desk.create("c")


def test_tags_beyond_fifty_are_refused(desk: Desk) -> None:
    desk.do(c.CreateQueue(queue_name="ok", tags={str(at): "" for at in range(50)}))
    with pytest.raises(errors.InvalidParameterValue):
        desk.do(c.CreateQueue(queue_name="many", tags={str(at): "" for at in range(51)}))


@pytest.mark.parametrize("account", ["111111111111", "000000000000"])
def test_retried_create_gives_the_same_answer(desk: Desk, account: str) -> None:
    command = c.CreateQueue(queue_name="jobs", attributes={"DelaySeconds": "1"})
    first = desk.do(command, invocation=b"c" * 16, account=account)
    written = len(desk.log)
    url = first.queue_url
    desk.do(c.SetQueueAttributes(queue_url=url, attributes={"DelaySeconds": "2"}))
    assert desk.do(command, invocation=b"c" * 16, account=account) == first
    assert len(desk.log) == written + 1


# --- GetQueueUrl and ListQueues --------------------------------------------------------


def test_url_of_a_queue_by_name_and_owner(desk: Desk) -> None:
    desk.do(c.CreateQueue(queue_name="jobs"), account="111111111111")
    found = desk.do(c.GetQueueUrl(queue_name="jobs", queue_owner_account_id="111111111111"))
    assert found.queue_url == "http://localhost:9324/111111111111/jobs"
    with pytest.raises(errors.QueueDoesNotExist) as caught:
        desk.do(c.GetQueueUrl(queue_name="jobs"))
    assert caught.value.status == 400
    with pytest.raises(errors.MissingParameter):
        desk.do(c.GetQueueUrl())
    with pytest.raises(errors.InvalidParameterValue):
        desk.do(c.GetQueueUrl(queue_name="jobs", queue_owner_account_id="me"))


def test_list_filters_by_prefix_and_case(desk: Desk) -> None:
    for name in ("b2", "a", "b1", "B"):
        desk.create(name)
    assert names(desk) == (["B", "a", "b1", "b2"], None)
    assert names(desk, queue_name_prefix="b") == (["b1", "b2"], None)
    assert names(desk, queue_name_prefix="nope") == ([], None)


def test_list_pages_with_max_results_only(desk: Desk) -> None:
    for name in "abcde":
        desk.create(name)
    seen, token = names(desk, max_results=2)
    while token:
        page, token = names(desk, max_results=2, next_token=token)
        seen += page
    assert seen == list("abcde")
    assert names(desk, max_results=5) == (list("abcde"), None)
    assert names(desk) == (list("abcde"), None)


@pytest.mark.parametrize(
    "options", [{"max_results": 0}, {"max_results": 1_001}, {"next_token": "é"}, {"next_token": "A"}]
)
def test_bad_paging_is_refused(desk: Desk, options: dict[str, object]) -> None:
    with pytest.raises(errors.InvalidParameterValue):
        names(desk, **options)


# --- DeleteQueue and PurgeQueue -----------------------------------------------------------


def test_delete_hides_the_queue_at_once(desk: Desk) -> None:
    desk.create()
    desk.send()
    assert desk.do(c.DeleteQueue(queue_url="jobs")) == EmptyResult()
    for command in (c.DeleteQueue(queue_url="jobs"), c.GetQueueUrl(queue_name="jobs"), c.PurgeQueue(queue_url="jobs")):
        with pytest.raises(errors.QueueDoesNotExist):
            desk.do(command)
    assert names(desk) == ([], None)


def test_queue_created_after_delete_is_empty_and_another(desk: Desk) -> None:
    desk.create()
    desk.send()
    before = desk.queue().id
    desk.do(c.DeleteQueue(queue_url="jobs"))
    desk.create()
    assert desk.queue().id != before
    assert desk.counts() == (0, 0, 0)


def test_sixty_second_rule_of_create_after_delete() -> None:
    desk = Desk(sixty_second_rules=True)
    desk.create()
    desk.do(c.DeleteQueue(queue_url="jobs"))
    desk.wait(59.999)
    with pytest.raises(errors.QueueDeletedRecently) as caught:
        desk.create()
    assert caught.value.code == "AWS.SimpleQueueService.QueueDeletedRecently"
    assert caught.value.message == (
        "You must wait 60 seconds after deleting a queue before you can create another with the same name."
    )
    desk.wait(0.001)
    desk.create()


def test_purge_takes_everything_in_flight_and_delayed_too(desk: Desk) -> None:
    desk.create()
    for _ in range(3):
        desk.send()
    desk.send(delay_s=5)
    desk.receive_one(visibility_s=5)
    desk.do(c.PurgeQueue(queue_url="jobs"))
    assert desk.counts() == (0, 0, 0)
    desk.wait(10)
    assert desk.receive(10) == []
    desk.send("after")
    assert [x.body for x in desk.receive(10)] == ["after"]


def test_sixty_second_rule_of_purge() -> None:
    desk = Desk(sixty_second_rules=True)
    desk.create()
    desk.do(c.PurgeQueue(queue_url="jobs"))
    desk.wait(59.999)
    with pytest.raises(errors.PurgeQueueInProgress) as caught:
        desk.do(c.PurgeQueue(queue_url="jobs"))
    assert (caught.value.code, caught.value.status) == ("AWS.SimpleQueueService.PurgeQueueInProgress", 403)
    assert caught.value.message == "Only one PurgeQueue operation on jobs is allowed every 60 seconds."
    desk.wait(0.001)
    desk.do(c.PurgeQueue(queue_url="jobs"))


def test_sixty_second_rules_are_off_by_default(desk: Desk) -> None:
    desk.create()
    desk.do(c.PurgeQueue(queue_url="jobs"))
    desk.do(c.PurgeQueue(queue_url="jobs"))
    desk.do(c.DeleteQueue(queue_url="jobs"))
    desk.create()


def test_retried_delete_does_not_delete_the_queue_created_meanwhile(desk: Desk) -> None:
    desk.create()
    command = c.DeleteQueue(queue_url="jobs")
    desk.do(command, invocation=b"d" * 16)
    desk.create()
    assert desk.do(command, invocation=b"d" * 16) == EmptyResult()
    assert names(desk)[0] == ["jobs"]
