"""Which region a request is of: the scope of its signature says it, in a header or in a URL."""

import pytest

from elasticq.http.connection.head import LEARN_EVERY
from elasticq.wire.sigv4 import Key
from tests.http.desk import HOST, Desk, Response, json_request
from tests.http.signing import KEY, OTHER_KEY, signed, target

URL = f"http://{HOST}/000000000000/jobs"
SIGNED = "Authorization: AWS4-HMAC-SHA256 Credential=AKIA/20260101/{}/sqs/aws4_request, SignedHeaders=host, Signature="


def by(region: str) -> str:
    return SIGNED.format(region) + "0" * 64


async def ask(desk: Desk, region: str, action: str, **members: object) -> Response:
    headers = [by(region)] if region else []
    return await desk.ask(json_request(action, members, *headers))


async def listed(desk: Desk, region: str) -> list[str]:
    urls: list[str] = (await ask(desk, region, "ListQueues")).json().get("QueueUrls", [])
    return urls


async def test_the_same_url_leads_each_caller_to_the_queue_of_its_region() -> None:
    desk = Desk(own_region="us-east-1")
    for region in ("us-east-1", "eu-west-1"):
        assert (await ask(desk, region, "CreateQueue", QueueName="jobs")).json() == {"QueueUrl": URL}
        await ask(desk, region, "SendMessage", QueueUrl=URL, MessageBody=region)
    assert await listed(desk, "us-east-1") == await listed(desk, "") == [URL]
    assert await listed(desk, "us-west-2") == []
    for region, body in (("eu-west-1", "eu-west-1"), ("", "us-east-1")):
        messages = (await ask(desk, region, "ReceiveMessage", QueueUrl=URL)).json()["Messages"]
        assert [message["Body"] for message in messages] == [body]
    arns = [
        (await ask(desk, region, "GetQueueAttributes", QueueUrl=URL, AttributeNames=["QueueArn"])).json()["Attributes"]
        for region in ("eu-west-1", "us-east-1", "")
    ]
    names = [arn["QueueArn"].split(":")[3] for arn in arns]
    assert names == ["eu-west-1", "us-east-1", "us-east-1"]
    await desk.close()


async def test_one_id_of_an_application_in_two_regions_is_of_two_calls() -> None:
    desk = Desk(own_region="us-east-1")
    for region in ("us-east-1", "eu-west-1", "us-east-1"):
        await ask(desk, region, "CreateQueue", QueueName="jobs")
        send = json_request(
            "SendMessage", {"QueueUrl": URL, "MessageBody": "x"}, by(region), "x-elasticq-guid: order-7"
        )
        assert (await desk.ask(send)).status == 200
    for region in ("us-east-1", "eu-west-1"):
        counted = await ask(desk, region, "GetQueueAttributes", QueueUrl=URL, AttributeNames=["All"])
        assert counted.json()["Attributes"]["ApproximateNumberOfMessages"] == "1"
    await desk.close()


async def test_heads_that_one_template_fits_have_their_regions() -> None:
    desk = Desk(own_region="us-east-1")
    for region in ("us-east-1", "eu-west-1"):  # names of one length: their heads differ in values only
        await ask(desk, region, "CreateQueue", QueueName="jobs")
    for number in range(3 * LEARN_EVERY):
        region = ("us-east-1", "eu-west-1")[number % 2]
        headers = (by(region), f"amz-sdk-invocation-id: {number:036d}")
        body = {"QueueUrl": URL, "MessageBody": region}
        assert (await desk.ask(json_request("SendMessage", body, *headers))).status == 200
    counts = {owner: messages.sent for (owner, _), messages in desk.context.meter.by_queue().items()}
    assert counts == {"000000000000": 12, "000000000000/eu-west-1": 12}
    await desk.close()


async def test_all_regions_are_one_where_they_are_not_told_apart() -> None:
    desk = Desk()
    await ask(desk, "eu-west-1", "CreateQueue", QueueName="jobs")
    assert await listed(desk, "us-west-2") == await listed(desk, "") == [URL]
    await desk.close()


