"""/api/v1 at its door: who may ask, what a browser may, and each operation by what it answers."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any
from zlib import crc32

import pytest
from jsonschema import Draft202012Validator

from elasticq.http.connection.bounds import Bounds
from elasticq.rest import openapi, routes
from elasticq.wire.browsers import Browsers
from tests.http.desk import HOST, Desk, json_request, settle, until
from tests.http.signing import KEY, OTHER_KEY, signed

API, DOQ = "/api/v1", "/API/v1"


def asked(method: str, path: str, body: Any = None, headers: str = "") -> bytes:
    text = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n{headers}"
    return f"{lines}Content-Length: {len(text)}\r\n\r\n".encode() + text


class Caller:
    """Asks a server without authentication; what it answers must be as the OpenAPI document says."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def __call__(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        answer = await self.desk.ask(asked(method, path, body))
        assert answer.status == status, answer.body
        told = path.partition("?")[0].removeprefix(API)
        if status == 200 and path.startswith(f"{API}/queues"):
            kinds = routes.find(method, told)[0].answers
            schema = {"anyOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in kinds]}
            Draft202012Validator({**schema, "components": openapi.document()["components"]}).validate(answer.json())
        return answer.json() if answer.body else None


@pytest.fixture
async def call() -> AsyncIterator[Caller]:
    desk = Desk()
    yield Caller(desk)
    await desk.close()


async def made(call: Caller, name: str = "jobs", kind: str = "delayed", **more: Any) -> str:
    await call("POST", f"{API}/queues", {"name": name, "type": kind, **more})
    return f"{API}/queues/{name}"


async def contents(call: Caller, queue: str, query: str = "max=10") -> list[str]:
    return [each["content"] for each in (await call("GET", f"{queue}/messages?{query}"))["messages"]]


# --- doq's README, with another port ---------------------------------------------------


async def test_what_doq_shows_in_its_readme_is_answered_so(call: Caller) -> None:
    queue = f"{DOQ}/queues/user_indexing_queue"
    created = await call("POST", f"{DOQ}/queues", {"name": "user_indexing_queue", "type": "delayed"})
    assert (created["status"], created["name"], created["type"]) == ("CREATED", "user_indexing_queue", "delayed")
    message = {"content": '{"user_id": 1}', "group": "default", "priority": 60}
    sent = await call("POST", f"{queue}/messages", message)
    assert {name: sent[name] for name in ("status", *message)} == {"status": "ENQUEUED", **message}
    taken = await call("GET", f"{queue}/messages?ack=true")
    assert {name: taken[name] for name in ("status", "id", *message)} == {
        "status": "DEQUEUED",
        "id": sent["id"],
        **message,
    }
    await call("GET", f"{queue}/messages?ack=true", status=400)
    second = (await call("POST", f"{queue}/messages", message))["id"]
    assert await call("PUT", f"{queue}/messages/{second}/priority", {"priority": 12}) == {
        "status": "UPDATED",
        "id": second,
        "priority": 12,
    }
    assert (await call("GET", f"{queue}/messages/{second}"))["priority"] == 12
    taken = await call("GET", f"{queue}/messages")
    assert (taken["id"], taken["priority"]) == (second, 12)
    acked = await call("POST", f"{queue}/messages/{second}/ack")
    assert (acked["status"], acked["id"]) == ("ACKNOWLEDGED", second)
    assert await call("DELETE", queue) == {"status": "DELETED"}


async def test_priority_of_doq_that_is_a_time_to_come_is_when_it_is_delivered(call: Caller) -> None:
    await made(call)
    now_s = call.desk.runtime.status().time_ms // 1_000
    message = {"content": "later", "priority": now_s + 100}
    await call("POST", f"{DOQ}/queues/jobs/messages", message)
    assert (await call("GET", f"{API}/queues/jobs"))["delayed"] == 1


async def test_nack_of_doq_with_a_time_as_priority_waits_until_then(call: Caller) -> None:
    """A worker that backs off this way must not get the message again at once."""
    await made(call)
    sent = await call("POST", f"{DOQ}/queues/jobs/messages", {"content": "again", "priority": 5})
    for ahead_s in (100, 100_000):  # more than a visibility timeout allows
        taken = await call("GET", f"{DOQ}/queues/jobs/messages")
        assert taken["id"] == sent["id"]
        at_s = call.desk.runtime.status().time_ms // 1_000 + ahead_s
        nacked = await call("POST", f"{DOQ}/queues/jobs/messages/{sent['id']}/nack", {"priority": at_s})
        assert nacked == {"status": "UNACKNOWLEDGED", "id": sent["id"], "priority": at_s, "metadata": {}}
        await empty(call, "jobs")
        call.desk.pass_ms((ahead_s - 2) * 1_000)
        await empty(call, "jobs")
        call.desk.pass_ms(2_000)
    assert (await call("GET", f"{DOQ}/queues/jobs/messages"))["id"] == sent["id"]
    assert (await call("POST", f"{DOQ}/queues/jobs/messages/{sent['id']}/nack"))["priority"] == 0


async def empty(call: Caller, queue: str) -> None:
    refused = await call("GET", f"{DOQ}/queues/{queue}/messages", status=400)
    assert refused["errors"] == [{"message": f"Queue is empty: {queue}"}]


async def test_members_are_shown_as_doq_shows_servers(call: Caller) -> None:
    [server] = (await call("GET", f"{DOQ}/cluster/servers"))["servers"]
    assert list(server) == ["id", "addr", "leader_addr", "is_leader", "suffrage"]
    assert (server["is_leader"], server["suffrage"]) == (True, "Voter")


# --- messages ---------------------------------------------------------------------------


async def test_lowest_priority_comes_first_and_what_is_given_back_keeps_or_changes_its_own(call: Caller) -> None:
    queue = await made(call)
    many = [{"content": text, "priority": number} for text, number in (("a", 3), ("b", -1), ("c", 2))]
    sent = await call("POST", f"{queue}/messages", {"messages": many})
    assert (len(sent["messages"]), sent["failed"]) == (3, [])
    ids = {each["content"]: each["id"] for each in sent["messages"]}
    assert await contents(call, queue) == ["b", "c", "a"]
    nacked = await call("POST", f"{queue}/messages/{ids['b']}/nack", {"priority": 9, "metadata": {"retry": "1"}})
    assert (nacked["status"], nacked["metadata"]) == ("UNACKNOWLEDGED", {"retry": "1"})
    assert (await call("GET", f"{queue}/messages/{ids['b']}"))["metadata"] == {"retry": "1"}
    for text in "ca":
        await call("POST", f"{queue}/messages/{ids[text]}/nack")
    assert await contents(call, queue) == ["c", "a", "b"]


async def test_receive_of_a_partition_gives_its_messages_alone(call: Caller) -> None:
    attributes = {"ElasticqPartitions": "3", "ContentBasedDeduplication": "true"}
    queue = await made(call, "lanes.fifo", "fifo", attributes=attributes)
    own: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for number in range(12):
        await call("POST", f"{queue}/messages", {"content": f"m{number}", "group": f"g{number}"})
        own[crc32(f"g{number}".encode()) % 3].append(f"m{number}")
    assert [await contents(call, queue, f"max=100&partition={partition}") for partition in own] == [*own.values()]
    assert (await call("GET", f"{queue}/messages?partition=3", status=400))["code"] == "InvalidParameterValue"


async def test_metadata_and_group_come_back_as_message_attributes(call: Caller) -> None:
    queue = await made(call, kind="standard")
    await call("POST", f"{queue}/messages", {"content": "x", "group": "g", "metadata": {"a": "b"}})
    [message] = (await call("GET", f"{queue}/messages"))["messages"]
    assert (message["group"], message["metadata"], message["receive_count"]) == ("g", {"a": "b"}, 1)


async def test_metadata_of_a_nack_is_kept_beside_the_messages_own_and_shown_again(call: Caller) -> None:
    queue = await made(call, kind="standard")
    await call("POST", f"{queue}/messages", {"content": "x", "metadata": {"a": "own", "b": "own"}})
    for note, shown in (
        ({"b": "1", "c": "1"}, {"a": "own", "b": "1", "c": "1"}),
        ({"c": "2"}, {"a": "own", "b": "1", "c": "2"}),
        ({}, {"a": "own", "b": "1", "c": "2"}),
    ):
        [message] = (await call("GET", f"{queue}/messages"))["messages"]
        place = f"{queue}/messages/{message['id']}"
        receipt = {"receipt": message["receipt"]} if "c" in message["metadata"] else {}
        await call("POST", f"{place}/nack", {"metadata": note, **receipt})
        assert (await call("GET", place))["metadata"] == shown
        assert [each["metadata"] for each in (await call("GET", f"{queue}/export"))["messages"]] == [shown]
    await call("POST", f"{place}/nack", {"metadata": {"late": "1"}}, status=409)
    [message] = (await call("GET", f"{queue}/messages"))["messages"]
    assert message["metadata"] == {"a": "own", "b": "1", "c": "2"}
    await call("POST", f"{place}/nack", {"metadata": {"x": "y" * 5_000}}, status=400)
    await call("POST", f"{place}/nack", {"metadata": {"AWS.x": "y"}}, status=400)
    asked_by_name = json_request(
        "ReceiveMessage", {"QueueUrl": "jobs", "MessageSystemAttributeNames": ["ElasticqMetadata"]}
    )
    await call("POST", f"{place}/nack")
    [taken] = (await call.desk.ask(asked_by_name)).json()["Messages"]
    assert json.loads(taken["Attributes"]["ElasticqMetadata"]) == {"b": "1", "c": "2"}


async def test_second_send_with_an_id_is_the_first_one(call: Caller) -> None:
    queue = await made(call)
    [name] = (await call("POST", f"{API}/ids", {"number": 1}))["ids"]
    first = await call("POST", f"{queue}/messages", {"content": "once", "id": name})
    again = await call("POST", f"{queue}/messages", {"content": "once", "id": name})
    assert again == first
    assert await contents(call, queue) == ["once"]


async def test_message_is_shown_and_deleted_without_receiving_it(call: Caller) -> None:
    queue = await made(call)
    sent = await call("POST", f"{queue}/messages", {"content": "x", "delay_s": 60})
    shown = await call("GET", f"{queue}/messages/{sent['id']}")
    assert (shown["status"], shown["state"], shown["receive_count"]) == ("GOT", "delayed", 0)
    await call("DELETE", f"{queue}/messages/{sent['id']}", status=204)
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/ack")):
        await call(method, f"{queue}/messages/{sent['id']}{path}", status=404)


async def test_ack_is_of_a_message_in_flight_and_a_receipt_of_its_delivery(call: Caller) -> None:
    queue = await made(call)
    sent = await call("POST", f"{queue}/messages", {"content": "x"})
    message = f"{queue}/messages/{sent['id']}"
    for order in ("ack", "nack", "touch"):
        await call("POST", f"{message}/{order}", status=409)
    [first] = (await call("GET", f"{queue}/messages?visibility_s=0"))["messages"]
    [second] = (await call("GET", f"{queue}/messages"))["messages"]
    assert (await call("POST", f"{message}/touch", {"visibility_s": 600}))["status"] == "TOUCHED"
    await call("POST", f"{message}/ack", {"receipt": first["receipt"]})
    assert (await call("GET", queue))["unacked"] == 1, "another consumer has it by now"
    await call("POST", f"{queue}/messages/1/ack", {"receipt": second["receipt"]}, status=400)
    await call("POST", f"{message}/ack", {"receipt": second["receipt"]})
    assert (await call("GET", queue))["total"] == 0


async def test_export_goes_on_where_next_says(call: Caller) -> None:
    queue = await made(call, kind="standard")
    await call("POST", f"{queue}/messages", {"messages": [{"content": str(number)} for number in range(5)]})
    found, at = [], ""
    for _ in range(3):
        page = await call("GET", f"{queue}/export?limit=2&from={at or 0}")
        found += [each["content"] for each in page["messages"]]
        at = page["next"]
    assert (found, at) == (["0", "1", "2", "3", "4"], "")


async def test_many_priorities_are_changed_by_message_ids(call: Caller) -> None:
    queue = await made(call)
    sent = [await call("POST", f"{queue}/messages", {"content": text, "priority": 5}) for text in "ab"]
    order = {"ids": [sent[1]["message_id"], "none"], "priority": 1}
    answer = await call("PUT", f"{queue}/priority", order)
    assert (answer["changed"], answer["not_found"]) == ([sent[1]["message_id"]], ["none"])
    assert await contents(call, queue) == ["b", "a"]


async def test_one_of_many_that_is_refused_is_named_and_the_others_are_sent(call: Caller) -> None:
    queue = await made(call, "jobs.fifo", "fifo", attributes={"ContentBasedDeduplication": "true"})
    many = [{"content": "a", "group": "g"}, {"content": "b"}]
    answer = await call("POST", f"{queue}/messages", {"messages": many})
    assert [each["content"] for each in answer["messages"]] == ["a"]
    [failed] = answer["failed"]
    assert (failed["at"], failed["code"]) == (1, "MissingParameter")


# --- queues -----------------------------------------------------------------------------


async def test_queues_are_listed_with_their_counts_page_by_page(call: Caller) -> None:
    for name, kind in (("one", "delayed"), ("two", "standard"), ("three.fifo", "fifo")):
        await made(call, name, kind)
    await call("POST", f"{API}/queues/two/messages", {"content": "x"})
    first = await call("GET", f"{API}/queues?limit=2")
    second = await call("GET", f"{API}/queues?limit=2&next={first['next']}")
    found = {each["name"]: (each["type"], each["ready"]) for each in first["queues"] + second["queues"]}
    assert found == {"one": ("delayed", 0), "two": ("standard", 1), "three.fifo": ("fifo", 0)}
    assert [each["name"] for each in (await call("GET", f"{API}/queues?prefix=tw"))["queues"]] == ["two"]


async def test_queue_is_changed_purged_and_deleted(call: Caller) -> None:
    queue = await made(call, settings={"ack_timeout": 60})
    assert (await call("GET", queue))["settings"]["ack_timeout"] == 60
    changed = await call("PUT", queue, {"settings": {"ack_timeout": 90}, "attributes": {"DelaySeconds": "0"}})
    assert (changed["status"], changed["settings"]["ack_timeout"]) == ("UPDATED", 90)
    await call("POST", f"{queue}/messages", {"content": "x"})
    assert await call("POST", f"{queue}/purge") == {"status": "PURGED"}
    assert (await call("GET", queue))["total"] == 0
    await call("DELETE", queue)
    await call("GET", queue, status=404)


async def test_dead_letters_are_moved_back(call: Caller) -> None:
    await made(call, "dead", "standard")
    arn = (await call("GET", f"{API}/queues/dead"))["attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    queue = await made(call, "work", "standard", attributes={"RedrivePolicy": policy})
    await call("POST", f"{queue}/messages", {"content": "x"})
    for _ in range(2):
        await call("GET", f"{queue}/messages?visibility_s=0")
    moves = f"{API}/queues/dead/moves"
    assert (await call("POST", moves))["status"] == "RUNNING"
    assert len((await call("GET", moves))["moves"]) == 1
    await until(lambda: call.desk.node.state.queue("000000000000", "work").count == 1)
    await call("DELETE", moves, status=404)


async def test_lease_is_read_again_renewed_and_committed(call: Caller) -> None:
    queue = await made(call, "read", "standard")
    await call("POST", f"{queue}/messages", {"content": "x"})
    read = "lease=reader/1/0/0"
    assert await contents(call, queue, read) == await contents(call, queue, read) == ["x"]
    renewed = await call("POST", f"{queue}/leases", {"lease": "reader/1/", "action": "renew", "visibility_s": 60})
    assert renewed == {"status": "RENEWED"}
    assert (await call("POST", f"{queue}/leases", {"lease": "reader/1/", "action": "commit"}))["status"] == "COMMITTED"
    assert (await call("GET", queue))["total"] == 0
    await call("POST", f"{queue}/leases", {"lease": "reader", "action": "commit"}, status=400)


# --- what is refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nothing", None, 404),
        ("PATCH", "/queues", None, 405),
        ("GET", "/queues/none", None, 404),
        ("POST", "/queues", {"name": "x", "type": "round"}, 400),
        ("POST", "/queues", {"name": "bad name"}, 400),
        ("POST", "/queues", b"{", 400),
        ("POST", "/queues/jobs/messages", {"content": "x", "priority": 2**63}, 400),
        ("POST", "/queues/jobs/messages", {"content": "x", "priority": "high"}, 400),
        ("POST", "/queues/jobs/messages", {"messages": []}, 400),
        ("POST", "/queues/jobs/messages", b"\xff", 400),
        ("GET", "/queues/jobs/messages?max=0", None, 400),
        ("GET", "/queues/jobs/messages?ack=perhaps", None, 400),
        ("GET", "/queues/jobs/messages/abc", None, 400),
        ("GET", f"/queues/jobs/messages/{2**63}", None, 400),
        ("GET", "/queues/jobs/export?from=x", None, 400),
        ("PUT", "/queues/plain/messages/1/priority", {"priority": 1}, 404),
        ("GET", "/queues/none/stream", None, 404),
    ],
)
async def test_refusal_is_a_problem_and_changes_nothing(
    call: Caller, method: str, path: str, body: Any, status: int
) -> None:
    await made(call)
    await made(call, "plain", "standard")
    answer = await call.desk.ask(asked(method, f"{API}{path}", body))
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json().keys() == {"status", "title", "detail", "code"}
    assert (answer.headers.get("allow") is not None) == (status == 405)
    assert (await call("GET", f"{API}/queues/jobs"))["total"] == 0
    assert len((await call("GET", f"{API}/queues"))["queues"]) == 2


