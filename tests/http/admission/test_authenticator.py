"""The door: botocore as the oracle of what is signed well, and everything else stays out."""

import random
import re
from urllib.parse import quote

import pytest

from elasticq.model.commands import Origin
from tests.http.desk import HOST, Desk, Response, chunked, form_request, json_request, responses, settle, until
from tests.http.signing import FORM_HEADERS, JSON_HEADERS, KEY, NOW_S, OTHER_KEY, signed, target

KEYS = [KEY, OTHER_KEY]
TEXT = "abc XYZ0189-_.~/%&=+é☃\"'<>\n"


def random_text(chance: random.Random, chars_max: int = 60) -> str:
    return "".join(chance.choice(TEXT) for _ in range(chance.randrange(chars_max)))


def random_request(chance: random.Random, at_s: int = NOW_S) -> bytes:
    """JSON, form or presigned GET, to the root or a queue's path, with headers that are signed too."""
    key = chance.choice(KEYS)
    more = {f"X-Amz-Meta-{number}": f" a  {number} b " for number in range(chance.randrange(3))}
    url = chance.choice(["/", f"/{key.account}/orders", "/a//b/./c%20d/"])
    region = chance.choice(["us-east-1", "eu-central-1", "elasticmq"])
    kind = chance.randrange(4)
    if kind == 0:
        body = b'{"QueueNamePrefix": "%b"}' % str(chance.random()).encode()
        return signed(body, JSON_HEADERS | more, key=key, at_s=at_s, region=region, url=url)
    if kind == 1:
        body = f"Action=SendMessage&QueueUrl=x&MessageBody={quote(random_text(chance))}".encode()
        return signed(body, FORM_HEADERS | more, key=key, at_s=at_s, region=region, url=url)
    parameters = f"Action=ListQueues&QueueNamePrefix={quote(random_text(chance), safe='-_.~')}"
    expires_s = chance.choice([0, 3_600]) if kind == 2 else 0
    return signed(
        b"", more, method="GET", url=f"/?{parameters}", key=key, at_s=at_s, region=region, presigned_s=expires_s
    )


async def code_of(desk: Desk, request: bytes) -> tuple[int, str]:
    answer = await desk.ask(request)
    return answer.status, error_code(answer)


def error_code(answer: Response) -> str:
    if "x-amzn-query-error" in answer.headers:
        return answer.headers["x-amzn-query-error"].partition(";")[0]
    found = re.search(rb"<Code>([^<]*)</Code>", answer.body)
    return found[1].decode() if found else ""


async def test_a_thousand_random_requests_signed_by_botocore_are_accepted() -> None:
    desk = Desk(auth="strict", keys=KEYS)
    chance = random.Random(1)
    for number in range(1_000):
        request = random_request(chance, NOW_S + chance.randrange(-850, 850 if number % 2 else 50))
        status, code = await code_of(desk, request)
        assert status != 403, (number, code, request)
    await desk.close()


def flippable(request: bytes) -> list[tuple[int, int]]:
    """(place, bit) of what is signed: target, signed headers, Authorization, body.

    Upper and lower case are one in names of headers.
    """
    head = request.partition(b"\r\n\r\n")[0]
    first, *lines = head.split(b"\r\n")
    found = [(place, bit) for place in range(first.index(b" ") + 1, first.rindex(b" ")) for bit in range(8)]
    at = len(first) + 2
    for line in lines:
        name_end = at + line.index(b":")
        if not line.lower().startswith(b"content-length:"):
            is_letter = [
                place < name_end and request[place : place + 1].isalpha() for place in range(at, at + len(line))
            ]
            found += [(at + n, bit) for n in range(len(line)) for bit in range(8) if not (is_letter[n] and bit == 5)]
        at += len(line) + 2
    return found + [(place, bit) for place in range(len(head) + 4, len(request)) for bit in range(8)]


