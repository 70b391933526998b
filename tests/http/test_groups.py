"""Consumer groups at the port: both protocols, both paths, the fence as members and as a header."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import quote

import pytest
import xmltodict

from tests.http.desk import QUEUE_URL, Desk, chunked, form_request, json_request

Way = Callable[[bytes], bytes]
WAYS = pytest.mark.parametrize("way", [bytes, chunked], ids=["hot", "slow"])
INVALID = "com.amazonaws.sqs#InvalidParameterValueException"
NOT_HOLDER = "com.amazonaws.sqs#ElasticqNotHolder"


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    for name in ("orders", "others"):
        await ask(made, "CreateQueue", QueueName=name)
    await ask(made, "ElasticqSetGroup", GroupName="g", QueueNamePrefix="o")
    yield made
    await made.close()


async def ask(desk: Desk, action: str, *headers: str, way: Way = bytes, **members: Any) -> Any:
    """The answer's members, empty where there is none."""
    answer = await desk.ask(way(json_request(action, members, *headers)))
    return answer.json() if answer.body else {}


async def form(desk: Desk, action: str, parameters: str, way: Way = bytes, *headers: str) -> Any:
    answer = await desk.ask(way(form_request(f"Action={action}&Version=2012-11-05&{parameters}", *headers)))
    return xmltodict.parse(answer.body)


def token_of(view: Any, queue: str = "orders") -> int:
    return next(each["Token"] for each in view["Assigned"] if each["Resource"] == queue)


@WAYS
async def test_a_view_in_json_has_its_members_even_where_they_are_empty(desk: Desk, way: Way) -> None:
    await ask(desk, "ElasticqJoinGroup", way=way, GroupName="g")
    view = await ask(desk, "ElasticqJoinGroup", way=way, GroupName="g", ConsumerName="two", Weight=3)
    assert view == {
        "GroupName": "g",
        "ConsumerId": view["ConsumerId"],
        "Version": view["Version"],
        "Generation": 3,
        "SessionTimeoutMs": 10_000,
        "HoldMs": 6_666,
        "HeartbeatMs": 2_500,
        "Assigned": [],
        "Revoking": [],
    }
    assert await ask(desk, "ElasticqLeaveGroup", way=way, GroupName="g", ConsumerId=view["ConsumerId"]) == {}


@WAYS
async def test_the_query_protocol_has_all_of_it_too(desk: Desk, way: Way) -> None:
    changed = await form(desk, "ElasticqSetGroup", "GroupName=h&QueueName.1=orders&QueueName.2=none", way)
    assert changed["ElasticqSetGroupResponse"]["ElasticqSetGroupResult"] == {"GroupName": "h", "Generation": "1"}
    joined = await form(desk, "ElasticqJoinGroup", "GroupName=g&Weight=1", way)
    view = joined["ElasticqJoinGroupResponse"]["ElasticqJoinGroupResult"]
    assert [each["Resource"] for each in view["Assigned"]] == ["orders", "others"]
    consumer, tokens = view["ConsumerId"], [each["Token"] for each in view["Assigned"]]
    released = f"GroupName=g&ConsumerId={consumer}&Released.1={tokens[0]}&Released.2={tokens[1]}&KnownVersion=1"
    view = (await form(desk, "ElasticqHeartbeat", released, way))["ElasticqHeartbeatResponse"][
        "ElasticqHeartbeatResult"
    ]
    assert not set(tokens) & {each["Token"] for each in view["Assigned"]}
    shown = await form(desk, "ElasticqDescribeGroups", "GroupName.1=g&GroupName.2=h", way)
    groups = shown["ElasticqDescribeGroupsResponse"]["ElasticqDescribeGroupsResult"]["Groups"]
    assert [each["GroupName"] for each in groups] == ["g", "h"]
    assert groups[0]["Consumers"]["ConsumerId"] == consumer
    assert [each["State"] for each in groups[0]["Resources"]] == ["held", "held"]
    assert groups[1]["QueueNames"] == ["orders", "none"]
    error = await form(desk, "ElasticqHeartbeat", "GroupName=g&ConsumerId=x", way)
    assert error["ErrorResponse"]["Error"]["Code"] == "ElasticqUnknownConsumer"


