"""The commands ``elasticq topics``: they show and create topics and subscriptions, and publish, at any SNS endpoint."""

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from elasticq.cli import carry
from elasticq.cli.confirm import confirm
from elasticq.cli.queues import Failure, add_command, message_attributes, pages, pair, run_with
from elasticq.cli.show import json_lines, one_line, outcome, table

if TYPE_CHECKING:
    from elasticq.client import Sns

URL_VARIABLE: Final = "AWS_ENDPOINT_URL_SNS"
BATCH_BYTES: Final = 250_000  # less than 262,144, AWS's limit and the default of topics here


def add_topics(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add(commands, "ls", "list topics with the numbers of their subscriptions", _ls)
    create = _add(commands, "create", "create a topic, a FIFO topic if its name ends in .fifo", _create, "topic")
    create.add_argument("--attribute", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    _add(commands, "show", "show a topic: its attributes, tags and subscriptions", _show, "topic")
    subscribe = _add(commands, "subscribe", "subscribe a queue or a web server", _subscribe, "topic")
    subscribe.add_argument("endpoint", metavar="ENDPOINT", help="a queue's name or ARN, or an http or https URL")
    subscribe.add_argument("--raw", action="store_true", help="deliver the message itself, without an envelope")
    subscribe.add_argument("--filter", metavar="JSON", help="FilterPolicy")
    subscribe.add_argument("--filter-body", action="store_true", help="the filter applies to the body")
    subscribe.add_argument("--attribute", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    unsubscribe = _add(commands, "unsubscribe", "end a subscription", _unsubscribe)
    unsubscribe.add_argument("subscription", metavar="ARN", help="as show prints it")
    publish = _add(commands, "publish", "publish a message, or each line of stdin", _publish, "topic")
    publish.add_argument("message", nargs="?", metavar="MESSAGE", help="without it each line of stdin is a message")
    publish.add_argument("--subject", metavar="TEXT", help="Subject")
    publish.add_argument("--group", metavar="ID", help="MessageGroupId")
    publish.add_argument("--deduplication-id", metavar="ID", help="of a single MESSAGE")
    publish.add_argument("--attribute", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    delete = _add(commands, "delete", "delete a topic and its subscriptions", _delete, "topic")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _add(commands: Any, name: str, words: str, run: Any, *arguments: str) -> argparse.ArgumentParser:
    parser = add_command(commands, name, words, URL_VARIABLE)
    for argument in arguments:
        parser.add_argument(argument, metavar=argument.upper(), help="its name or ARN")
    parser.set_defaults(run=lambda options: run_with("Sns", run, options))
    return parser


def _arn(client: "Sns", topic: str) -> str:
    """Return the ARN of a topic that is given by name or ARN. Raise Failure if there is no topic of the name."""
    if ":" in topic:
        return topic
    for each in pages(client.list_topics, "Topics"):
        if each["TopicArn"].endswith(f":{topic}"):
            return str(each["TopicArn"])
    raise Failure(f"there is no topic {topic}")


def _ls(client: "Sns", options: argparse.Namespace) -> int:
    found: list[dict[str, str]] = []
    for each in pages(client.list_topics, "Topics"):
        arn = each["TopicArn"]
        attributes = client.get_topic_attributes(TopicArn=arn)["Attributes"]
        confirmed, pending = attributes["SubscriptionsConfirmed"], attributes["SubscriptionsPending"]
        found.append({"name": arn.rpartition(":")[2], "subscriptions": confirmed, "pending": pending, "arn": arn})
    if options.json:
        json_lines(found)
    else:
        rows = [[topic["name"], topic["subscriptions"], topic["pending"]] for topic in found]
        table(["NAME", "SUBSCRIPTIONS", "PENDING"], rows)
    return 0


def _create(client: "Sns", options: argparse.Namespace) -> int:
    attributes = dict(pair(text) for text in options.attribute)
    if options.topic.endswith(".fifo"):
        attributes.setdefault("FifoTopic", "true")
    outcome(options.json, "arn", client.create_topic(Name=options.topic, Attributes=attributes)["TopicArn"])
    return 0


def _show(client: "Sns", options: argparse.Namespace) -> int:
    arn = _arn(client, options.topic)
    attributes = client.get_topic_attributes(TopicArn=arn)["Attributes"]
    tags = {tag["Key"]: tag["Value"] for tag in client.list_tags_for_resource(ResourceArn=arn)["Tags"]}
    subscriptions = list(pages(client.list_subscriptions_by_topic, "Subscriptions", TopicArn=arn))
    if options.json:
        json_lines([{"arn": arn, "attributes": attributes, "tags": tags, "subscriptions": subscriptions}])
        return 0
    for name, value in attributes.items():
        print(f"{name}={one_line(value)}")
    for name, value in tags.items():
        print(f"tag {one_line(name)}={one_line(value)}")
    for each in subscriptions:  # no table: unsubscribe needs the whole ARN
        print(f"subscription {each['SubscriptionArn']}\n  {each['Protocol']} {one_line(each['Endpoint'])}")
    return 0


def _subscribe(client: "Sns", options: argparse.Namespace) -> int:
    arn = _arn(client, options.topic)
    attributes = dict(pair(text) for text in options.attribute)
    if options.raw:
        attributes["RawMessageDelivery"] = "true"
    if options.filter is not None:
        attributes["FilterPolicy"] = options.filter
    if options.filter_body:
        attributes["FilterPolicyScope"] = "MessageBody"
    protocol, endpoint = _endpoint(options.endpoint, arn)
    answer = client.subscribe(
        TopicArn=arn, Protocol=protocol, Endpoint=endpoint, Attributes=attributes, ReturnSubscriptionArn=True
    )
    outcome(options.json, "subscription", answer["SubscriptionArn"])
    return 0


def _endpoint(text: str, topic_arn: str) -> tuple[str, str]:
    """Return protocol and endpoint of a URL, an ARN, or the name of a queue with the topic's region and account."""
    if "://" in text:
        return text.partition(":")[0], text
    if text.startswith("arn:"):
        return text.split(":")[2], text
    _, partition, _, region, account = topic_arn.split(":")[:5]
    return "sqs", f"arn:{partition}:sqs:{region}:{account}:{text}"


def _unsubscribe(client: "Sns", options: argparse.Namespace) -> int:
    client.unsubscribe(SubscriptionArn=options.subscription)
    outcome(options.json, "unsubscribed", options.subscription)
    return 0


def _publish(client: "Sns", options: argparse.Namespace) -> int:
    shared: dict[str, Any] = {}
    if options.subject is not None:
        shared["Subject"] = options.subject
    if options.group is not None:
        shared["MessageGroupId"] = options.group
    if options.attribute:
        shared["MessageAttributes"] = message_attributes(options.attribute)
    arn = _arn(client, options.topic)
    if options.message is not None:
        if options.deduplication_id is not None:
            shared["MessageDeduplicationId"] = options.deduplication_id
        outcome(options.json, "MessageId", client.publish(TopicArn=arn, Message=options.message, **shared)["MessageId"])
        return 0
    published = 0
    lines = ({"Message": line.rstrip("\n"), **shared} for line in sys.stdin)
    for entries in carry.batches(lines, "Message", BATCH_BYTES):
        answer = client.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
        carry.check_taken(answer, entries, published)
        published += len(entries)
    outcome(options.json, "published", str(published))
    return 0


def _delete(client: "Sns", options: argparse.Namespace) -> int:
    arn = _arn(client, options.topic)
    if not options.yes:
        question = f"Delete the topic {arn} and its subscriptions? Type the topic's name:"
        confirm("the deletion of a topic", question, arn.rpartition(":")[2], "nothing was deleted")
    client.delete_topic(TopicArn=arn)
    outcome(options.json, "deleted", arn)
    return 0