async def test_one_bit_flipped_anywhere_is_refused() -> None:
    """403; only where the flip makes it no HTTP any more (the highest bit of a head's byte, say) 400. None runs."""
    desk = Desk(auth="strict", keys=KEYS)
    chance = random.Random(2)
    refused = 0
    for number in range(1_000):
        request = bytearray(random_request(chance))
        await desk.ask(bytes(request))  # contexts of the good one are kept
        index = desk.runtime.status().last_index
        place, bit = chance.choice(flippable(request))
        request[place] ^= 1 << bit
        _, line = desk.connect()
        line.protocol.data_received(bytes(request))
        await until(lambda line=line: line.ended or bool(responses(line.received)))
        (answer,) = responses(line.received)
        context = number, place, bit, answer.status, bytes(request)
        is_no_http = answer.status == 400 and "text/plain" in answer.headers["content-type"]
        assert answer.status == 403 or is_no_http, context
        assert desk.runtime.status().last_index == index, context
        refused += answer.status == 403
    assert refused > 800
    await desk.close()


@pytest.mark.parametrize("late_s", [901, 86_400, -901, -86_400])
async def test_a_request_of_another_time_is_refused_also_when_it_was_good_before(late_s: int) -> None:
    desk = Desk(auth="strict", keys=KEYS)
    requests = [signed(), signed(b"Action=ListQueues", FORM_HEADERS)]
    for request in requests:
        assert (await desk.ask(request)).status == 200
    desk.wall_ms += late_s * 1_000
    desk.context.sweep()
    for request in requests:
        assert await code_of(desk, request) == (403, "SignatureDoesNotMatch")
    await desk.close()


async def test_a_presigned_url_ends_with_its_time_and_not_before() -> None:
    desk = Desk(auth="strict", keys=KEYS)
    request = signed(b"", {}, method="GET", url="/?Action=ListQueues", presigned_s=7_200)
    for late_s, status in ((0, 200), (7_199, 200), (7_201, 403), (-901, 403)):
        desk.wall_ms = (NOW_S + late_s) * 1_000
        desk.context.sweep()
        assert (await desk.ask(request)).status == status, late_s
    await desk.close()


async def test_a_presigned_url_may_live_for_a_week_at_most() -> None:
    desk = Desk(auth="strict", keys=KEYS)
    request = signed(b"", {}, method="GET", url="/?Action=ListQueues", presigned_s=604_801)
    assert await code_of(desk, request) == (403, "IncompleteSignature")
    await desk.close()


async def test_a_presigned_url_may_change_something_by_get() -> None:
    desk = Desk(auth="strict", keys=KEYS)
    request = signed(b"", {}, method="GET", url="/?Action=CreateQueue&QueueName=orders", presigned_s=60)
    assert (await desk.ask(request)).status == 200
    await desk.close()


