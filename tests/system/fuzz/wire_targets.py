"""Targets of the wire room: bodies of calls, forms, headers and signatures."""

import json as standard_json
import re
from posixpath import normpath
from typing import Any
from urllib.parse import quote, unquote_to_bytes
from xml.etree import ElementTree

import msgspec

from elasticq.client.credentials import Credentials
from elasticq.client.signing import Signer
from elasticq.engine import paging
from elasticq.engine.stored.identity import Identity
from elasticq.engine.topics import paging as topic_paging
from elasticq.http.connection.exchange import encode_error
from elasticq.http.connection.head import FORM_FOR_JSON, JSON
from elasticq.model.commands import Command, ReceiveMessage
from elasticq.model.errors import SqsError
from elasticq.wire import fence, form, json, query, sigv4
from elasticq.wire.browsers import Browsers
from elasticq.wire.operations import SNS, SQS, Kind, Operation, Shape
from elasticq.wire.services import guess
from tests.system.fuzz.choices import Builder, Choices
from tests.system.fuzz.target import Target

OPERATIONS = tuple(SQS.operations.values())
TOPIC_OPERATIONS = tuple(SNS.operations.values())
SERVICES = (SQS, SNS)
FORM = 0


def members_of(command: Command) -> dict[str, Any]:
    """As JSON 1.0 has them, without those that are absent."""
    members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(command))
    return {name: value for name, value in members.items() if value is not None}


_told: set[tuple[type, str]] = set()
_TOLD_MAX = 4_096


def check_refusal(error: SqsError) -> None:
    """Each protocol can tell it, in a form that its clients can read. The same refusal is looked at once."""
    if (type(error), error.message) in _told:
        return
    if len(_told) >= _TOLD_MAX:
        _told.clear()
    _told.add((type(error), error.message))
    assert type(error).__name__ != "InternalFailure", error
    for service in SERVICES:
        for protocol in (JSON, FORM_FOR_JSON, FORM):
            answer = encode_error(service, protocol, error, "request-id")
            assert 400 <= answer.status < 600
            if protocol == FORM:
                ElementTree.fromstring(answer.body)
            else:
                standard_json.loads(answer.body)


# --- JSON -------------------------------------------------------------------------------


def judge_json(data: bytes) -> None:
    """The first byte says the operation, the rest is the body."""
    if not data:
        return
    operation, body = OPERATIONS[data[0] % len(OPERATIONS)], data[1:]
    try:
        command = json.decode(operation, body)
    except SqsError as error:
        check_refusal(error)
        return
    standard_json.loads(body or b"{}")
    check_same(operation, command, msgspec.json.encode(members_of(command)))
    if body:
        careful = json._decode_without_nulls(operation, body)
        assert careful == command, "the careful decoder reads another command"


def check_same(operation: Operation, command: Command, body: bytes) -> None:
    again = json.decode(operation, body)
    assert again == command, f"{again} is not {command}"


def seeds_of_json() -> list[bytes]:
    """For each operation one body with all of its members."""
    return [
        bytes((at,)) + msgspec.json.encode(Full(Choices(bytes(range(256)))).struct(operation.command))
        for at, operation in enumerate(OPERATIONS)
    ] + [bytes((at,)) + b"{}" for at in range(len(OPERATIONS))]


