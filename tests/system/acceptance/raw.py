"""Both protocols by hand: one set of parameters as AWS JSON 1.0 or as a Query form, answers as plain values."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import xmltodict

TIMEOUT_S = 60
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential={account}/20260101/us-east-1/sqs/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=" + "0" * 64
)
# JSON 1.0 members that are lists or maps, and their names in a form (botocore's model of the Query protocol).
MAPS = {
    "Attributes": ("Attribute", "Name", "Value"),
    "MessageAttributes": ("MessageAttribute", "Name", "Value"),
    "MessageSystemAttributes": ("MessageSystemAttribute", "Name", "Value"),
    "tags": ("Tag", "Key", "Value"),
    "Tags": ("Tag", "Key", "Value"),
}
LISTS = {
    "AttributeNames": "AttributeName",
    "MessageAttributeNames": "MessageAttributeName",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "TagKeys": "TagKey",
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
}


@dataclass
class Answer:
    """What came back: HTTP status, headers in lower case, and the body's bytes."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The JSON value; {} for the empty body of an action that answers nothing."""
        return json.loads(self.body) if self.body else {}

    @property
    def xml(self) -> Any:
        """The XML element's content: ``<Action>Response`` or ``ErrorResponse``."""
        (content,) = xmltodict.parse(self.body).values()
        return content

    @property
    def error(self) -> tuple[int, str, str]:
        """(status, Query code, message), whichever protocol answered."""
        if "json" in self.headers["content-type"]:
            return self.status, self.headers["x-amzn-query-error"].partition(";")[0], self.document["message"]
        error = self.xml["Error"]
        return self.status, error["Code"], error["Message"]


def form_pairs(action: str, parameters: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The parameters as the flattened names of a form."""
    for name, value in parameters.items():
        if name == "Entries":
            for number, entry in enumerate(value, 1):
                yield from form_pairs(action, entry, f"{prefix}{action}RequestEntry.{number}.")
        elif name in MAPS:
            yield from map_pairs(prefix, MAPS[name], value)
        elif name in LISTS:
            yield from ((f"{prefix}{LISTS[name]}.{number}", item) for number, item in enumerate(value, 1))
        else:
            yield prefix + name, str(value)


def map_pairs(prefix: str, names: tuple[str, str, str], members: dict[str, Any]) -> Iterator[tuple[str, str]]:
    member_name, key_name, value_name = names
    for number, (key, value) in enumerate(members.items(), 1):
        yield f"{prefix}{member_name}.{number}.{key_name}", key
        stem = f"{prefix}{member_name}.{number}.{value_name}"
        if isinstance(value, dict):
            yield from ((f"{stem}.{part}", str(text)) for part, text in value.items())
        else:
            yield stem, str(value)


class Endpoint:
    """A server's address; each call is a connection of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.netloc = urlsplit(url).netloc

    def request(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection(self.netloc, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, fields, response.read())
        finally:
            connection.close()

    def json_body(self, action: str, body: bytes, headers: dict[str, str] | None = None) -> Answer:
        """A JSON 1.0 request with exactly these bytes."""
        fields = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
        return self.request("POST", "/", body, fields | (headers or {}))

    def json(self, action: str, parameters: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
        return self.json_body(action, json.dumps(parameters).encode(), headers)

    def query(self, action: str, parameters: dict[str, Any], path: str = "/", account: str | None = None) -> Answer:
        """A Query form by POST."""
        fields = {"Content-Type": "application/x-www-form-urlencoded"}
        if account:
            fields["Authorization"] = AUTHORIZATION.format(account=account)
        pairs = [("Action", action), ("Version", "2012-11-05"), *form_pairs(action, parameters)]
        return self.request("POST", path, urlencode(pairs).encode(), fields)

    def call(self, protocol: str, action: str, parameters: dict[str, Any]) -> Answer:
        """The same call by ``json`` or ``query``."""
        return self.json(action, parameters) if protocol == "json" else self.query(action, parameters)
