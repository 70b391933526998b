"""All entry points of a member, from the server's own tables of actions and routes, each with a maker of requests."""

import gzip
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote

from msgspec import inspect

from elasticq.admin import openapi
from elasticq.admin.app import make_app
from elasticq.admin.calls import ACTIONS as OPERATORS_ACTIONS
from elasticq.admin.definitions import Definitions
from elasticq.admin.source import AdminSource
from elasticq.http.faults import Order
from elasticq.http.pages.peeking import LIST_PATH, PEEK_PATH
from elasticq.http.pages.testing import METHODS as TESTING_METHODS
from elasticq.model.actions import INTERNAL
from elasticq.rest.api import Parameter
from elasticq.rest.routes import BASE, DOQ_BASE, ROUTES, STREAM_QUERY, Route
from elasticq.wire.operations import PEEK, SNS, SQS, Kind, Member, Operation, Service
from tests.system.siege.maker import SELDOM_SHARE, Maker, shape
from tests.system.siege.request import CUT, KEEP, PIPE, ROLES, Request
from tests.system.siege.values import ODD_NUMBERS, Raw, broken, extreme, spoilt, text, write
from tests.system.siege.world import (
    DEAD_LETTERS,
    DOCUMENTS,
    QUEUES,
    SETTABLE,
    SUBSCRIPTION_ATTRIBUTES,
    TOPIC_ATTRIBUTES,
    TOPICS,
    World,
)

SOUND_SHARE, ONE_SHARE, MANY_SHARE = 0.5, 0.38, 0.07
"""Of the calls: those without an extreme member, with one, with many; the others have a body that is no JSON."""
HEADER_SHARE: Final = 0.08
PATH_CHARS_MAX: Final = 12_000
WEIGHTS: Final = {
    "SendMessage": 8, "SendMessageBatch": 3, "ReceiveMessage": 12, "DeleteMessage": 6, "ChangeMessageVisibility": 3,
    "Publish": 5, "Subscribe": 3, "SetQueueAttributes": 4, "SetSubscriptionAttributes": 5, "ElasticqJoinGroup": 3,
    "ElasticqHeartbeat": 4, "Peek": 3, "send": 5, "receive": 5, "ack": 3, "nack": 3, "StartMessageMoveTask": 2,
    "DeleteQueue": 0.1, "DeleteTopic": 0.1, "delete_queue": 0.1, "ElasticqDeleteGroup": 0.1, "Unsubscribe": 0.3,
}  # fmt: skip
"""How often an action is called, where that is not once."""
RARE: Final = 0.05
"""Weight of what holds a worker or costs the whole cluster a moment: streams, hand-overs, unknown actions."""
SET_UP_WEIGHT: Final = 8
JSON, JSON_1_0 = "application/json", "application/x-amz-json-1.0"
FORM: Final = "application/x-www-form-urlencoded"
PARTING_DEPTHS: Final = range(960, 990)
PARTING_QUEUES: Final = ("plain", "short", "fair", "window")
ORDERS: Final = ("transfer", "verify", "add")
"""Orders to a cluster that stop or remove no member."""
QUERY: Final = ("filter", "sort", "down", "account", "region", "queue", "group", "prefix", "window_s", "first", "from")
"""Parameters of the pages of the operators' port, which no table lists."""


class Entry(NamedTuple):
    """One action or route of one entry point; ``make`` returns a request for what the maker's world is about."""

    name: str
    weight: float
    make: Callable[[Maker], Request]


# --- bodies ---------------------------------------------------------------------------


def members_of(maker: Maker, kind: inspect.StructType) -> dict[str, Any]:
    """Return members of which none, one or many are extreme."""
    share = maker.random.random()
    if share < SOUND_SHARE or not kind.fields:
        return maker.members(kind)
    if share < SOUND_SHARE + ONE_SHARE:
        return maker.members(kind, maker.random.choice(kind.fields).encode_name)
    return maker.members(kind, "*")


def json_of(maker: Maker, kind: inspect.StructType) -> bytes:
    members = members_of(maker, kind)
    if maker.random.random() < RARE:
        members[text(maker.random)] = extreme(maker.random)
    body = write(members).encode()
    return broken(maker.random, body) if maker.random.random() > SOUND_SHARE + ONE_SHARE + MANY_SHARE else body