async def test_strict_wants_a_signature_and_shows_an_account_its_own_queues() -> None:
    desk = Desk(auth="strict", keys=[KEY, OTHER_KEY])
    url, kind = f"{API}/queues", {"Content-Type": "application/json"}
    assert (await desk.ask(signed(b'{"name": "jobs"}', kind, url=url))).status == 200
    mine, other = [await desk.ask(signed(b"", {}, method="GET", url=url, key=key)) for key in (KEY, OTHER_KEY)]
    assert [each["name"] for each in mine.json()["queues"]] == ["jobs"]
    assert other.json()["queues"] == []
    assert (await desk.ask(asked("GET", url))).status == 403
    assert (await desk.ask(signed(b'{"name": "jobs"}', kind, url=url).replace(b"jobs", b"hobs"))).status == 403
    await desk.close()


async def test_browser_of_a_strange_page_may_nothing_and_no_link_receives() -> None:
    desk = Desk(browsers=Browsers())
    for headers in ("Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"):
        answer = await desk.ask(asked("POST", f"{API}/queues", {"name": "jobs"}, headers))
        assert (answer.status, answer.headers["content-type"]) == (403, "application/problem+json")
    assert (await desk.ask(asked("POST", f"{API}/queues", {"name": "jobs"}))).status == 200
    for path in ("/queues/jobs/messages", "/queues/jobs/stream"):
        answer = await desk.ask(asked("GET", f"{API}{path}", headers="User-Agent: Mozilla/5.0\r\n"))
        assert answer.status == 403
    assert (await desk.ask(asked("GET", f"{API}/queues", headers="User-Agent: Mozilla/5.0\r\n"))).status == 200
    await desk.close()


