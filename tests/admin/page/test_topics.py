"""Topics on the page: their list, a topic, and who would get a message."""

import json
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from elasticq.admin.page.topics import name_in, published, takes
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.topic_commands import Publish
from elasticq.model.topic_results import PublishCounts, PublishResult
from tests.admin.member import Member
from tests.admin.operator import FORM, Operator
from tests.push.receiver import receiving
from tests.system.cluster.cluster import until

RED = {"FilterPolicy": '{"color": ["red"]}'}
LARGE = {"FilterPolicy": '{"size": [{"numeric": [">", 5]}]}', "FilterPolicyScope": "MessageBody"}


def colour(text: str) -> dict[str, MessageAttributeValue]:
    return {"color": MessageAttributeValue(data_type="String", string_value=text)}


def subscribed(operator: Operator, topic: str, queue: str, **attributes: str) -> str:
    """Return the ARN of a subscription of a new queue to a topic, which is made where it is missing."""
    operator.act("CreateQueue", {"QueueName": queue})
    arn = operator.act("CreateTopic", {"Name": topic})[1]["TopicArn"]
    given = {"TopicArn": arn, "Protocol": "sqs", "Endpoint": f"arn:aws:sqs:us-east-1:000000000000:{queue}"}
    status, told = operator.act("Subscribe", {**given, "Attributes": attributes})
    assert status == 200, told
    return str(told["SubscriptionArn"])


def send(operator: Operator, path: str, **fields: str) -> tuple[int, str]:
    status, told, _ = operator.ask(path, urlencode(fields).encode(), FORM)
    return status, told


@pytest.mark.parametrize(
    ("subscription", "attributes", "body", "wanted"),
    [
        ({}, None, "anything", True),
        (RED, colour("red"), "", True),
        (RED, colour("blue"), "", False),
        (RED, None, "", False),
        (LARGE, None, '{"size": 6}', True),
        (LARGE, None, '{"size": 5}', False),
        ({"FilterPolicy": "[]"}, None, "", False),
    ],
)
async def test_a_filter_lets_pass_what_a_publish_would_deliver(
    subscription: dict[str, str], attributes: Any, body: str, wanted: bool
) -> None:
    assert await takes(subscription, attributes, body) is wanted


def test_what_is_delivered_in_steps_is_told_with_the_rest() -> None:
    member = Member()
    assert published(member, "000000000000", "unknown") is None
    for count in (0, 5):
        arn = "arn:aws:sns:us-east-1:000000000000:many"
        result = PublishResult("m", counts=PublishCounts(delivered=count))
        if count:
            member.meter().counts["Publish"](Publish(topic_arn=arn), "000000000000", result, 0.0)
        found = published(member, "000000000000", "many")
        in_steps = member.delivered_in_steps()["000000000000", "many"]
        assert found is not None
        assert found.delivered == count + in_steps.delivered + in_steps.dead_lettered
        assert found.published == (count > 0)


def test_the_name_of_a_topic_ends_its_arn() -> None:
    assert name_in("arn:aws:sns:us-east-1:000000000000:orders") == "orders"


def test_topics_are_listed_and_filtered(operator: Operator) -> None:
    subscribed(operator, "catalogue-topic", "catalogue-queue")
    subscribed(operator, "other-topic", "catalogue-queue")
    text = operator.ask("/topics?filter=catalogue-")[1]
    assert 'href="/topics/000000000000/catalogue-topic">catalogue-topic</a></th><td>1 sqs</td>' in text
    assert "other-topic" not in text
    assert operator.ask("/topics?region=UPPER")[0] == 400


def told_of(operator: Operator, topic: str) -> str:
    return operator.ask(f"/topics/000000000000/{topic}")[1]


def test_a_topic_tells_what_its_subscriptions_took_and_refused(operator: Operator) -> None:
    key = subscribed(operator, "told-topic", "taken-queue").rpartition(":")[2]
    subscribed(operator, "told-topic", "red-queue", **RED)
    subscribed(operator, "told-topic", "gone-queue")
    arn = "arn:aws:sns:us-east-1:000000000000:told-topic"
    assert "Since this member started" not in told_of(operator, "told-topic")
    operator.act("DeleteQueue", {"QueueUrl": "gone-queue"})
    for _ in range(2):
        operator.act("Publish", {"TopicArn": arn, "Message": "x"})
    text = told_of(operator, "told-topic")
    told = {"published": 2, "delivered": 2, "filtered out": 2, "refused": 2}
    for name, count in told.items():
        assert f"<dt>{name}</dt><dd>{count}</dd>" in text
    assert (text.count(">delivered 2<"), text.count(">delivered 0<"), text.count(">refused 2<")) == (1, 1, 1)
    labels = f'account="000000000000",topic="told-topic",protocol="sqs",queue="taken-queue",subscription="{key}"'
    assert f"elasticq_topic_subscription_delivered_total{{{labels}}} 2" in operator.ask("/metrics")[1]


