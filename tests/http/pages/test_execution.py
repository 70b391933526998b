"""The execution of calls on the slow path: clients that leave, queue URLs, and request ids."""

from elasticq.wire.browsers import Browsers
from tests.http.desk import (
    HOST,
    QUEUE_URL,
    Desk,
    chunked,
    form_request,
    get,
    json_request,
    responses,
    settle,
    until,
)


async def test_an_aborted_long_poll_on_the_slow_path_takes_no_message() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    protocol, line = desk.connect()
    protocol.data_received(get(f"/?Action=ReceiveMessage&WaitTimeSeconds=20&QueueUrl={QUEUE_URL}"))
    await until(lambda: desk.runtime.status().waiters == 1)
    line.close()
    await until(lambda: desk.runtime.status().waiters == 0)
    await desk.ask(json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "kept"}))
    received = await desk.ask(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]}))
    (message,) = received.json()["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    await desk.close()


async def test_an_answer_in_the_moment_of_the_abort_returns_to_its_queue() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    protocol, _ = desk.connect()
    protocol.data_received(get(f"/?Action=ReceiveMessage&WaitTimeSeconds=20&QueueUrl={QUEUE_URL}"))
    await until(lambda: desk.runtime.status().waiters == 1)
    sender, _ = desk.connect()
    sender.data_received(json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "kept"}))
    protocol.connection_lost(None)  # the reply is in the future already, its task has not run yet
    await settle()
    received = await desk.ask(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]}))
    (message,) = received.json()["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    await desk.close()


async def test_a_client_of_http_1_0_may_send_no_host_and_gets_the_address_of_the_socket() -> None:
    desk = Desk(browsers=Browsers())
    request = form_request("Action=CreateQueue&QueueName=orders")
    _, line = desk.connect()
    line.protocol.data_received(request.replace(b"HTTP/1.1", b"HTTP/1.0").replace(f"Host: {HOST}\r\n".encode(), b""))
    await until(lambda: line.ended)
    (answer,) = responses(line.received)
    assert (answer.status, f"<QueueUrl>{QUEUE_URL}</QueueUrl>".encode() in answer.body) == (200, True)
    await desk.close()


async def test_request_ids_differ_from_those_of_the_hot_path() -> None:
    desk = Desk()
    hot = (await desk.ask(json_request("ListQueues", {}))).headers["x-amzn-requestid"]
    slow = (await desk.ask(chunked(json_request("ListQueues", {})))).headers["x-amzn-requestid"]
    assert (hot[-12], slow[-12]) == ("0", "8")
    assert hot[:-12] == slow[:-12]
    await desk.close()