class Full(Builder):
    """Every member is there."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices, is_strict=True)

    def is_present(self, field: msgspec.structs.FieldInfo) -> bool:
        return True

    def text(self, name: str) -> str:
        return self.choices.choice(["a", "10", "x y", "\u00e9"])

    def number(self, name: str) -> int:
        return self.choices.below(10)


def member_names() -> set[str]:
    commands = [operation.command for operation in (*OPERATIONS, *TOPIC_OPERATIONS)]
    return {field.encode_name for command in commands for field in msgspec.structs.fields(command)}


# --- forms ------------------------------------------------------------------------------


def judge_form(data: bytes) -> None:
    """As urllib reads it; only what is no UTF-8, malformed or too much is refused."""
    expected: dict[str, str] | None = {}
    try:
        data.decode()
        for pair in data.split(b"&"):
            name, _, value = pair.partition(b"=")
            expected[_unquoted(name)] = _unquoted(value)
    except UnicodeDecodeError:
        expected = None
    try:
        found = form.parse(data)
    except SqsError as error:
        check_refusal(error)
        is_malformed = re.search(rb"%(?![0-9A-Fa-f]{2})", data) is not None
        assert expected is None or is_malformed or data.count(b"&") >= form.PARAMETERS_MAX, "a good form was refused"
        return
    assert found == expected
    written = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in found.items())
    assert form.parse(written.encode()) == found


def _unquoted(text: bytes) -> str:
    return unquote_to_bytes(text.replace(b"+", b" ")).decode()


def judge_query(data: bytes) -> None:
    """Any form, of either API, on the path of a queue or none, signed or not."""
    choices = Choices(data)
    path = choices.choice(["/", "/000000000000/jobs", "/queue/jobs"])
    credential = choices.choice(
        [b"", b"A/20260101/us-east-1/sqs/aws4_request", b"A/20260101/us-east-1/sns/aws4_request"]
    )
    body = choices.rest()
    try:
        operation, command = query.decode_any(SERVICES, body, path, credential)
    except SqsError as error:
        check_refusal(error)
        query.encode_error(guess(SERVICES, credential, body), error, "request-id")
        return
    check_written_if_whole(operation, command)


def check_written(operation: Operation, command: Command) -> None:
    """What was read is read again from a form that says the same, and from JSON where the API has it."""
    service = SNS if operation.is_wrapped else SQS
    members = members_of(command)
    parameters = [("Action", operation.name), ("Version", service.version)]
    parameters += parameters_of(operation.shape, members)
    written = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in parameters).encode()
    if len(parameters) <= form.PARAMETERS_MAX and len(written) < 200_000:
        again, read = query.decode(service, written)
        assert again is operation
        if type(command) is ReceiveMessage and command.attribute_names:
            command.message_system_attribute_names = None  # as the reader of forms does
            members = members_of(command)
        assert without_empty(members_of(read)) == without_empty(members)
    if not operation.is_wrapped:
        check_same(operation, command, msgspec.json.encode(members))


def without_empty(members: dict[str, Any]) -> dict[str, Any]:
    """A form cannot tell a list or map without items from one that is absent."""
    return {name: value for name, value in members.items() if value not in ([], {})}


def parameters_of(shape: Shape, members: dict[str, Any], where: str = "") -> list[tuple[str, str]]:
    """The parameters of a form that says ``members``."""
    found: list[tuple[str, str]] = []
    prefixes = {member.name: (prefix, member) for prefix, member in reversed(shape.lists.items())}
    for name, value in members.items():
        if name in shape.texts or name in shape.integers:
            found.append((where + name, str(value)))
        elif name in prefixes and value is not None:
            prefix, member = prefixes[name]
            wrapper = f".{member.wrapper}" if member.wrapper else ""
            for number, item in enumerate(value, 1):
                found += _item(member, f"{where}{prefix}{wrapper}.{number}", item, value)
    return found


def _item(member: Any, place: str, item: Any, value: Any) -> list[tuple[str, str]]:
    if member.kind is Kind.ENTRIES:
        present = {name: each for name, each in item.items() if each is not None}
        return parameters_of(member.entry, present, f"{place}.")
    if member.kind in (Kind.NAMES, Kind.NUMBERS):
        return [(place, str(item))]
    if member.kind is Kind.PAIRS:
        return [(f"{place}.{member.key_name}", item), (f"{place}.{member.value_name}", value[item])]
    parts = [(f"{place}.Value.{name}", each) for name, each in value[item].items() if each is not None]
    return [(f"{place}.Name", item), *parts]


def judge_calls(data: bytes) -> None:
    """A call of any operation whose members are right or nearly right, in each protocol."""
    choices = Choices(data)
    operation = choices.choice((*OPERATIONS, *TOPIC_OPERATIONS))
    members = Builder(choices).struct(operation.command)
    try:
        if operation.is_wrapped:
            command = msgspec.convert(members, operation.command)
        else:
            command = json.decode(operation, msgspec.json.encode(members))
    except msgspec.ValidationError:
        return
    except SqsError as error:
        check_refusal(error)
        return
    if not any(name.startswith("Elasticq") for name in members):  # most of those have no place in forms
        check_written_if_whole(operation, command)


def check_written_if_whole(operation: Operation, command: Command) -> None:
    """Entries without members and attributes without values cannot be told by a form."""
    members = members_of(command)
    for value in members.values():
        if isinstance(value, list) and any(isinstance(each, dict) and not _is_whole(each) for each in value):
            return
        if isinstance(value, dict) and any(isinstance(each, dict) and not _is_whole(each) for each in value.values()):
            return
    check_written(operation, command)


def _is_whole(members: dict[str, Any]) -> bool:
    return all(value not in ([], {}, None) for value in members.values())


def seeds_of_query() -> list[bytes]:
    found = []
    for operation in (*OPERATIONS, *TOPIC_OPERATIONS):
        members = Full(Choices(bytes(range(256)))).struct(operation.command)
        parameters = [("Action", operation.name), *parameters_of(operation.shape, members)]
        found.append(b"\0\0" + "&".join(f"{name}={quote(str(value))}" for name, value in parameters).encode())
    return found


# --- signatures -------------------------------------------------------------------------

NOW_S = 1_795_312_685
KEY = sigv4.Key("AKIDEXAMPLE", "secret", "111111111111")
_HOST = "127.0.0.1:9324"
_signer = Signer(Credentials(KEY.access_key_id, KEY.secret_access_key, ""), "us-east-1", _HOST)
_TYPE = "application/x-amz-json-1.0"


def _signed(body: bytes) -> bytes:
    head = f"POST / HTTP/1.1\r\nHost: {_HOST}\r\nContent-Type: {_TYPE}\r\nX-Amz-Target: AmazonSQS.ListQueues\r\n"
    return head.encode() + _signer.headers("/", _TYPE, "AmazonSQS.ListQueues", body, NOW_S) + b"\r\n" + body


_WHOLE = _signed(b'{"MaxResults":7}')


def judge_signature(data: bytes) -> None:
    """Nobody gets in without the secret: any request at all, or a signed one in which something is changed.

    A change may leave the meaning as it is, such as another case of a header's name; then it must still be accepted
    as the same call: same line, same target, same body.
    """
    if data[:1] != b"\0":
        _check_accepted(data)
        return
    choices, changed = Choices(data[1:]), bytearray(_WHOLE)
    for _ in range(choices.below(4) + 1):
        changed[choices.below(len(changed))] = choices.below(256)
    _check_accepted(bytes(changed))


def _check_accepted(request: bytes) -> None:
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    request_line = lines[0].split(b" ")
    if len(request_line) != 3 or request_line[1][:1] != b"/" or not all(b":" in line for line in lines[1:]):
        return  # the reader of heads lets nobody see it
    names = [line.partition(b":")[0].lower() for line in lines[1:]]
    if len(set(names)) != len(names):
        return
    authorization = next(
        (line.partition(b":")[2].strip() for line in lines if line.lower().startswith(b"authorization:")), b""
    )
    verifier = sigv4.Verifier([KEY], SQS, SNS)
    accepted = []
    for _ in range(2):  # a signer that is known goes another way
        try:
            accepted.append(verifier.check(lines, authorization, body, NOW_S))
        except SqsError as error:
            check_refusal(error)
    assert len(accepted) in (0, 2), "known and unknown signers are judged differently"
    if accepted:
        assert _essence(request) == _essence(_WHOLE), "a request was accepted that nobody signed"


def _essence(request: bytes) -> tuple[object, ...]:
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
    signed = {name: b" ".join(headers.get(name, b"").split()) for name in (b"host", b"x-amz-date", b"x-amz-target")}
    method, target, _ = lines[0].split(b" ")
    return method, normpath(target.decode("latin-1")), signed, body


# --- texts that clients give back ------------------------------------------------------------

_identity = Identity(b"k" * 32)
_stranger = Identity(b"k" * 32)  # has made nothing, and so remembers nothing


def judge_tokens(data: bytes) -> None:
    """Handles, tokens and fences: those that were made are read, any others refused."""
    choices = Choices(data)
    text = choices.text() if choices.flag() else choices.randbytes(choices.below(80)).decode("latin-1")
    handle = _identity.receipt_handle(choices.below(1 << 63), choices.below(1 << 63), choices.below(1 << 63))
    known, read = _identity.read_handle(handle), _stranger.read_handle(handle)
    assert (read.queue_id, read.sequence) == (known.queue_id, known.sequence)
    assert read.delivery_number == known.delivery_number
    at = choices.below(len(handle))
    changed = handle[:at] + chr(choices.below(0x180)) + handle[at + 1 :]
    if changed != handle:
        _refused(lambda: _stranger.read_handle(changed))
    _refused(lambda: _stranger.read_handle(text))
    token = _identity.token(choices.below(1 << 63))
    assert _identity.read_token(token) is not None
    assert _identity.read_token(text) is None
    _tolerated(lambda: paging.page(lambda name: [each for each in "abc" if each > name], 1, text))
    _tolerated(lambda: topic_paging.read_token(text))
    _tolerated(lambda: topic_paging.read_number(text))
    command = ReceiveMessage(queue_url="jobs")
    _tolerated(lambda: fence.add_fence(command, text))
    if command.elasticq_group is not None:
        parts = text.split(";")
        assert parts[0] == command.elasticq_group
        assert int(parts[1]) == command.elasticq_token


def _refused(work: Any) -> None:
    try:
        work()
    except SqsError as error:
        check_refusal(error)
    else:
        raise AssertionError("what was not made here was accepted")


def _tolerated(work: Any) -> None:
    try:
        work()
    except SqsError as error:
        check_refusal(error)


def judge_browsers(data: bytes) -> None:
    """The headers by which a browser is told from a client. A public name is never one of this server's."""
    choices = Choices(data)
    names = ("Host", "Origin", "Sec-Fetch-Site", "User-Agent", "Referer")
    headers = {}
    for _ in range(choices.below(4)):
        headers[choices.choice(names)] = choices.randbytes(choices.below(30)).decode("latin-1")
    host = choices.rest().decode("latin-1")
    headers["Host"] = host
    browsers = Browsers(["mine.example"], ["https://page.example"])
    sent = {name.lower(): value for name, value in headers.items()}
    refused = browsers.refusal(lambda name: sent.get(name.lower()))
    browsers.get_refusal(lambda name: sent.get(name.lower()), "SendMessage")
    name = host.lower().rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host.lower()
    is_public = name.endswith((".com", ".example")) and name != "mine.example" and not name.startswith("[")
    if is_public and browsers.is_allowed_host(host):
        raise AssertionError("a public name was taken for this server's own")
    if headers.get("Origin", "").endswith("evil.example") and not refused:
        assert headers["Origin"].lower().partition("://")[2] == host.lower(), "a page of elsewhere was let in"