def form_of(operation: Operation, service: Service, members: dict[str, Any]) -> bytes:
    """Return the members as the Query protocol writes them; values that have no form there are written as JSON."""
    lists = _by_name(operation.shape.lists)
    pairs = chain.from_iterable(_flat(*lists.get(name, (name, None)), value) for name, value in members.items())
    return encoded([("Action", operation.name), ("Version", service.version), *pairs])


def _by_name(lists: dict[str, Member]) -> dict[str, tuple[str, Member | None]]:
    """Return how lists and maps are written, by their names in JSON."""
    return {member.name: (part, member) for part, member in lists.items()}


def _flat(part: str, member: Member | None, value: Any) -> Iterator[tuple[str, str]]:
    if member is None or not isinstance(value, (dict, list)):
        if value is not None:
            yield part, value if isinstance(value, str) else write(value)
        return
    prefix = f"{part}.{member.wrapper}" if member.wrapper else part
    if isinstance(value, dict):
        for at, (key, each) in enumerate(value.items(), 1):
            yield f"{prefix}.{at}.{member.key_name}", key
            yield from _item(f"{prefix}.{at}.{member.value_name}", each, {})
        return
    inner = _by_name(member.entry.lists) if member.kind is Kind.ENTRIES and member.entry is not None else {}
    for at, each in enumerate(value, 1):
        yield from _item(f"{prefix}.{at}", each, inner)


def _item(part: str, value: Any, lists: dict[str, tuple[str, Member | None]]) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield from _flat(part, None, value)
        return
    for name, each in value.items():
        inner, member = lists.get(name, (name, None))
        yield from _flat(f"{part}.{inner}", member, each)


def encoded(pairs: Iterable[tuple[str, str]]) -> bytes:
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs).encode()


def _quoted(value: str) -> str:
    return quote(value, safe="", errors="surrogatepass")


# --- requests -------------------------------------------------------------------------


def _request(maker: Maker, name: str, method: str, path: str, body: bytes = b"", content_type: str = "") -> Request:
    """Return a request with a role, a manner and perhaps an odd header."""
    world, random = maker.world, maker.random
    headers = {"Content-Type": content_type} if content_type else {}
    if random.random() < HEADER_SHARE:
        headers |= dict([_odd_header(world)])
    if "Content-Encoding" in headers and random.random() < 0.5:
        body = gzip.compress(body, mtime=0)
    signers = (*world.accounts, "") if random.random() < RARE else (world.account,)
    return Request(
        name,
        method,
        path[:PATH_CHARS_MAX].encode("ascii", "replace").decode().replace(" ", "+"),
        headers,
        body,
        account=random.choice(signers),
        to=random.choice(ROLES),
        manner=random.choices((KEEP, PIPE, CUT), (90, 7, 3))[0],
        cut=random.choice((1.0, random.random())),
        focus=world.focus,
    )


def _odd_header(world: World) -> tuple[str, str]:
    odd = "".join(each for each in text(world.random) if each >= " ").encode("utf-8", "replace").decode()
    return world.random.choice((
        ("X-Elasticq-Fence", f"{world.group};{world.number('Token')}"), ("X-Elasticq-Fence", odd),
        ("X-Elasticq-Fence", "g;1;99999"), ("X-Elasticq-Fence", "g;" + "9" * 19), ("X-Elasticq-Guid", odd),
        ("amz-sdk-invocation-id", world.random.choice(("same", "9" * 200, odd))),
        ("X-Amzn-Trace-Id", "Root=1-" + "5" * world.random.choice((8, 1_017, 1_025))), ("X-Amzn-Query-Mode", "true"),
        ("Content-Type", world.random.choice(("text/plain", "application/json; charset=utf-16", odd))),
        ("Accept", world.random.choice(("text/html", JSON, odd))), ("Origin", "http://evil.example"),
        ("Content-Encoding", "gzip"), ("User-Agent", "Mozilla/5.0"),
    ))  # fmt: skip


