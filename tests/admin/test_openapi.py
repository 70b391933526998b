"""The OpenAPI document of the admin API: it has each route, it is complete, it is served, and the page shows it."""

import json
import re

from elasticq.admin import openapi
from elasticq.admin.routes import CLUSTER, ROUTES
from tests.admin.operator import Operator

API = openapi.document()


def test_each_route_is_in_the_document_once() -> None:
    found = [(method.upper(), path) for path, item in API["paths"].items() for method in item]
    assert sorted(found) == sorted((route.method, route.path) for route in (*ROUTES, CLUSTER))


def test_every_reference_of_the_openapi_document_leads_to_a_schema() -> None:
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(API)))
    assert names <= set(API["components"]["schemas"])


def test_the_openapi_document_is_served_and_the_page_shows_its_routes(operator: Operator) -> None:
    assert operator.get("/api/openapi.json") == API
    status, page, _ = operator.ask("/api/docs")
    assert status == 200
    for path in API["paths"]:
        assert path in page
