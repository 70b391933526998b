"""The OpenAPI document: it is what docs/openapi.json holds, it is whole, and the page shows all of it."""

import json
import re
from pathlib import Path

from elasticq.rest import openapi
from elasticq.rest.routes import BASE, ROUTES

FILE = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_file_in_the_docs_is_the_document() -> None:
    """After a change: python -m elasticq.rest.openapi > docs/openapi.json."""
    assert FILE.read_text() == openapi.text()


def test_each_route_is_in_the_document_once() -> None:
    paths = openapi.document()["paths"]
    told = [(method.upper(), path.removeprefix(BASE)) for path, item in paths.items() for method in item]
    wanted = [*((route.method, route.path) for route in ROUTES), ("GET", "/queues/{queue}/stream")]
    assert sorted(told) == sorted(wanted)


def test_references_lead_somewhere() -> None:
    document = openapi.document()
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert names <= set(document["components"]["schemas"])


def test_page_shows_every_operation_and_shape() -> None:
    page = openapi.page()
    assert all(f"{route.method} {BASE}{route.path}</code>" in page for route in ROUTES)
    assert all(f'id="{name}"' in page for name in openapi.document()["components"]["schemas"])