def _json(name: str, operation: Operation, path: str, target: str = "") -> Callable[[Maker], Request]:
    def make(maker: Maker) -> Request:
        body = json_of(maker, shape(operation.command))
        request = _request(maker, name, "POST", path, body, JSON_1_0)
        if target:
            request.headers["X-Amz-Target"] = f"AmazonSQS.{target}"
        return request

    return make


def _form(name: str, operation: Operation, service: Service) -> Callable[[Maker], Request]:
    def make(maker: Maker) -> Request:
        body = form_of(operation, service, members_of(maker, shape(operation.command)))
        if maker.random.random() < RARE:
            body = broken(maker.random, body)
        if maker.random.random() < RARE and len(body) < PATH_CHARS_MAX:
            request = _request(maker, name, "GET", f"/?{body.decode(errors='replace')}")
        else:
            request = _request(maker, name, "POST", "/", body, FORM)
        request.service = service.signing_name
        return request

    return make


def _api_entries() -> Iterator[Entry]:
    for operation in SQS.operations.values():
        name, weight = operation.name, WEIGHTS.get(operation.name, 1)
        yield Entry(f"json:{name}", weight, _json(f"json:{name}", operation, "/", name))
        yield Entry(f"query:{name}", weight / 3, _form(f"query:{name}", operation, SQS))
    for operation in SNS.operations.values():
        name = f"sns:{operation.name}"
        yield Entry(name, WEIGHTS.get(operation.name, 1 if operation.shape.texts else 0.1), _form(name, operation, SNS))
    for name in (*sorted(SNS.not_here), *(row.name for row in INTERNAL)):
        yield Entry(f"unknown:{name}", RARE, _json(f"unknown:{name}", PEEK, "/", name))
    yield Entry(f"json:{PEEK.name}", WEIGHTS["Peek"], _json(f"json:{PEEK.name}", PEEK, PEEK_PATH))


# --- paths ----------------------------------------------------------------------------


def _filled(maker: Maker, path: str) -> str:
    """Return a route's path with a value, mostly a sound one, for each name in braces."""
    world = maker.world
    sound: dict[str, Callable[[], str]] = {
        "queue": lambda: world.queue,
        "name": lambda: world.queue if path.startswith("/queues") else world.topic,
        "account": lambda: world.account,
        "id": lambda: str(world.number("id", "Sequence")),
        "sequence": lambda: str(world.number("Sequence", "id")),
        "member": lambda: world.random.choice(("n1", "n2", "n3")),
        "tool": lambda: world.random.choice(("cli", "boto3", "curl")),
        "action": lambda: world.random.choice(list(OPERATORS_ACTIONS)),
        "order": lambda: world.random.choice(ORDERS),
    }
    odd = world.address, lambda: text(world.random), lambda: world.random.choice(ODD_NUMBERS)
    parts = path.split("/")
    for at, part in enumerate(parts):
        if part.startswith("{"):
            ways = odd if maker.random.random() < 0.15 else (sound.get(part[1:-1], odd[0]),)
            parts[at] = _quoted(world.random.choice(ways)())
    return "/".join(parts)


def _parameters(maker: Maker, parameters: Iterable[Parameter]) -> str:
    """Return a query, from "?" on, with some of the parameters."""
    world, pairs = maker.world, []
    for parameter in parameters:
        name, bounds = parameter.name, parameter.bound
        low = bounds.ge if bounds.ge is not None else 0
        high = bounds.le if bounds.le is not None else 1
        if maker.random.random() < (SELDOM_SHARE if name in ("partition", "next") else 0.4):
            if name == "wait_s":
                values: tuple[Any, ...] = (0, 0, 0, 1)
            elif parameter.kind == "integer":
                values = (low, low + 1, min(high, 10), high)
            else:
                values = ("true", "false") if parameter.kind == "boolean" else (str(maker.sound(_TEXT, name)),)
            if maker.random.random() < 0.15:
                values = (low - 1, high + 1, text(world.random), world.random.choice(ODD_NUMBERS), world.address())
            pairs.append((name, str(world.random.choice(values))))
    return "?" + encoded(pairs).decode() if pairs else ""


