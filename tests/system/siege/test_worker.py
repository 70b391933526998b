"""Workers of a siege: what they log can be sent again, and what they cannot send is not taken for a success."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from elasticq.testing import ElasticQ
from tests.system.siege.client import Answer, Connection, Keys
from tests.system.siege.request import CUT, KEEP, PIPE, Request
from tests.system.siege.worker import RING_MAX, Ring, Worker, generated, older, replayed
from tests.system.siege.world import World

NOBODY = Keys({}, "")
HEADERS = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}
LIST = Request("json:ListQueues", "POST", "/", HEADERS, b"{}")


def port_of(server: ElasticQ) -> int:
    return int(server.endpoint_url.rpartition(":")[2])


def test_the_last_requests_can_be_read_again(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "worker0.calls")
    made = list(itertools.islice(generated(World(Random(1))), 500))
    requests = list(itertools.islice(itertools.cycle(made), 2 * RING_MAX + 500))
    assert [ring.note(request) for request in requests] == list(range(1, len(requests) + 1))
    ring.close()
    again = list(replayed([ring.file]))
    assert len(again) >= RING_MAX
    assert again == requests[-len(again) :]


def test_requests_of_several_workers_come_by_their_times_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    rings = [Ring(tmp_path / f"worker{number}.calls") for number in range(2)]
    for number in range(10):
        rings[number % 2].note(Request(f"call {number}", "GET", "/"))
    for ring in rings:
        ring.close()
    with rings[0].file.open("a") as file:
        file.write("11 5.0 master call")
    assert not older(rings[0].file).exists()
    assert sorted(request.name for request in replayed([ring.file for ring in rings])) == [
        f"call {n}" for n in range(10)
    ]


@pytest.mark.parametrize(
    ("answer", "is_failure"),
    [
        (Answer(200, b"{}", 0), False),
        (Answer(400, b"{}", 0), False),
        (Answer(503, b"{}", 0), False),
        (Answer(500, b"", 0), True),
        (Answer(200, b'{"Failed":[{"Code":"InternalFailure"}]}', 0), True),
        (Answer(404, b"<Code>InternalFailure</Code>", 0), True),
    ],
)
def test_failures_of_the_server_are_distinguished_from_refusals(answer: Answer, is_failure: bool) -> None:
    assert answer.is_failure is is_failure


def test_a_connection_reads_pipelined_answers_and_streams_and_notices_its_end() -> None:
    with ElasticQ() as server:
        server.queue("a").create()
        connection = Connection(port_of(server), NOBODY)
        assert [answer.status for answer in connection.exchange(LIST, LIST, LIST)] == [200, 200, 200]
        (head,) = connection.exchange(Request("head", "HEAD", "/health"))
        assert head == (200, b"", head.took_s)
        (stream,) = connection.exchange(Request("stream", "GET", "/api/v1/queues/a/stream"))
        assert (stream.status, b": waiting" in stream.body) == (200, True)
        assert connection.exchange(LIST)[0].status == 200
    assert connection.exchange(LIST)[0].status == 0


def test_a_worker_counts_what_it_sends_in_every_manner(tmp_path: Path) -> None:
    def requests() -> Iterator[Request]:
        for manner in (KEEP, PIPE, CUT):
            yield Request(LIST.name, LIST.method, LIST.path, LIST.headers, LIST.body, manner=manner, cut=0.5)

    with ElasticQ() as server:
        worker = Worker(requests(), lambda *_: port_of(server), NOBODY, Ring(tmp_path / "calls"))
        worker.run()
    assert worker.error is None
    assert worker.tally.done == {LIST.name: 3} or worker.tally.done == {LIST.name: 2, f"cut {LIST.name}": 1}


def test_a_pipeline_ends_at_a_request_for_the_other_port_which_is_sent_after_it(tmp_path: Path) -> None:
    requests = [replace(LIST, manner=PIPE if at % 3 == 0 else KEEP, is_operators=at % 2 == 1) for at in range(30)]
    with ElasticQ() as server:
        worker = Worker(iter(requests), lambda *_: port_of(server), NOBODY, Ring(tmp_path / "calls"))
        worker.run()
    assert worker.tally.statuses == {200: 30}


def test_an_error_of_the_worker_itself_is_kept(tmp_path: Path) -> None:
    worker = Worker(iter([LIST]), lambda *_: {}["none"], NOBODY, Ring(tmp_path / "calls"))  # type: ignore[arg-type, return-value]
    worker.run()
    assert isinstance(worker.error, KeyError)
