"""The table of the API's routes: its bounds are those that the server checks."""

from urllib.parse import urlencode

from elasticq.admin import openapi
from elasticq.admin.routes import QUERY
from tests.admin.operator import Operator

API = openapi.document()


def test_a_text_of_a_url_has_the_bound_of_the_openapi_document(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "bounded"})
    asked = 0
    for path, item in API["paths"].items():
        for parameter in item.get("get", {}).get("parameters", ()):
            schema, name = parameter["schema"], parameter["name"]
            if "maxLength" not in schema:
                assert schema.keys() & {"pattern", "enum"}, (path, name)
                continue
            assert schema["maxLength"] == QUERY[name].max_length
            asked += 1
            for more, statuses in ((0, (200, 404)), (1, (400,))):
                query = {"queue": "bounded", "window_s": "60", name: "x" * (schema["maxLength"] + more)}
                status = operator.ask(f"{path}?{urlencode(query)}")[0] if path != "/api/live" or more else 200
                assert status in statuses, (path, name)
    assert asked == 6
