"""Which endpoint is tried next, and what is learnt from the admin ports of a cluster."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from elasticq.client.endpoints import Endpoints, reachable
from tests.client.scripted import CUT, Scripted, answer, requests
from tests.peers.test_tls import Authority

OWN, SECOND, THIRD = (f"http://127.0.0.1:{port}" for port in (1, 2, 3))
NOBODY = "http://127.0.0.1:9"
WITHOUT_MEMORY_S = 0


def once_around(endpoints: Endpoints) -> list[str]:
    """The endpoints that are tried from the current one on, until one comes again."""
    seen: list[str] = []
    while endpoints.current not in seen:
        seen.append(endpoints.current)
        endpoints.leave(endpoints.current)
    return seen


def page(*members: str) -> bytes:
    return answer({"member": "1", "members": [{"id": "1", "address": "", "http": each} for each in members]})


def test_endpoints_are_tried_in_turn_and_each_once_around() -> None:
    assert once_around(Endpoints(OWN, (SECOND, f"{OWN}/", THIRD, SECOND), ())) == [OWN, SECOND, THIRD]


def test_endpoint_that_another_thread_left_is_not_left_twice() -> None:
    endpoints = Endpoints(OWN, (SECOND, THIRD), ())
    endpoints.leave(OWN)
    endpoints.leave(OWN)
    assert endpoints.current == SECOND


@pytest.mark.parametrize("wrong", ["127.0.0.1:9324", "h", "ftp://127.0.0.1", "http://"])
def test_what_is_no_url_is_refused(wrong: str) -> None:
    for given, admin in ((wrong, NOBODY), (NOBODY, wrong)):
        with pytest.raises(ValueError, match="no URL"):
            Endpoints(OWN, (given,), (admin,))


def test_one_url_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(ValueError, match="no URL"):
        Endpoints(OWN, SECOND, ())


def test_admin_ports_are_asked_once_in_some_seconds() -> None:
    with Scripted(page(SECOND)) as server:
        endpoints = Endpoints(OWN, (), (server.endpoint,))
        assert endpoints.is_new
        for _ in range(3):
            endpoints.learn()
        assert (endpoints.is_new, endpoints.is_due) == (False, False)
        assert len(server.requests) == 1
        assert once_around(endpoints) == [OWN, SECOND]


def test_who_cannot_be_asked_is_not_asked_at_each_failure_either() -> None:
    with Scripted(CUT) as server:
        endpoints = Endpoints(OWN, (SECOND,), (server.endpoint,))
        endpoints.learn()
        endpoints.learn()
        assert len(server.requests) == 1
        assert once_around(endpoints) == [OWN, SECOND]


def test_newer_answer_takes_the_place_of_an_older_one_and_none_takes_nothing_away() -> None:
    with Scripted(page(SECOND), page(THIRD), CUT, answer([])) as server:
        endpoints = Endpoints(OWN, (), (server.endpoint,), remember_s=WITHOUT_MEMORY_S)
        endpoints.learn()
        endpoints.leave(OWN)
        endpoints.learn()
        assert endpoints.current == SECOND, "it is tried until it fails"
        endpoints.leave(SECOND)
        assert once_around(endpoints) == [OWN, THIRD]
        endpoints.learn()
        endpoints.learn()
        assert once_around(endpoints) == [OWN, THIRD]
        assert len(server.requests) == 4


def test_without_admin_ports_there_is_nothing_to_learn() -> None:
    endpoints = Endpoints(OWN, (), ())
    assert (endpoints.is_new, endpoints.is_due) == (False, False)


def test_admin_ports_are_asked_over_tls(tmp_path: Path) -> None:
    files = Authority(tmp_path, "one").settings("server")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files["tls_cert"], files["tls_key"])
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
                tls.wrap_socket(listener.accept()[0], server_side=True)
            with tls.wrap_socket(listener.accept()[0], server_side=True) as connection:
                next(requests(connection.recv))
                connection.sendall(page(SECOND))

        thread = threading.Thread(target=serve)
        thread.start()
        admin = f"https://127.0.0.1:{listener.getsockname()[1]}"
        for verify, known in ((True, [OWN]), (False, [OWN, SECOND])):
            endpoints = Endpoints(OWN, (), (admin,), verify)
            endpoints.learn()
            assert once_around(endpoints) == known
        thread.join()


@pytest.mark.parametrize(
    ("http", "address", "admin_host", "found"),
    [
        ("http://10.0.0.7:9324", "10.0.0.7:9326", "10.0.0.5", ["http://10.0.0.7:9324"]),
        ("https://sqs.example", "10.0.0.7:9326", "10.0.0.5", ["https://sqs.example"]),
        ("http://0.0.0.0:9324", "10.0.0.7:9326", "10.0.0.5", ["http://10.0.0.7:9324"]),
        ("https://[::]:9324", "[fd00::7]:9326", "10.0.0.5", ["https://[fd00::7]:9324"]),
        ("http://0.0.0.0:9324", "0.0.0.0:9326", "10.0.0.5", ["http://10.0.0.5:9324"]),
        ("http://0.0.0.0:9324", "member-0.members:9326", "10.0.0.5", ["http://member-0.members:9324"]),
        ("http://127.0.0.1:9324", "127.0.0.1:9326", "127.0.0.1", ["http://127.0.0.1:9324"]),
        ("http://127.0.0.1:9324", "127.0.0.1:9326", "localhost", ["http://127.0.0.1:9324"]),
        ("http://127.0.0.1:9324", "10.0.0.7:9326", "10.0.0.5", []),
        ("http://localhost:9324", "10.0.0.7:9326", "10.0.0.5", []),
        ("", "10.0.0.7:9326", "10.0.0.5", []),
    ],
)
def test_members_are_found_where_they_can_be_reached(
    http: str, address: str, admin_host: str, found: list[str]
) -> None:
    told = {"member": "a-1", "members": [{"id": "a-1", "address": address, "http": http}]}
    assert reachable(told, admin_host) == found


def test_another_member_on_all_addresses_of_a_place_unknown_is_left_out() -> None:
    told = {"member": "a-1", "members": [{"id": "b-2", "address": "0.0.0.0:9326", "http": "http://0.0.0.0:9324"}]}
    assert reachable(told, "10.0.0.5") == []