# --- the stream, the document, the page ---------------------------------------------------


async def test_stream_tells_messages_as_they_come_and_gives_them_back_when_its_client_leaves(call: Caller) -> None:
    queue = await made(call, kind="standard")
    await call("POST", f"{queue}/messages", {"content": "first"})
    protocol, line = call.desk.connect()
    protocol.data_received(asked("GET", f"{queue}/stream"))
    await until(lambda: b'"content":"first"' in line.received)
    assert b"text/event-stream" in line.received
    await call("POST", f"{queue}/messages", {"content": "second"})
    await until(lambda: b'"content":"second"' in line.received)
    line.close()
    await until(lambda: not call.desk.node._executor.waiters.count)
    await call("POST", f"{queue}/messages", {"content": "third"})
    assert await contents(call, queue) == ["third"]


class Streamed:
    """A stream from one address, and the contents of the messages that it got."""

    def __init__(self, desk: Desk, path: str, address: str = "127.0.0.1") -> None:
        self.protocol, self.line = desk.connect(address)
        self.protocol.data_received(asked("GET", path))

    @property
    def head(self) -> bytes:
        return bytes(self.line.received).partition(b"\r\n")[0]

    @property
    def contents(self) -> list[str]:
        events = re.findall(rb"data: (\{.*\})", bytes(self.line.received))
        return [json.loads(event)["content"] for event in events]

    async def begun(self) -> "Streamed":
        await until(lambda: bool(self.head))
        return self