_TEXT: Final = inspect.StrType()


def _route(name: str, route: Route) -> Callable[[Maker], Request]:
    def make(maker: Maker) -> Request:
        base = DOQ_BASE if maker.random.random() < RARE else BASE
        body = json_of(maker, shape(maker.random.choice(route.takes))) if route.takes else b""
        path = base + _filled(maker, route.path) + _parameters(maker, route.query)
        return _request(maker, name, route.method, path, body, JSON if body else "")

    return make


def _rest_entries() -> Iterator[Entry]:
    for route in ROUTES:
        yield Entry(f"rest:{route.name}", WEIGHTS.get(route.name, 1), _route(f"rest:{route.name}", route))

    def stream(maker: Maker) -> Request:
        path = f"{BASE}{_filled(maker, '/queues/{queue}/stream')}{_parameters(maker, STREAM_QUERY)}"
        return _request(maker, "rest:stream", "GET", path)

    yield Entry("rest:stream", RARE, stream)
    for page in ("/openapi.json", "/docs", "/missing"):
        yield Entry(f"rest:{page}", RARE, _page(f"rest:{page}", "GET", f"{BASE}{page}"))
    for path, methods in TESTING_METHODS.items():
        yield Entry(f"testing:{path}", RARE, _testing(f"testing:{path}", path, methods))
    listing = [Parameter("QueueUrl", "string", ""), Parameter("ShowInvisible", "boolean", "")]
    yield Entry(f"peek:{LIST_PATH}", 0.3, _page(f"peek:{LIST_PATH}", "GET", LIST_PATH, listing))


def _page(name: str, method: str, path: str, parameters: Iterable[Parameter] = ()) -> Callable[[Maker], Request]:
    return lambda maker: _request(maker, name, method, _filled(maker, path) + _parameters(maker, parameters))


def _testing(name: str, path: str, methods: tuple[str, ...]) -> Callable[[Maker], Request]:
    """Orders of tests, which a server takes only where ``testing.enabled`` is on."""

    def make(maker: Maker) -> Request:
        sound = {"advance": 1}, {"account": maker.world.account}, {"id": 1}, maker.members(shape(Order))
        body = write(spoilt(maker.random, maker.random.choice(sound))).encode()
        return _request(maker, name, maker.random.choice(methods), path, body, JSON)

    return make


# --- the operators' port --------------------------------------------------------------


def operators_routes() -> list[tuple[str, str]]:
    """Return method and path of all routes but those of HEAD, which each GET has."""
    app = make_app(cast(AdminSource, None))  # which is asked nothing before a request comes
    found = {(route.method, route.resource.canonical) for route in app.router.routes() if route.resource is not None}
    return sorted(each for each in found if each[0] != "HEAD")


def _documented() -> dict[str, list[Parameter]]:
    """Return the parameters that the API's description names, by path."""
    paths = openapi.document()["paths"]
    return {
        path: [Parameter(each["name"], "string", "") for way in ways.values() for each in way.get("parameters", ())]
        for path, ways in paths.items()
    }


def _operators(name: str, method: str, path: str, parameters: list[Parameter]) -> Callable[[Maker], Request]:
    def make(maker: Maker) -> Request:
        body, content_type = _operators_body(maker, path) if method != "GET" else (b"", "")
        query = _parameters(maker, parameters)
        way = "HEAD" if method == "GET" and maker.random.random() < RARE else method
        return as_operators(_request(maker, name, way, _filled(maker, path) + query, body, content_type))

    return make


def as_operators(request: Request) -> Request:
    """Return the request, for the operators' port; a form comes as if its page had sent it."""
    request.is_operators, request.service = True, ""
    if request.headers.get("Content-Type") == FORM:
        request.headers["HX-Request"] = "true"
    return request