def test_a_web_server_s_notifications_are_told(operator: Operator) -> None:
    arn = operator.act("CreateTopic", {"Name": "pushing-topic"})[1]["TopicArn"]
    with receiving() as receiver:
        operator.act("Subscribe", {"TopicArn": arn, "Protocol": "http", "Endpoint": receiver.url})
        with urlopen(receiver.wait_for(1)[0].envelope["SubscribeURL"]) as answer:
            assert answer.status == 200
        operator.act("Publish", {"TopicArn": arn, "Message": "taken"})
        until(lambda: ">delivered 1<" in told_of(operator, "pushing-topic"), "the notification that was taken")
        receiver.status = 400
        operator.act("Publish", {"TopicArn": arn, "Message": "refused"})
        until(lambda: ">refused 1<" in told_of(operator, "pushing-topic"), "the notification that was given up")
        assert "last failure: the endpoint answered 400" in told_of(operator, "pushing-topic")
    operator.act("DeleteTopic", {"TopicArn": arn})


def test_a_filter_is_taken_away_by_an_empty_field(operator: Operator) -> None:
    arn = subscribed(operator, "cleared-topic", "cleared-queue", **RED)
    assert "&#34;color&#34;" in told_of(operator, "cleared-topic")
    fields = {"SubscriptionArn": arn, "AttributeName": "FilterPolicy", "AttributeValue+": ""}
    status, told = send(operator, "/page/do/SetSubscriptionAttributes", **fields)
    assert (status, "Done." in told) == (200, True), told
    assert "&#34;color&#34;" not in told_of(operator, "cleared-topic")


def test_a_topic_shows_its_subscriptions_and_links_their_queues(operator: Operator) -> None:
    subscribed(operator, "shown-topic", "shown-topic-queue", **RED)
    status, text, _ = operator.ask("/topics/000000000000/shown-topic")
    assert status == 200
    assert '<a href="/queues/000000000000/shown-topic-queue">' in text
    assert "&#34;color&#34;" in text
    assert operator.ask("/topics/000000000000/no-such-topic")[0] == 404


def test_who_would_get_a_message_is_told_without_publishing_it(operator: Operator) -> None:
    arn = subscribed(operator, "asked-topic", "asked-red", **RED).rpartition(":")[0]
    subscribed(operator, "asked-topic", "asked-all")
    status, told = send(
        operator, "/page/matching", TopicArn=arn, Message="hello", MessageAttributes="color=blue", _region="us-east-1"
    )
    assert (status, "<strong>1</strong> would get it, 1 would not" in told) == (200, True)
    assert "gets it: arn:aws:sqs:us-east-1:000000000000:asked-all" in told
    assert "filtered out: arn:aws:sqs:us-east-1:000000000000:asked-red" in told
    assert operator.act("Peek", {"QueueUrl": "asked-all"})[1]["Messages"] == []
    assert send(operator, "/page/matching", TopicArn=f"{arn}-missing", Message="hello")[0] == 404


def test_forms_publish_tag_and_delete(operator: Operator) -> None:
    status, _ = send(operator, "/page/do/CreateTopic", Name="formed-topic", Tags="team=payments\nstage=test")
    assert status == 200
    arn = subscribed(operator, "formed-topic", "formed-queue", RawMessageDelivery="true").rpartition(":")[0]
    tags = operator.act("ListTagsForResource", {"ResourceArn": arn})[1]["Tags"]
    assert {each["Key"]: each["Value"] for each in tags} == {"team": "payments", "stage": "test"}
    status, told = send(operator, "/page/do/Publish", TopicArn=arn, Message="to all", MessageAttributes="n:Number=5")
    assert status == 200, told
    (message,) = operator.act("Peek", {"QueueUrl": "formed-queue"})[1]["Messages"]
    assert (message["Body"], message["MessageAttributes"]["n"]["StringValue"]) == ("to all", "5")
    assert send(operator, "/page/do/DeleteTopic", TopicArn=arn, _typed="other")[0] == 400
    assert send(operator, "/page/do/DeleteTopic", TopicArn=arn, _typed="formed-topic")[0] == 200
    assert operator.ask("/topics/000000000000/formed-topic")[0] == 404


def test_a_subscription_of_a_web_server_is_no_queue_of_the_list(operator: Operator) -> None:
    arn = operator.act("CreateTopic", {"Name": "web-topic"})[1]["TopicArn"]
    before = {row["name"] for row in operator.get("/api/queues")["queues"]}
    given = {"TopicArn": arn, "Protocol": "http", "Endpoint": "http://127.0.0.1:9/"}
    assert operator.act("Subscribe", given)[0] == 200
    assert {row["name"] for row in operator.get("/api/queues")["queues"]} == before
    assert "not confirmed" in operator.ask("/topics/000000000000/web-topic")[1]
    assert operator.ask("/api/definitions")[0] == 200


def test_topics_are_code_of_sns(operator: Operator) -> None:
    arn = "arn:aws:sns:us-east-1:000000000000:coded"
    told = send(operator, "/page/as/boto3/Publish", TopicArn=arn, Message="hello")[1]
    assert "sns.publish(" in told
    told = send(operator, "/page/as/cli/TagResource", ResourceArn=arn, Tags="a=b")[1]
    assert "sns tag-resource" in told
    assert json.dumps([{"Key": "a", "Value": "b"}]) in told.replace("&#34;", '"')
