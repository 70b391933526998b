"""The OpenAPI document: it is complete, and the page shows all of it."""

import json
import re

from elasticq.rest import openapi
from elasticq.rest.routes import BASE, ROUTES


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
