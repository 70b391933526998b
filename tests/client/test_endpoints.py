"""Which endpoint is tried next."""

from elasticq.client.endpoints import Endpoints

OWN, SECOND, THIRD = (f"http://127.0.0.1:{port}" for port in (1, 2, 3))


def test_endpoints_are_tried_in_turn_and_each_once_around() -> None:
    endpoints = Endpoints(OWN, (SECOND, OWN, THIRD, SECOND), ())
    seen = []
    for _ in range(4):
        seen.append(endpoints.current)
        endpoints.leave(endpoints.current)
    assert seen == [OWN, SECOND, THIRD, OWN]


def test_endpoint_that_another_thread_left_is_not_left_twice() -> None:
    endpoints = Endpoints(OWN, (SECOND, THIRD), ())
    endpoints.leave(OWN)
    endpoints.leave(OWN)
    assert endpoints.current == SECOND