@pytest.mark.parametrize("auth", ["lax", "strict"])
async def test_a_region_that_was_proven_is_the_calls(auth: str) -> None:
    desk = Desk(auth=auth, keys=[KEY, OTHER_KEY], own_region="us-east-1")
    create = signed(b'{"QueueName": "jobs"}', target("CreateQueue"), region="eu-west-1")
    assert (await desk.ask(create)).status == 200
    for region, count in (("eu-west-1", 1), ("us-east-1", 0), ("eu-west-1", 1)):
        found = await desk.ask(signed(b"{}", region=region))
        assert len(found.json().get("QueueUrls", [])) == count
        found = await desk.ask(signed(b"", {}, method="GET", url="/?Action=ListQueues", region=region, presigned_s=60))
        assert found.body.count(b"<QueueUrl>") == count
    forged = signed(b"{}", region="us-east-1").replace(b"/us-east-1/", b"/eu-west-1/")
    assert (await desk.ask(forged)).status == 403
    await desk.close()


async def test_a_proven_key_with_an_underscore_has_its_region() -> None:
    key = Key("DEV_KEY", "secret", "111111111111")
    desk = Desk(auth="strict", keys=[key], own_region="us-east-1")
    create = signed(b'{"QueueName": "jobs"}', target("CreateQueue"), key=key, region="eu-west-1")
    assert (await desk.ask(create)).status == 200
    for region, count in (("eu-west-1", 1), ("us-east-1", 0)):
        found = await desk.ask(signed(b"{}", key=key, region=region))
        assert len(found.json().get("QueueUrls", [])) == count
    await desk.close()


async def test_a_stranger_reaches_a_queue_of_its_calls_region() -> None:
    desk = Desk(auth="strict", keys=[KEY, OTHER_KEY], own_region="us-east-1")
    await desk.ask(signed(b'{"QueueName": "jobs"}', target("CreateQueue"), region="eu-west-1"))
    url = f"http://{HOST}/{KEY.account}/jobs"
    allow = b'{"QueueUrl": "%b", "Label": "a", "AWSAccountIds": ["%b"], "Actions": ["SendMessage"]}' % (
        url.encode(),
        OTHER_KEY.account.encode(),
    )
    assert (await desk.ask(signed(allow, target("AddPermission"), region="eu-west-1"))).status == 200
    send = b'{"QueueUrl": "%b", "MessageBody": "x"}' % url.encode()
    for region, status in (("eu-west-1", 200), ("us-east-1", 403)):
        answer = await desk.ask(signed(send, target("SendMessage"), key=OTHER_KEY, region=region))
        assert answer.status == status, answer.body
    await desk.close()


async def test_a_presigned_url_is_believed_like_a_header_where_auth_is_off() -> None:
    desk = Desk(own_region="us-east-1")
    await ask(desk, "eu-west-1", "CreateQueue", QueueName="jobs")
    for region, count in (("eu-west-1", 1), ("us-east-1", 0)):
        request = signed(b"", {}, method="GET", url="/?Action=ListQueues", region=region, presigned_s=60)
        assert (await desk.ask(request)).body.count(b"<QueueUrl>") == count
    await desk.close()


async def test_localstacks_page_shows_the_queue_of_the_region_in_its_path() -> None:
    desk = Desk(own_region="us-east-1")
    await ask(desk, "eu-west-1", "CreateQueue", QueueName="jobs")
    await ask(desk, "eu-west-1", "SendMessage", QueueUrl=URL, MessageBody="hello")
    for region, status in (("eu-west-1", 200), ("us-east-1", 400)):
        line = f"GET /_aws/sqs/messages/{region}/000000000000/jobs HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
        answer = await desk.ask(line.encode())
        assert (answer.status, b"hello" in answer.body) == (status, status == 200)
    await desk.close()


async def test_a_reset_by_a_caller_of_any_region_takes_all_of_its_account() -> None:
    desk = Desk(own_region="us-east-1", has_testing=True)
    for region in ("us-east-1", "eu-west-1"):
        await ask(desk, region, "CreateQueue", QueueName="jobs")
    lines = [f"POST /_elasticq/reset HTTP/1.1\r\nHost: {HOST}\r\n{by('eu-west-1')}\r\nContent-Length: 0\r\n\r\n"]
    assert (await desk.ask("".join(lines).encode())).json() == {"deleted": 2}
    assert await listed(desk, "us-east-1") == []
    await desk.close()