@pytest.mark.parametrize("given", ["", "?visibility_s=5", "?visibility_s=1"])
async def test_stream_gets_a_message_again_when_its_visibility_has_ended(given: str) -> None:
    """The queue's own visibility timeout may become 0 meanwhile: the stream keeps the one that it began with."""
    desk = Desk(has_testing=True)
    call = Caller(desk)
    queue = await made(call, kind="standard", settings={"ack_timeout": 5})
    stream = await Streamed(desk, f"{queue}/stream{given}").begun()
    await call("PUT", queue, {"settings": {"ack_timeout": 0}})
    await call("POST", f"{queue}/messages", {"content": "x"})
    seconds = int(given.partition("=")[2] or 5)
    for turn in (1, 2, 3):
        await until(lambda turn=turn: len(stream.contents) == turn)  # type: ignore[misc]
        await call("POST", "/_elasticq/clock", {"advance": seconds - 0.001})
        await settle()
        assert (await call("GET", queue))["unacked"] == 1
        assert len(stream.contents) == turn
        await call("POST", "/_elasticq/clock", {"advance": 0.001})
    await desk.close()


async def test_stream_that_would_hide_nothing_is_refused(call: Caller) -> None:
    queue = await made(call, kind="standard", settings={"ack_timeout": 0})
    await call("POST", f"{queue}/messages", {"content": "x"})
    for given in ("", "?visibility_s=0", "?ack=true"):
        answer = await call.desk.ask(asked("GET", f"{queue}/stream{given}"))
        assert (answer.status, answer.json()["code"]) == (400, "InvalidParameterValue")
    assert (await call("GET", queue))["ready"] == 1
    assert not call.desk.context.streams
    assert (await Streamed(call.desk, f"{queue}/stream?visibility_s=1").begun()).head.endswith(b"200 OK")