TARGETS = {
    "json": Target(judge_json, seeds_of_json(), member_names()),
    "form": Target(
        judge_form,
        [b"a=b&c=%41+%zz&d=%\r\n&=&&x=%e9%", b"a=%C3%A9=3D=\n", b"%41%3d=%26&a=+", b"a=\xff", b"a=%F0%9F%90%8D=0A"],
        ["%41", "%C3%A9", "=0A", "=\r\n", "+", "&", "%2", "%%"],
    ),
    "query": Target(judge_query, seeds_of_query(), [*member_names(), "member", "entry", "Value.StringValue", "Action"]),
    "calls": Target(
        judge_calls,
        [bytes((at,)) + bytes(range(at, at + 90)) for at in range(len(OPERATIONS) + len(TOPIC_OPERATIONS))],
        member_names(),
        2_048,
    ),
    "signature": Target(
        judge_signature,
        [
            _WHOLE,
            b"\0\0\x10\x20\x41",
            b"GET /?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20261122%2Fus-east-1%2Fsqs"
            b"%2Faws4_request&X-Amz-Date=20261122T004956Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature="
            + b"b" * 64
            + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        ],
        ["X-Amz-Credential", "X-Amz-Signature", "X-Amz-Expires", "SignedHeaders=", "UNSIGNED-PAYLOAD", "aws4_request"],
    ),
    "tokens": Target(
        judge_tokens,
        [b"\1\30group;7;1", b"\0\1\2\3", b"\1\70MQ==", *(bytes(range(at, at + 60)) for at in range(40))],
        ["group;7", ";", "MQ=="],
        512,
    ),
    "browsers": Target(
        judge_browsers,
        [
            b"\0localhost:9324",
            b"\0[::1]:9324",
            b"\0a.example.com",
            b"\1\1\x14https://evil.example127.0.0.1:9324",
            b"\0x.svc.cluster.local.:80",
        ],
        ["localhost", ".internal", ".svc", ".local", "127.0.0.1", "evil.example", ".com", "mine.example", "[::1]"],
        256,
    ),
}