@WAYS
async def test_a_fence_by_members_and_by_the_header_in_both_protocols(desk: Desk, way: Way) -> None:
    token = token_of(await ask(desk, "ElasticqJoinGroup", GroupName="g"))
    for number in range(4):
        await ask(desk, "SendMessage", QueueUrl=QUEUE_URL, MessageBody=str(number))
    receive = {"QueueUrl": QUEUE_URL, "MaxNumberOfMessages": 1}
    own = {"ElasticqGroup": "g", "ElasticqToken": token}
    (first,) = (await ask(desk, "ReceiveMessage", way=way, **receive, **own))["Messages"]
    (_,) = (await ask(desk, "ReceiveMessage", f"X-Elasticq-Fence: g;{token}", way=way, **receive))["Messages"]
    for fence in (f"g;{token + 1}", f"h;{token}"):
        refused = await ask(desk, "ReceiveMessage", f"x-elasticq-fence:{fence}", way=way, **receive)
        assert refused["__type"] == NOT_HOLDER
    wrong = await ask(desk, "ReceiveMessage", "X-Elasticq-Fence:", way=way, **receive)
    assert wrong["__type"] == INVALID
    handle = first["ReceiptHandle"]
    stale = {"QueueUrl": QUEUE_URL, "ReceiptHandle": handle, "ElasticqGroup": "g", "ElasticqToken": token + 1}
    assert (await ask(desk, "DeleteMessage", way=way, **stale))["__type"] == NOT_HOLDER
    parameters = f"QueueUrl={QUEUE_URL}&ReceiptHandle={quote(handle, safe='')}"
    fence = f"g;{token + 1}"
    for more, headers in ((f"&ElasticqGroup=g&ElasticqToken={token + 1}", []), ("", [f"X-Elasticq-Fence: {fence}"])):
        answer = await form(desk, "DeleteMessage", parameters + more, way, *headers)
        assert answer["ErrorResponse"]["Error"]["Code"] == "ElasticqNotHolder"
    assert "DeleteMessageResponse" in await form(desk, "DeleteMessage", parameters, way, f"X-Elasticq-Fence: g;{token}")


async def test_heads_that_are_read_by_a_template_keep_their_own_fence(desk: Desk) -> None:
    """An SDK's heads differ in a few values; a fence is none of those that are cut out."""
    token = token_of(await ask(desk, "ElasticqJoinGroup", GroupName="g"))
    answers = []
    for number in range(40):
        fence = token + number % 2
        headers = f"amz-sdk-invocation-id: {number:08}", f"X-Elasticq-Fence: g;{fence}"
        answers.append(await ask(desk, "ReceiveMessage", *headers, QueueUrl=QUEUE_URL))
    assert [answer.get("__type") for answer in answers] == [None, NOT_HOLDER] * 20


async def test_a_fence_that_stands_twice_is_no_head(desk: Desk) -> None:
    request = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL}, "X-Elasticq-Fence: g;1", "x-elasticq-fence: g;2")
    assert (await desk.ask(request)).status == 400


@pytest.mark.parametrize(
    ("action", "members"),
    [
        ("ElasticqSetGroup", {"GroupName": "g", "QueueNames": ["x"] * 1_001}),
        ("ElasticqSetGroup", {"GroupName": "g" * 257}),
        ("ElasticqSetGroup", {"GroupName": "g", "SessionTimeoutMs": 2**40}),
        ("ElasticqHeartbeat", {"GroupName": "g", "ConsumerId": "x" * 257}),
        ("ElasticqHeartbeat", {"GroupName": "g", "ConsumerId": "x", "Released": [2**63]}),
        ("ElasticqHeartbeat", {"GroupName": "g", "ConsumerId": "x", "Released": list(range(1_001))}),
        ("ReceiveMessage", {"QueueUrl": "orders", "ElasticqGroup": "g", "ElasticqToken": 2**63}),
        (
            "ReceiveMessage",
            {"QueueUrl": "orders", "ElasticqGroup": "g", "ElasticqToken": 1, "ElasticqPartition": 2**31},
        ),
    ],
)
async def test_what_is_beyond_bounds_is_the_client_s_error(desk: Desk, action: str, members: dict[str, Any]) -> None:
    assert (await ask(desk, action, **members))["__type"] == INVALID
    nulls = {name: [*value, None] if isinstance(value, list) else value for name, value in members.items()}
    assert (await ask(desk, action, **nulls, NextToken=None))["__type"] == INVALID


async def test_members_of_wrong_types_are_told(desk: Desk) -> None:
    for members in ({"Released": "1"}, {"Released": ["1"]}, {"KnownVersion": "1"}, {"WaitTimeSeconds": 1.5}):
        answer = await ask(desk, "ElasticqHeartbeat", GroupName="g", ConsumerId="x", **members)
        assert answer["__type"] == "com.amazonaws.sqs#SerializationException"


async def test_an_action_of_groups_is_not_one_of_a_queue(desk: Desk) -> None:
    answer = await desk.ask(form_request("Action=ElasticqJoinGroup&GroupName=g", path="/000000000000/orders"))
    assert xmltodict.parse(answer.body)["ErrorResponse"]["Error"]["Code"] == "InvalidAction"