async def test_address_has_so_many_streams_at_most_and_may_open_another_when_one_ends() -> None:
    desk = Desk(Bounds(streams_per_address=2))
    queue = await made(Caller(desk), kind="standard")
    first, second = [await Streamed(desk, f"{queue}/stream").begun() for _ in range(2)]
    refused = await desk.ask(asked("GET", f"{queue}/stream"))
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert "http.streams_per_address" in refused.json()["detail"]
    other = await Streamed(desk, f"{queue}/stream", "127.0.0.2").begun()
    assert other.head.endswith(b"200 OK")
    first.line.close()
    await until(lambda: desk.context.streams["127.0.0.1"] == 1)
    assert (await Streamed(desk, f"{queue}/stream").begun()).head.endswith(b"200 OK")
    await desk.close()
    await until(lambda: not desk.context.streams)
    assert second.line.ended


@pytest.mark.parametrize("base", [API, DOQ])
async def test_method_that_a_path_does_not_have_is_answered_with_those_that_it_has(call: Caller, base: str) -> None:
    paths: dict[str, set[str]] = {path: {"GET"} for path in ("/queues/jobs/stream", "/docs", "/openapi.json")}
    for route in routes.ROUTES:
        paths.setdefault(route.path.format(queue="jobs", id="7"), set()).add(route.method)
    for path, allowed in paths.items():
        for method in {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"} - allowed:
            protocol, line = call.desk.connect()
            protocol.data_received(asked(method, base + path))
            await until(lambda line=line: b"\r\n\r\n" in line.received)  # type: ignore[misc]
            head = bytes(line.received).partition(b"\r\n\r\n")[0].decode()
            assert head.startswith("HTTP/1.1 405 "), (method, path)
            assert set(re.findall(r"\r\nAllow: ([A-Z, ]+)", head)[0].split(", ")) == allowed, (method, path)


async def test_metadata_cannot_name_what_has_a_member_of_its_own(call: Caller) -> None:
    queue = await made(call)
    for name in ("ElasticqPriority", "ElasticqDeliverAt"):
        await call("POST", f"{queue}/messages", {"content": "x", "metadata": {name: "5"}}, status=400)


async def test_document_and_page_are_served_and_name_nothing_elsewhere(call: Caller) -> None:
    assert await call("GET", f"{API}/openapi.json") == json.loads(json.dumps(openapi.document()))
    page = await call.desk.ask(asked("GET", f"{API}/docs"))
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"http://" not in page.body
    assert b"https://" not in page.body
    assert b"<script" not in page.body
