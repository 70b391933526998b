"""Topics on the port of the queues: signatures for either API, links without one, the same answers on both paths."""

import re
from urllib.parse import urlencode

import pytest

from tests.http.desk import HOST, Desk, Response
from tests.http.signing import FORM_HEADERS, KEY, OTHER_KEY, signed, target

VERSION = "2010-03-31"
ARN = "arn:aws:sns:us-east-1:111111111111:news"


def form(action: str, **members: str) -> bytes:
    return urlencode({"Action": action, "Version": VERSION, **members}).encode()


def strict() -> Desk:
    return Desk(auth="strict", keys=[KEY, OTHER_KEY])


async def ask(desk: Desk, body: bytes, service: str = "sns") -> Response:
    return await desk.ask(signed(body, FORM_HEADERS, service=service))


def code(answer: Response) -> str:
    found = re.search(rb"<Code>([^<]*)", answer.body)
    assert found is not None, answer.body
    return found[1].decode()


async def subscribed(desk: Desk) -> str:
    """The ARN of a subscription that needs a confirmation, which its endpoint would have got."""
    assert (await ask(desk, form("CreateTopic", Name="news"))).status == 200
    members = {"Protocol": "http", "Endpoint": "http://e", "ReturnSubscriptionArn": "true"}
    answer = await ask(desk, form("Subscribe", TopicArn=ARN, **members))
    found = re.search(rb"<SubscriptionArn>([^<]*)", answer.body)
    assert found is not None, answer.body
    return found[1].decode()


def get(query: str) -> bytes:
    return f"GET /?{query} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


async def test_signature_for_topics_reaches_topics_and_one_for_queues_does_not() -> None:
    desk = strict()
    created = await ask(desk, form("CreateTopic", Name="news"))
    assert (created.status, ARN.encode() in created.body) == (200, True)
    assert (await ask(desk, form("ListTopics"))).status == 200
    refused = await ask(desk, form("ListTopics"), service="sqs")
    assert (refused.status, code(refused)) == (400, "InvalidAction")
    refused = await ask(desk, form("ListTopics"), service="s3")
    assert (refused.status, code(refused)) == (403, "SignatureDoesNotMatch")
    assert b"<ErrorResponse xmlns" in refused.body
    await desk.close()


async def test_signature_for_topics_is_none_for_json() -> None:
    desk = strict()
    answer = await desk.ask(signed(b"{}", target("ListQueues"), service="sns"))
    assert (answer.status, answer.json()["__type"]) == (403, "com.amazonaws.sqs#InvalidSignatureException")
    assert (await desk.ask(signed(b"{}", target("ListQueues")))).status == 200
    await desk.close()


async def test_unsigned_call_is_refused_and_a_link_is_not() -> None:
    desk = strict()
    made = await subscribed(desk)
    for request in (get(f"Action=ListTopics&Version={VERSION}"), get(f"Action=DeleteTopic&TopicArn={ARN}")):
        answer = await desk.ask(request)
        assert (answer.status, code(answer)) == (403, "MissingAuthenticationToken")
    ((_, number),) = desk.node.state.topics.pending
    token = desk.node.state.identity.token(number)
    answer = await desk.ask(get(f"Action=ConfirmSubscription&TopicArn={ARN}&Token={token}"))
    assert (answer.status, made.encode() in answer.body) == (200, True)
    answer = await desk.ask(get(f"Action=Unsubscribe&SubscriptionArn={made}"))
    assert (answer.status, desk.node.state.topics.by_key) == (200, {})
    await desk.close()


async def test_link_does_not_delete_what_needs_authentication() -> None:
    desk = strict()
    made = await subscribed(desk)
    ((_, number),) = desk.node.state.topics.pending
    token = desk.node.state.identity.token(number)
    await ask(desk, form("ConfirmSubscription", TopicArn=ARN, Token=token, AuthenticateOnUnsubscribe="true"))
    answer = await desk.ask(get(f"Action=Unsubscribe&SubscriptionArn={made}"))
    assert (answer.status, code(answer)) == (403, "AuthorizationError")
    assert (await ask(desk, form("Unsubscribe", SubscriptionArn=made))).status == 200
    await desk.close()


async def test_account_is_that_of_the_key() -> None:
    desk = strict()
    await ask(desk, form("CreateTopic", Name="news"))
    body = form("Publish", TopicArn=ARN, Message="m")
    answer = await desk.ask(signed(body, FORM_HEADERS, service="sns", key=OTHER_KEY))
    assert (answer.status, code(answer)) == (403, "AuthorizationError")
    await desk.close()


@pytest.mark.parametrize("accept", ["", "Accept: application/json\r\n"])
async def test_url_and_form_give_the_same_answer(accept: str) -> None:
    desk = Desk()
    query = form("CreateTopic", Name="news").decode()
    post = f"POST / HTTP/1.1\r\nHost: {HOST}\r\n{accept}Content-Type: application/x-www-form-urlencoded\r\n"
    hot = await desk.ask(f"{post}Content-Length: {len(query)}\r\n\r\n{query}".encode())
    cold = await desk.ask(get(query).replace(b"\r\n\r\n", f"\r\n{accept}\r\n".encode()))
    without_ids = [re.sub(rb"[0-9a-f]{8}-[0-9a-f-]{27}", b"id", answer.body) for answer in (hot, cold)]
    assert without_ids[0] == without_ids[1]
    assert (b'{"CreateTopicResponse"' in hot.body) == bool(accept)
    await desk.close()


async def test_publish_reaches_a_queue_on_the_hot_path() -> None:
    desk = Desk()
    post = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/x-www-form-urlencoded\r\n"

    async def call(body: bytes) -> bytes:
        answer = await desk.ask(f"{post}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert answer.status == 200, answer.body
        return answer.body

    topic = ARN.replace("111111111111", "000000000000")
    await call(b"Action=CreateQueue&QueueName=jobs&Version=2012-11-05")
    await call(form("CreateTopic", Name="news"))
    await call(form("Subscribe", TopicArn=topic, Protocol="sqs", Endpoint="arn:aws:sqs:us-east-1:000000000000:jobs"))
    assert len(await call(form("Publish", TopicArn=topic, Message="hello"))) == 294
    received = await call(b"Action=ReceiveMessage&QueueUrl=http://h/000000000000/jobs&Version=2012-11-05")
    assert b"&quot;Message&quot; : &quot;hello&quot;" in received
    assert desk.context.slow_requests == 0
    await desk.close()