def _operators_body(maker: Maker, path: str) -> tuple[bytes, str]:
    random = maker.random
    if path == "/api/definitions":
        return json_of(maker, shape(Definitions)), JSON
    if path == "/cluster/orders":
        order = {"order": random.choice(ORDERS), "member": random.choice(("", "n1", "n2", "n3", text(random)))}
        return write(order if random.random() < SOUND_SHARE else spoilt(random, order)).encode(), JSON
    if path == "/page/definitions":
        return encoded([("definitions", json_of(maker, shape(Definitions)).decode(errors="replace"))]), FORM
    if path.startswith("/page/order"):
        return encoded([("member", random.choice(("", "n1", text(random))))]), FORM
    if path == "/login":
        return encoded([("token", text(random))]), FORM
    action = "Publish" if path == "/page/matching" else random.choice(list(OPERATORS_ACTIONS))
    return encoded(_fields(maker, action)), FORM


def _fields(maker: Maker, action: str) -> Iterator[tuple[str, str]]:
    """Return fields of the page's forms (admin/page/forms.py)."""
    if maker.random.random() < 0.5:
        yield "_account", maker.world.account
    for name, value in members_of(maker, shape(OPERATORS_ACTIONS[action].command)).items():
        if isinstance(value, dict):
            for key, each in value.items():
                yield f"{name}.{key}", each if isinstance(each, str) else write(each)
        elif isinstance(value, list):
            yield name, " ".join(each if isinstance(each, str) else write(each) for each in value)
        elif value is not None:
            yield name, value if isinstance(value, str) else write(value)


def _operators_action(name: str, action: str) -> Callable[[Maker], Request]:
    operation = OPERATORS_ACTIONS[action]
    is_page = {"do": "/page/do/", "as": "/page/as/curl/"}

    def make(maker: Maker) -> Request:
        way = maker.random.choices(("api", "do", "as"), (8, 2, 1))[0]
        if way in is_page:
            return as_operators(
                _request(maker, name, "POST", is_page[way] + action, encoded(_fields(maker, action)), FORM)
            )
        query = "?" + encoded([("account", maker.world.account)]).decode()
        body = json_of(maker, shape(operation.command))
        return as_operators(_request(maker, name, "POST", f"/api/actions/{action}{query}", body, JSON))

    return make


def _operators_entries() -> Iterator[Entry]:
    documented, general = _documented(), [Parameter(name, "string", "") for name in QUERY]
    for method, path in operators_routes():
        if path != "/api/actions/{action}":
            name = f"operators:{method} {path}"
            is_rare = path in ("/api/live", "/cluster/orders", "/page/order/{order}", "/api/definitions")
            parameters = documented.get(path) or general
            yield Entry(name, RARE if is_rare else 0.3, _operators(name, method, path, parameters))
    for action in OPERATORS_ACTIONS:
        name = f"operators:{action}"
        yield Entry(name, WEIGHTS.get(action, 1) / 2, _operators_action(name, action))


# --- all ------------------------------------------------------------------------------


