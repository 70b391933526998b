"""How many messages a call may carry, by client and server."""

import pytest

from elasticq.spark.options import Connection
from elasticq.spark.pages import Pages, batching, pages_for
from tests.client.scripted import Scripted, answer


@pytest.mark.parametrize(
    ("server", "client", "wanted", "pages"),
    [
        ("elasticq/1", "light", 0, Pages(1_000, True)),
        ("elasticq/1", "light", 7, Pages(7, True)),
        ("elasticq/1", "light", 5_000, Pages(1_000, True)),
        ("elasticq/1", "boto3", 0, Pages(10, False)),
        ("other", "light", 500, Pages(10, False)),
    ],
)
def test_only_the_light_client_against_elasticq_has_large_pages(
    server: str, client: str, wanted: int, pages: Pages
) -> None:
    with Scripted(answer(b"OK", Server=server)) as there:
        assert pages_for(Connection(endpoint=there.endpoint, client=client), wanted) == pages


def test_a_call_names_its_page_in_the_words_of_its_server() -> None:
    assert Pages(1_000, True).receiving(50) == {"ElasticqPageSize": 50}
    assert Pages(10, False).receiving(5) == {"MaxNumberOfMessages": 5}
    assert (batching(10), batching(11)) == ({}, {"ElasticqPageSize": 11})