BAD = {
    "not signed": (json_request("ListQueues", {}), "MissingAuthenticationToken"),
    "not signed, form": (form_request("Action=ListQueues"), "MissingAuthenticationToken"),
    "not signed, chunked": (chunked(json_request("ListQueues", {})), "MissingAuthenticationToken"),
    "not signed, GET": (
        f"GET /?Action=ListQueues HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(),
        "MissingAuthenticationToken",
    ),
    "not signed, no action": (f"GET /x HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(), "MissingAuthenticationToken"),
    "basic": (json_request("ListQueues", {}, "Authorization: Basic YTpi"), "IncompleteSignature"),
    "unknown key": (signed(key=type(KEY)("AKIDNOBODY", "x", "111111111111")), "InvalidClientTokenId"),
    "wrong secret": (signed(key=type(KEY)(KEY.access_key_id, "x", "111111111111")), "SignatureDoesNotMatch"),
    "another service": (signed(service="s3"), "SignatureDoesNotMatch"),
    "upper-case signature": (
        re.sub(rb"Signature=(\w+)", lambda found: b"Signature=" + found[1].upper(), signed()),
        "IncompleteSignature",
    ),
    "unsigned target": (
        signed(b"Action=ListQueues", FORM_HEADERS).replace(
            b"\r\nHost", b"\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nHost"
        ),
        "IncompleteSignature",
    ),
    "unsigned payload": (
        signed(headers=JSON_HEADERS | {"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}),
        "SignatureDoesNotMatch",
    ),
    "two ways": (
        signed(b"", {}, method="GET", url="/?Action=ListQueues", presigned_s=60).replace(
            b"\r\nHost", b"\r\nAuthorization: AWS4-HMAC-SHA256 Credential=a/b\r\nHost"
        ),
        "IncompleteSignature",
    ),
    "signature without parts": (
        json_request("ListQueues", {}, "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/x"),
        "IncompleteSignature",
    ),
    "no date": (re.sub(rb"X-Amz-Date: \w+\r\n", b"", signed()), "SignatureDoesNotMatch"),
}


@pytest.mark.parametrize(("request_bytes", "code"), BAD.values(), ids=BAD)
async def test_strict_lets_nobody_in_without_a_good_signature(request_bytes: bytes, code: str) -> None:
    desk = Desk(auth="strict", keys=KEYS)
    assert (await desk.ask(signed())).status == 200
    assert (await desk.ask(signed(b"Action=ListQueues", FORM_HEADERS))).status == 200
    assert await code_of(desk, request_bytes) == (403, code)
    await desk.close()


async def test_the_target_cannot_be_added_to_a_form_that_was_good() -> None:
    """The contexts of the good form are kept; the line that was not signed must not ride on them."""
    desk = Desk(auth="strict", keys=KEYS)
    good = signed(b"Action=ListQueues", FORM_HEADERS)
    assert (await desk.ask(good)).status == 200
    added = good.replace(b"\r\nContent-Length", b"\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nContent-Length")
    assert await code_of(desk, added) == (403, "IncompleteSignature")
    await desk.close()


SLOW = f"GET /health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
UNSIGNED = b"Accept-Encoding: identity\r\n"


def with_unsigned_line(request: bytes) -> bytes:
    return request.replace(b"Content-Length", UNSIGNED + b"Content-Length", 1)


@pytest.mark.parametrize("before", [b"", SLOW], ids=["fresh", "slow"])
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_recorded_request_takes_no_second_target(before: bytes, is_first: bool) -> None:
    """Who saw one request on the wire puts another action in the place of an unsigned line."""
    desk = Desk(auth="strict", keys=KEYS)
    await desk.ask(signed(b'{"QueueName": "orders"}', target("CreateQueue")))
    url = f"http://{HOST}/{KEY.account}/orders".encode()
    recorded = signed(b'{"QueueUrl": "%b", "MessageBody": "precious"}' % url, target("SendMessage"))
    recorded = with_unsigned_line(recorded)
    assert (await desk.ask(recorded)).status == 200
    other = b"X-Amz-Target: AmazonSQS.DeleteQueue\r\n"
    forged = recorded.replace(UNSIGNED, b"", 1).replace(b"Host:", other + b"Host:", 1)
    if not is_first:
        forged = recorded.replace(UNSIGNED, other)
    index = desk.runtime.status().last_index
    *_, answer = await desk.exchange(before + recorded + forged, replies=2 + bool(before))
    assert answer.status == 400
    assert desk.runtime.status().last_index == index + 1
    await desk.close()


@pytest.mark.parametrize("before", [b"", SLOW], ids=["fresh", "slow"])
async def test_json_does_not_become_a_form_by_an_unsigned_content_type(before: bytes) -> None:
    """A text in a JSON body may be a call, if the body is read as a form."""
    desk = Desk(auth="strict", keys=KEYS)
    await desk.ask(signed(b'{"QueueName": "orders"}', target("CreateQueue")))
    url = f"http://{HOST}/{KEY.account}/orders".encode()
    body = b'{"QueueUrl": "%b", "MessageBody": "&Action=DeleteQueue&QueueUrl=%b&x="}' % (url, url)
    recorded = with_unsigned_line(signed(body, {"X-Amz-Target": "AmazonSQS.SendMessage"}))
    assert (await desk.ask(recorded)).status == 200
    forged = recorded.replace(UNSIGNED, b"Content-Type: application/x-www-form-urlencoded\r\n")
    *_, answer = await desk.exchange(before + forged, replies=1 + bool(before))
    assert (answer.status, error_code(answer)) == (403, "IncompleteSignature")
    assert (await desk.ask(recorded)).status == 200
    await desk.close()


async def test_a_signed_header_that_may_be_repeated_is_signed_each_time() -> None:
    desk = Desk(auth="strict", keys=KEYS)
    recorded = with_unsigned_line(signed(headers=JSON_HEADERS | {"X-Meta": "a"}))
    assert (await desk.ask(recorded)).status == 200
    forged = recorded.replace(UNSIGNED, b"X-Meta: b\r\n")
    assert await code_of(desk, forged) == (403, "SignatureDoesNotMatch")
    await desk.close()


async def test_a_replay_under_another_invocation_id_is_another_message() -> None:
    """As docs/security.md says: boto3 leaves that id unsigned."""
    desk = Desk(auth="strict", keys=KEYS)
    await desk.ask(signed(b'{"QueueName": "orders"}', target("CreateQueue")))
    url = f"http://{HOST}/{KEY.account}/orders".encode()
    send = signed(b'{"QueueUrl": "%b", "MessageBody": "hello"}' % url, target("SendMessage"))
    marked = [send.replace(b"Host:", b"amz-sdk-invocation-id: %b\r\nHost:" % mark, 1) for mark in (b"1", b"1", b"2")]
    first, again, other = [(await desk.ask(request)).json()["MessageId"] for request in marked]
    assert first == again != other
    await desk.close()


async def test_both_protocols_tell_the_refusal_in_their_shape() -> None:
    desk = Desk(auth="strict", keys=KEYS)
    answer = await desk.ask(json_request("ListQueues", {}))
    assert answer.headers["x-amzn-query-error"] == "MissingAuthenticationToken;Sender"
    assert answer.json()["__type"] == "com.amazonaws.sqs#MissingAuthenticationTokenException"
    answer = await desk.ask(form_request("Action=ListQueues"))
    assert b"<Type>Sender</Type><Code>MissingAuthenticationToken</Code>" in answer.body
    await desk.close()


async def test_health_and_readiness_need_no_signature() -> None:
    desk = Desk(auth="strict", keys=KEYS)
    for page in ("/health", "/ready"):
        assert (await desk.ask(f"GET {page} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())).status == 200
    await desk.close()


@pytest.mark.parametrize("wrap", [lambda request: request, chunked], ids=["hot", "slow"])
async def test_account_follows_from_the_key(wrap: object) -> None:
    desk = Desk(auth="strict", keys=KEYS)
    create = b'{"QueueName": "orders"}'
    for key in KEYS:
        answer = await desk.ask(wrap(signed(create, target("CreateQueue"), key=key)))  # type: ignore[operator]
        assert answer.json()["QueueUrl"] == f"http://{HOST}/{key.account}/orders"
    await desk.close()


async def test_a_stranger_is_kept_off_a_queue_until_its_policy_lets_him() -> None:
    desk = Desk(auth="strict", keys=KEYS)
    url = f"http://{HOST}/{KEY.account}/orders"
    send = b'{"QueueUrl": "%b", "MessageBody": "hello"}' % url.encode()
    await desk.ask(signed(b'{"QueueName": "orders"}', target("CreateQueue")))
    stranger = signed(send, target("SendMessage"), key=OTHER_KEY)
    answer = await desk.ask(stranger)
    assert (answer.status, error_code(answer)) == (403, "AccessDenied")
    assert answer.json()["message"] == (
        "User: arn:aws:iam::222222222222:user/AKIDOTHER is not authorized to perform: sqs:sendmessage on resource: "
        "arn:aws:sqs:us-east-1:111111111111:orders because no resource-based policy allows the sqs:sendmessage action"
    )
    permission = (
        b'{"QueueUrl":"%b","Label":"x","AWSAccountIds":["222222222222"],"Actions":["SendMessage"]}' % url.encode()
    )
    assert (await desk.ask(signed(permission, target("AddPermission")))).status == 200
    assert (await desk.ask(stranger)).status == 200
    receive = b'{"QueueUrl": "%b"}' % url.encode()
    assert (await desk.ask(signed(receive, target("ReceiveMessage"), key=OTHER_KEY))).status == 403
    assert (await desk.ask(signed(receive, target("ReceiveMessage")))).json()["Messages"][0]["Body"] == "hello"
    await desk.close()


async def test_a_repeated_call_is_checked_before_its_answer_is_repeated() -> None:
    """The retry of a call whose permission is gone gets no answer of the time when it had it."""
    desk = Desk(auth="strict", keys=KEYS)
    mark = {"amz-sdk-invocation-id": "0123"}
    url = f"http://{HOST}/{KEY.account}/orders".encode()
    await desk.ask(signed(b'{"QueueName": "orders"}', target("CreateQueue")))
    permission = b'{"QueueUrl":"%b","Label":"x","AWSAccountIds":["222222222222"],"Actions":["SendMessage"]}' % url
    await desk.ask(signed(permission, target("AddPermission")))
    send = signed(b'{"QueueUrl": "%b", "MessageBody": "hello"}' % url, target("SendMessage") | mark, key=OTHER_KEY)
    assert (await desk.ask(send)).status == 200
    await desk.ask(signed(b'{"QueueUrl":"%b","Label":"x"}' % url, target("RemovePermission")))
    assert (await desk.ask(send)).status == 403
    await desk.close()


async def test_the_same_bytes_twice_are_one_message() -> None:
    """A replay within the window is a repeated call, as long as the client numbers its calls."""
    desk = Desk(auth="strict", keys=KEYS)
    url = f"http://{HOST}/{KEY.account}/orders".encode()
    await desk.ask(signed(b'{"QueueName": "orders"}', target("CreateQueue")))
    mark = {"amz-sdk-invocation-id": "0123"}
    send = signed(b'{"QueueUrl": "%b", "MessageBody": "hello"}' % url, target("SendMessage") | mark)
    first, second = [(await desk.ask(send)).json()["MessageId"] for _ in range(2)]
    assert first == second
    receive = signed(b'{"QueueUrl": "%b", "MaxNumberOfMessages": 10}' % url, target("ReceiveMessage"))
    assert len((await desk.ask(receive)).json()["Messages"]) == 1
    await desk.close()


async def test_lax_checks_signatures_of_known_keys_only() -> None:
    desk = Desk(auth="lax", keys=KEYS)
    create = b'{"QueueName": "orders"}'
    assert (await desk.ask(json_request("ListQueues", {}))).status == 200
    stranger = type(KEY)("999999999999", "whatever", "")
    answer = await desk.ask(signed(create, target("CreateQueue"), key=stranger))
    assert answer.json()["QueueUrl"].endswith("/999999999999/orders")
    answer = await desk.ask(signed(create, target("CreateQueue")))
    assert answer.json()["QueueUrl"].endswith(f"/{KEY.account}/orders")
    forged = signed(key=type(KEY)(KEY.access_key_id, "guessed", ""))
    assert await code_of(desk, forged) == (403, "SignatureDoesNotMatch")
    await desk.close()


async def test_off_asks_nobody() -> None:
    desk = Desk(keys=KEYS)
    assert (await desk.ask(signed(key=type(KEY)(KEY.access_key_id, "guessed", "")))).status == 200
    await desk.close()


async def test_requests_cut_anywhere_are_checked_alike() -> None:
    good = signed(b'{"QueueName": "orders"}', target("CreateQueue"))
    bad = good[:-3] + b'X"}'
    for request, status in ((good, 200), (bad, 403)):
        for at in range(1, len(request), 7):
            desk = Desk(auth="strict", keys=KEYS)
            (answer,) = await desk.exchange(request[:at], request[at:], replies=1)
            assert answer.status == status
            await settle(2)
            await desk.close()


def test_a_connection_tells_policies_where_it_comes_from() -> None:
    from elasticq.http.admission.authenticator import Authenticator
    from elasticq.http.admission.caller import Callers

    authenticator = Authenticator(KEYS, Callers("000000000000"), NOW_S, is_strict=True)
    assert authenticator.origin(("10.1.2.3", 4), is_secure=True) == Origin("10.1.2.3", True)
    assert authenticator.origin(None, is_secure=False) == Origin("", False)
    assert (
        Authenticator(KEYS, Callers("000000000000"), NOW_S, is_strict=False).origin(("10.1.2.3", 4), is_secure=True)
        is None
    )