def set_up(world: World) -> list[Request]:
    """Return the calls that make what a siege is about, and that take back what its calls have done to it."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("CreateQueue", {"QueueName": name, "Attributes": attributes}) for name, attributes in QUEUES.items()
    ]
    plain = {"Policy": "", "ReceiveMessageWaitTimeSeconds": "0", "DelaySeconds": "0", "MaximumMessageSize": "1048576"}
    for name, attributes in QUEUES.items():
        dead = DEAD_LETTERS.get(name)
        redrive = {"deadLetterTargetArn": world.queue_arn(dead), "maxReceiveCount": 2} if dead else None
        timeout = {"VisibilityTimeout": attributes.get("VisibilityTimeout", "30")}
        given = plain | timeout | {"RedrivePolicy": write(redrive) if redrive else ""}
        calls.append(("SetQueueAttributes", {"QueueUrl": name, "Attributes": given}))
    calls += [
        ("ElasticqSetGroup", {"GroupName": "g", "QueueNames": ["plain", "short", "priority"]}),
        ("ElasticqSetGroup", {"GroupName": "h", "QueueNames": ["fifo.fifo", "missing"]}),
        ("ElasticqSetGroup", {"GroupName": "parts", "PartitionsOf": "parts.fifo"}),
        ("ElasticqSetGroup", {"GroupName": "prefix", "QueueNamePrefix": "f"}),
    ]
    topics: list[tuple[str, dict[str, Any]]] = [
        ("CreateTopic", {"Name": name, "Attributes": attributes}) for name, attributes in TOPICS.items()
    ]
    arn = world.topic_arn().rpartition(":")[0]
    topics += [
        ("Subscribe", {"TopicArn": f"{arn}:news", "Protocol": "sqs", "Endpoint": world.queue_arn("plain")}),
        ("Subscribe", {"TopicArn": f"{arn}:news", "Protocol": "http", "Endpoint": f"{world.hook}ok"}),
        ("Subscribe", {"TopicArn": f"{arn}:topic.fifo", "Protocol": "sqs", "Endpoint": world.queue_arn("fifo.fifo")}),
    ]
    found = [_call(world, action, members) for action, members in calls]
    return found + [_call(world, action, members, SNS) for action, members in topics]


def _call(
    world: World, action: str, members: dict[str, Any], service: Service = SQS, *, is_operators: bool = False
) -> Request:
    """Return a plain call: of SQS by JSON, of SNS by Query, or of either by the operators' port."""
    if is_operators:
        path = f"/api/actions/{action}?account={world.account}"
        request = as_operators(Request(f"operators:{action}", "POST", path, {"Content-Type": JSON}))
    elif service is SQS:
        headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": JSON_1_0}
        request = Request(f"json:{action}", "POST", "/", headers)
    else:
        request = Request(f"sns:{action}", "POST", "/", {"Content-Type": FORM}, service=service.signing_name)
    is_form = service is SNS and not is_operators
    request.body = form_of(SNS.operations[action], SNS, members) if is_form else write(members).encode()
    request.account, request.focus = world.account, world.focus
    return request


def parting(world: World) -> Iterator[Request]:
    """Yield calls that store documents which are nested ever deeper; the deepest that are taken meet the next start.

    Each role, and the operators' port, has a queue and a subscription of its own, as it takes another depth. The world
    learns the subscription from the first answer, so an answer has to be learnt before the next call is drawn.
    """
    for at, queue in enumerate(PARTING_QUEUES):
        world.queue, world.topic, is_operators = queue, "news", at >= len(ROLES)
        asked = {"TopicArn": world.topic_arn(), "Protocol": "sqs", "Endpoint": world.queue_arn()}
        yield _call(world, "Subscribe", asked | {"ReturnSubscriptionArn": "true"}, SNS)
        subscription = world.newest("SubscriptionArn")
        for depth in PARTING_DEPTHS:
            deep = {"x": Raw("[" * depth + "]" * depth)}
            for name, sound in DOCUMENTS.items():
                document = write(sound(world)[0] | deep)
                for action, service, members in _storing(world, name, document, subscription):
                    request = _call(world, action, members, service, is_operators=is_operators)
                    request.to = ROLES[at % len(ROLES)]
                    yield request


def _storing(
    world: World, name: str, document: str, subscription: str
) -> Iterator[tuple[str, Service, dict[str, Any]]]:
    """Return the actions that store a document, with their members."""
    pair = {"AttributeName": name, "AttributeValue": document}
    if name in SETTABLE:
        yield "SetQueueAttributes", SQS, {"QueueUrl": world.queue, "Attributes": {name: document}}
    if name in SUBSCRIPTION_ATTRIBUTES:
        yield "SetSubscriptionAttributes", SNS, {"SubscriptionArn": subscription} | pair
    if name in TOPIC_ATTRIBUTES:
        yield "SetTopicAttributes", SNS, {"TopicArn": world.topic_arn()} | pair


ENTRIES: Final = (
    *_api_entries(),
    *_rest_entries(),
    *_operators_entries(),
    Entry("set up", SET_UP_WEIGHT, lambda maker: maker.random.choice(set_up(maker.world))),
)
TESTING: Final = tuple(entry for entry in ENTRIES if entry.name.startswith("testing:"))
"""Orders of tests, for a server that takes them and that nothing else asks."""


def draw(maker: Maker, entries: tuple[Entry, ...] = ENTRIES) -> Request:
    """Return the next request of a worker."""
    (entry,) = maker.random.choices(entries, [entry.weight for entry in entries])
    maker.world.begin(entry.name)
    return entry.make(maker)
