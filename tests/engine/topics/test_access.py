"""Topics under auth = strict: what another account may do, and which queues take what a topic delivers."""

import json

import pytest

from elasticq.engine.execute import HANDLERS, execute
from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model import topic_commands as t
from elasticq.model.commands import Call, Origin
from elasticq.model.errors import AuthorizationError, SqsError
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.model.results import Result
from elasticq.model.topic_results import PublishResult, SubscribeResult
from tests.engine.desk import ENDPOINT
from tests.engine.topic_desk import TopicDesk, arn, arn_of_queue

STRANGER = "111122223333"
FREE = (t.CreateTopic, t.ListTopics, t.ListSubscriptions, t.NothingThere, t.ConfirmSubscription)
TOPIC_KINDS = sorted(
    [kind for kind in HANDLERS if issubclass(kind, t.TopicCommand) and kind not in FREE], key=lambda kind: kind.__name__
)


@pytest.fixture
def desk() -> TopicDesk:
    made = TopicDesk()
    made.create()
    made.topic()
    return made


def proven(desk: TopicDesk, command: c.Command, account: str = DEFAULT_ACCOUNT, principal: str = "AKID") -> Result:
    call = Call(command, principal, account, ENDPOINT, b"", Origin("10.0.0.1", is_secure=False))
    result, mutations = execute(desk.state, call, desk.context)
    desk.write(mutations)
    assert isinstance(result, Result)
    return result


def is_denied(desk: TopicDesk, command: c.Command, account: str = STRANGER) -> bool:
    try:
        proven(desk, command, account)
    except AuthorizationError:
        return True
    except SqsError:
        pass  # it came as far as its handler
    return False


def about(kind: type[t.TopicCommand], subscription: str) -> t.TopicCommand:
    names = kind.__struct_fields__
    given = {"topic_arn": arn(), "resource_arn": arn(), "subscription_arn": subscription, "message": "m"}
    return kind(**{name: value for name, value in given.items() if name in names})


@pytest.mark.parametrize("kind", TOPIC_KINDS, ids=lambda kind: kind.__name__)
def test_a_stranger_may_nothing_and_the_owner_everything(desk: TopicDesk, kind: type[t.TopicCommand]) -> None:
    subscription = desk.subscribe()
    command = about(kind, subscription)
    assert is_denied(desk, command)
    assert not is_denied(desk, command, DEFAULT_ACCOUNT)


def test_a_topic_that_is_not_there_answers_a_stranger_like_one_that_is(desk: TopicDesk) -> None:
    with pytest.raises(AuthorizationError) as caught:
        proven(desk, t.Publish(arn("other"), message="m"), STRANGER)
    assert caught.value.message == (
        f"User: arn:aws:iam::{STRANGER}:user/AKID is not authorized to perform: SNS:Publish on resource: {arn('other')}"
        " because no resource-based policy allows the SNS:Publish action"
    )


def test_policy_lets_another_account_publish_and_subscribe_and_no_more(desk: TopicDesk) -> None:
    desk.do(t.AddTopicPermission(arn(), "one", [STRANGER], ["Publish", "Subscribe"]))
    proven(desk, t.Publish(arn(), message="m"), STRANGER)
    result = proven(desk, t.Subscribe(arn(), "sqs", arn_of_queue("jobs")), STRANGER)
    assert isinstance(result, SubscribeResult)
    assert is_denied(desk, t.DeleteTopic(arn()))
    assert is_denied(desk, t.TagResource(arn(), [t.Tag("a", "b")]))
    assert not is_denied(desk, t.GetSubscriptionAttributes(result.subscription_arn)), "it is its own"
    assert is_denied(desk, t.SetSubscriptionAttributes(result.subscription_arn), DEFAULT_ACCOUNT)
    assert not is_denied(desk, t.Unsubscribe(result.subscription_arn), DEFAULT_ACCOUNT), "the topic is"


def test_policy_can_deny_the_owner_who_can_mend_it(desk: TopicDesk) -> None:
    policy = {"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "SNS:*", "Resource": arn()}]}
    desk.do(t.SetTopicAttributes(arn(), "Policy", json.dumps(policy)))
    with pytest.raises(AuthorizationError, match="with an explicit deny"):
        proven(desk, t.Publish(arn(), message="m"))
    proven(desk, t.SetTopicAttributes(arn(), "Policy", ""))
    proven(desk, t.Publish(arn(), message="m"))


def test_source_owner_is_the_callers_account(desk: TopicDesk) -> None:
    desk.do(t.SetTopicAttributes(arn(), "Policy", desk.attributes()["Policy"]))
    assert is_denied(desk, t.Publish(arn(), message="m"))
    assert not is_denied(desk, t.Publish(arn(), message="m"), DEFAULT_ACCOUNT)


def test_link_unsubscribes_without_a_caller(desk: TopicDesk) -> None:
    made = desk.subscribe()
    proven(desk, t.Unsubscribe(made), STRANGER, principal="anonymous")
    assert desk.state.topics.subscription_count == 0


# --- queues -----------------------------------------------------------------------------------


def policy_of(principal: object, source: str = arn(), operator: str = "ArnEquals") -> str:
    statement = {
        "Effect": "Allow",
        "Principal": principal,
        "Action": "sqs:SendMessage",
        "Resource": arn_of_queue("jobs"),
        "Condition": {operator: {"aws:SourceArn": source}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.mark.parametrize(
    ("policy", "is_taken"),
    [
        ("", False),
        (policy_of({"Service": "sns.amazonaws.com"}), True),
        (policy_of("*"), True),
        (policy_of({"AWS": "*"}, "arn:aws:sns:*:*:news", "ArnLike"), True),
        (policy_of({"Service": "sns.amazonaws.com"}, arn("other")), False),
        (policy_of({"Service": "events.amazonaws.com"}), False),
        (policy_of({"AWS": DEFAULT_ACCOUNT}), False),
    ],
)
def test_queue_takes_what_its_policy_lets_the_topic_send(desk: TopicDesk, policy: str, is_taken: bool) -> None:
    for name in ("dead", "open"):
        desk.create(name)
        text = policy_of("*").replace(arn_of_queue("jobs"), arn_of_queue(name))
        desk.do(c.SetQueueAttributes(name, {"Policy": text}))
    desk.do(c.SetQueueAttributes("jobs", {"Policy": policy}))
    desk.subscribe(RedrivePolicy={"deadLetterTargetArn": arn_of_queue("dead")})
    desk.subscribe("open")
    result = proven(desk, t.Publish(arn(), message="m"))
    assert isinstance(result, PublishResult)
    assert (len(desk.bodies()), len(desk.bodies("dead")), len(desk.bodies("open"))) == (is_taken, not is_taken, 1)
    assert (result.counts.delivered, result.counts.dead_lettered) == (1 + is_taken, not is_taken)


def test_policies_are_asked_at_a_later_delivery_as_well(desk: TopicDesk) -> None:
    for number in range(40):
        desk.create(f"q{number}")
        desk.subscribe(f"q{number}")
    proven(desk, t.Publish(arn(), message="x" * 250_000))
    desk.deliver()
    assert all(desk.bodies(f"q{number}") == [] for number in range(40))


def test_without_proof_no_policy_is_asked(desk: TopicDesk) -> None:
    desk.subscribe()
    desk.publish()
    assert len(desk.bodies()) == 1
    with pytest.raises(errors.TopicNotFound):
        desk.do(t.Publish(arn("other"), message="m"), account=STRANGER)
