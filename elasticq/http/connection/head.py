"""A strict reader of request heads: the security boundary of the SQS port.

It checks every head of every connection before the server acts on the request. There are three outcomes:

- ``Head`` with ``hot`` True: a POST with one plain Content-Length, or a GET of the REST API for messages, without a
  body. The hot path serves it.
- ``Head`` with ``hot`` False: legal, but for aiohttp (GET, chunked, HTTP/1.0, Expect, Upgrade, headers of browsers,
  a Host that is not this server's ...).
- ``BadHead``: a head that two parsers could read differently (two lengths, length with Transfer-Encoding, bare LF,
  folded lines, NUL, odd names, a header of ``ONCE`` twice). The answer is 400, and the connection ends.

Speed: nearly every line of a request equals an earlier one. So the reader looks
up the whole line in a bounded dict, and parses it only if it is new. A line
enters the dict only after it matched the strict pattern, so a hit needs no other
check. Lines with secrets, or with values that never repeat, do not enter it.

The heads of an SDK differ from call to call in a few values only. A template
(templates.py), made from a similar head, cuts out these values. A head that
matches no template is read line by line. So templates refuse nothing, and they
find the same facts as the lines would.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from elasticq.http.connection.facts import LINE_END, Head, lines_of
from elasticq.http.connection.templates import PRINTABLE, Span, Template
from elasticq.model.limits import HOST_CHARS_MAX
from elasticq.wire import browsers
from elasticq.wire.fence import HEADER as FENCE_HEADER
from elasticq.wire.fence import NO_FENCE
from elasticq.wire.headers import NOTIFICATION_TYPE, ONCE
from elasticq.wire.operations import SQS, Operation, Service

EXTENSIONS: Final = ("/_elasticq/", "/_aws/", "/_localstack/", "/moto-api/", "/api/v1/", "/API/v1/")
"""Prefixes of paths that do not belong to SQS. The slow path answers all of them except those of ``_REST_LINE``."""
_REST: Final = EXTENSIONS[-2:]

KNOWN_HEADS_MAX: Final = 512
KNOWN_HEAD_BYTES_MAX: Final = 1_024
KNOWN_LINES_MAX: Final = 1_024
KNOWN_LINE_BYTES_MAX: Final = 512

TEMPLATES_MAX: Final = 256
TEMPLATES_OF_A_LENGTH_MAX: Final = 4
TEMPLATE_BYTES_MAX: Final = 4_096
LEARN_EVERY: Final = 8
"""Of this many heads without a matching template, one becomes a template: making one costs more than reading lines."""

CHUNKED: Final = 1 << 62
"""The body length of a head whose body comes in chunks. No real body is as long."""

_FRAMING: Final = frozenset(b"content-length expect te trailer transfer-encoding upgrade".split())

OTHER: Final = 0
JSON: Final = 1
FORM: Final = 2
FORM_FOR_JSON: Final = 3  # a form whose client wants its answer as JSON: never hot
REST: Final = 4  # for hot heads only; it follows from the request line alone


class BadHead(Exception):
    """An error: parsers could read this head differently. Its text names the rule and quotes nothing of the request."""


# A line becomes a fact: a name and a value. A line without meaning for the server has itself as the name, and a line
# of ``ONCE`` has the name of its header. So a head has fewer facts than lines only if a line or header is repeated.
_LENGTH, _PROTOCOL, _TARGET, _HOST, _INVOCATION, _AUTHORIZATION, _CODING, _GUID = range(8)
_TRACE: Final = "trace"
_FENCE: Final = "fence"
_WANTS_JSON: Final = "wants JSON"
_CLOSE: Final = "close"
_COLD: Final = "cold"
_Fact = tuple[object, Any]

# The target must be a path: a full URL would name the host a second time.
_REQUEST_LINE: Final = re.compile(rb"(?:DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT|TRACE) /[\x21-\x7e]* HTTP/1\.[01]")
_HOT_LINE: Final = re.compile(rb"POST (/[\x21\x22\x24-\x3e\x40-\x7e]*) HTTP/1\.1")  # no query, no fragment
_REST_LINE: Final = re.compile(
    rb"(?:POST (/(?:api|API)/v1/queues/[0-9A-Za-z_.%~-]+/messages(?:/[0-9]+/(?:ack|nack|touch))?)"
    rb"|GET (/(?:api|API)/v1/queues/[0-9A-Za-z_.%~-]+/messages(?:\?[0-9A-Za-z_.%~&=/+-]*)?)) HTTP/1\.1"
)
_HEADER_LINE: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*+([\t\x20-\x7e\x80-\xff]*)")
_HOST_VALUE: Final = re.compile(rb"(?:[0-9A-Za-z._~%\-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_LENGTH_VALUE: Final = re.compile(rb"[0-9]{1,18}")
_TRACE_VALUE: Final = re.compile(rb"[\x21-\x7e]{1,1024}")
_JSON_TYPE: Final = re.compile(rb"application/x-amz-json-1\.0[ \t]*(?:;.*)?", re.IGNORECASE)
_FORM_TYPE: Final = re.compile(rb"application/x-www-form-urlencoded[ \t]*(?:;.*)?", re.IGNORECASE)

# Spellings that SDKs use. Other spellings are read, too, but more slowly.
_NEVER_EQUAL: Final = {
    b"Authorization": _AUTHORIZATION,
    b"authorization": _AUTHORIZATION,
    b"amz-sdk-invocation-id": _INVOCATION,
}
_REPEATING: Final = frozenset(
    b"accept accept-encoding accept-language amz-sdk-request cache-control connection content-length content-type host"
    b" user-agent x-amz-date x-amz-target x-amz-user-agent x-amzn-query-mode".split()
)


_VARYING: Final = frozenset(
    b"amz-sdk-invocation-id amz-sdk-request authorization content-length traceparent tracestate x-amz-content-sha256"
    b" x-amz-date x-amz-security-token x-amzn-trace-id".split()
)
"""Headers whose values a template cuts out. Headers here without a reader in ``_READERS`` state no fact."""


class _HeadTemplate:
    """The hot heads that match one template, and the facts that they share. Nothing else of the first one is kept."""

    __slots__ = (
        "_authorization_at",
        "_close",
        "_endpoint",
        "_fence",
        "_invocation_at",
        "_length_at",
        "_operation",
        "_path",
        "_protocol",
        "_template",
        "_trace_at",
    )

    def __init__(self, facts: Head) -> None:
        names, spans = _spans(facts)
        self._path = facts.path
        self._protocol = facts.protocol
        self._operation = facts.operation
        self._endpoint = facts.endpoint
        self._close = facts.close
        self._fence = facts.fence
        self._template = Template(facts.text, spans)
        self._length_at = names.index(b"content-length")
        self._invocation_at = _index_of(names, b"amz-sdk-invocation-id")
        self._authorization_at = _index_of(names, b"authorization")
        self._trace_at = _index_of(names, b"x-amzn-trace-id")

    def read(self, head: bytes) -> Head | None:
        """Return the facts of ``head``, which must have the same length. None if it must be read line by line."""
        values = self._template.values(head)
        if values is None:
            return None
        length = values[self._length_at]
        if not length.isdigit():
            return None
        invocation_at, authorization_at = self._invocation_at, self._authorization_at
        return Head(
            True,
            self._path,
            int(length),
            self._protocol,
            self._operation,
            self._endpoint,
            values[invocation_at].strip(b" ") if invocation_at >= 0 else b"",
            values[authorization_at].strip(b" ") if authorization_at >= 0 else b"",
            trace_header(values[self._trace_at].strip(b" ")) if self._trace_at >= 0 else "",
            self._close,
            head,
            self._fence,
        )


def _spans(facts: Head) -> tuple[list[bytes], list[Span]]:
    """Return the names of the headers whose values vary, and the places of these values in the head.

    The value is all of the line after its colon. For Content-Length, it excludes the blanks around it.
    """
    names, spans, at = [], [], 0
    for line in facts.lines:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name in _VARYING:
            end = at + len(line)
            begin = end - len(value)
            if name == b"content-length":
                begin = end - len(value.lstrip(b" \t"))
                end = begin + len(value.strip(b" \t"))
            names.append(name)
            spans.append((begin, end))
        at += len(line) + len(LINE_END)
    return names, spans


def _index_of(names: list[bytes], name: bytes) -> int:
    return names.index(name) if name in names else -1


class HeadReader:
    """A reader of heads, with a memory of lines and heads. One serves all connections of a port."""

    def __init__(
        self,
        public_url: str = "",
        scheme: str = "http",
        context_path: str = "",
        is_foreign: Callable[[str], bool] = lambda host: False,
        service: Service = SQS,
    ) -> None:
        """Make a reader. ``is_foreign``: returns whether the slow path must check and serve requests with this Host."""
        lines = _Lines(public_url, scheme, context_path, is_foreign, service.by_target)
        self._fact: Callable[[bytes], _Fact] = lines.__getitem__
        self._paths = _RequestLines()
        self._heads: dict[bytes, Head] = {}
        self._templates: dict[int, list[_HeadTemplate]] = {}  # by length
        self._template_count = 0
        self._unmatched_count = 0

    def read(self, head: bytes) -> Head:
        """Return the facts of ``head`` (without its last blank line). Raise BadHead if it breaks a rule.

        A client that sends neither signatures nor invocation ids repeats its head exactly. Such heads are remembered
        whole, which saves 3 us a request. Templates serve the clients that send both, which saves 2 us.
        """
        for template in self._templates.get(len(head), ()):
            read = template.read(head)
            if read is not None:
                return read
        known = self._heads.get(head)
        if known is not None:
            return known
        facts = self._parse(head)
        if facts.invocation_id:
            self._unmatched_count += 1
            if self._unmatched_count % LEARN_EVERY == 0:
                self._learn(facts)
        elif len(head) <= KNOWN_HEAD_BYTES_MAX:
            if len(self._heads) >= KNOWN_HEADS_MAX:
                self._heads.clear()
                self._learn(facts)  # probably signed, so it never repeats exactly
            self._heads[head] = facts
        return facts

    def _learn(self, facts: Head) -> None:
        """Make a template of a hot head.

        The last TEMPLATES_OF_A_LENGTH_MAX templates of one length are kept. At TEMPLATES_MAX, all are dropped.
        """
        if not facts.hot or len(facts.text) > TEMPLATE_BYTES_MAX or facts.text.startswith(b"GET"):
            return
        if self._template_count >= TEMPLATES_MAX:
            self._templates.clear()
            self._template_count = 0
        same_length = self._templates.setdefault(len(facts.text), [])
        if len(same_length) >= TEMPLATES_OF_A_LENGTH_MAX:
            del same_length[0]
            self._template_count -= 1
        same_length.append(_HeadTemplate(facts))
        self._template_count += 1

    def _parse(self, head: bytes) -> Head:
        """Read ``head`` line by line.

        The loop over the lines runs in C: ``map`` and ``dict`` call Python for unknown lines only.
        """
        lines = lines_of(head)
        first, headers = lines[0], lines[1:]
        path = self._paths[first]
        facts = dict(map(self._fact, headers))
        if len(facts) != len(headers):
            _names(headers)
        get = facts.get
        protocol = REST if path.startswith(_REST) else get(_PROTOCOL)
        if not path or _COLD in facts or _CODING in facts or _GUID in facts or not protocol:
            return _cold(head, lines, facts)
        if protocol == FORM and _WANTS_JSON in facts:
            return _cold(head, lines, facts)
        if first.startswith(b"GET") and facts.setdefault(_LENGTH, 0) != 0:
            return _cold(head, lines, facts)
        try:
            return Head(
                True,
                path,
                facts[_LENGTH],
                protocol,
                get(_TARGET),
                facts[_HOST],
                get(_INVOCATION, b""),
                get(_AUTHORIZATION, b""),
                get(_TRACE, ""),
                _CLOSE in facts,
                head,
                get(_FENCE, ""),
            )
        except KeyError:
            return _cold(head, lines, facts)


def _names(headers: list[bytes]) -> set[bytes]:
    """Return the names of the headers that are in ``ONCE``. Raise BadHead if one of them is repeated."""
    names = [name for name in (header.partition(b":")[0].lower() for header in headers) if name in ONCE]
    if len(names) != len(set(names)):
        raise BadHead("a header that may occur once is repeated")
    return set(names)


def _cold(head: bytes, lines: list[bytes], facts: dict[object, Any]) -> Head:
    """Return a Head that is not hot. Raise BadHead if it breaks a rule of framing."""
    names = _names(lines[1:])  # a fact that makes the head cold can replace others
    get = facts.get
    length, coding, is_old = get(_LENGTH), get(_CODING), lines[0].endswith(b"HTTP/1.0")
    if coding is not None:
        if length is not None:
            raise BadHead("Content-Length and Transfer-Encoding")
        if coding != b"chunked" or is_old:
            raise BadHead("a Transfer-Encoding other than chunked, or in HTTP/1.0")
    if b"host" not in names and not is_old:
        raise BadHead("no Host header")
    protocol = get(_PROTOCOL, OTHER)
    return Head(
        False,
        "",
        CHUNKED if coding else length or 0,
        FORM_FOR_JSON if protocol == FORM and _WANTS_JSON in facts else protocol,
        get(_TARGET),
        get(_HOST, ""),
        get(_GUID) or get(_INVOCATION, b""),
        get(_AUTHORIZATION, b""),
        get(_TRACE, ""),
        _CLOSE in facts,
        head,
        get(_FENCE, ""),
    )


def without_body(lines: list[bytes]) -> bytes:
    """Return the head without the headers that announce a body, for a parser that must not wait for one."""
    kept = [line for line in lines if line.partition(b":")[0].lower() not in _FRAMING]
    return b"\r\n".join(kept) + b"\r\n\r\n"


class _RequestLines(dict[bytes, str]):
    """The known request lines. The value is the path of a hot line, or an empty text for any other legal line.

    The path of a hot GET includes its query.
    """

    __slots__ = ()

    def __missing__(self, line: bytes) -> str:
        hot = _REST_LINE.fullmatch(line) or _HOT_LINE.fullmatch(line)
        if hot is None:
            if _REQUEST_LINE.fullmatch(line) is None:
                raise BadHead("malformed request line")
            return ""
        path = (hot[1] or hot[2]).decode("ascii")
        if path.startswith(EXTENSIONS) and hot.re is _HOT_LINE:
            return ""
        _remember(self, line, path)
        return path


class _Lines(dict[bytes, _Fact]):
    """The known header lines and the fact that each line states."""

    __slots__ = ("_by_target", "_context_path", "_is_foreign", "_public_url", "_scheme")

    def __init__(
        self,
        public_url: str,
        scheme: str,
        context_path: str,
        is_foreign: Callable[[str], bool],
        by_target: Mapping[bytes, Operation],
    ) -> None:
        self._by_target = by_target
        self._context_path = context_path
        self._is_foreign = is_foreign
        self._public_url = public_url
        self._scheme = scheme

    def __missing__(self, line: bytes) -> _Fact:
        name, colon, value = line.partition(b":")
        fact_name = _NEVER_EQUAL.get(name)
        if fact_name is not None and colon and not value.translate(None, PRINTABLE):  # a third of the pattern's cost
            return fact_name, value.strip(b" ")
        header = _HEADER_LINE.fullmatch(line)
        if header is None:
            raise BadHead("malformed header line")
        name, value = header[1].lower(), header[2].rstrip(b" \t")
        read = _READERS.get(name)
        fact = (read(value) if read else None) or (name if name in ONCE else line, None)
        if fact[0] == _HOST:
            host = str(fact[1])
            endpoint = self._public_url or f"{self._scheme}://{host}{self._context_path}"
            fact = (_COLD, True) if self._is_foreign(host) else (_HOST, endpoint)
        elif fact[0] == _TARGET:
            fact = _TARGET, self._by_target.get(value)
        if name in _REPEATING:
            _remember(self, line, fact)
        return fact


def _remember(known: dict[bytes, Any], line: bytes, fact: object) -> None:
    """Keep a line. A full table is emptied first: it means that a client varies lines that others repeat."""
    if len(line) <= KNOWN_LINE_BYTES_MAX:
        if len(known) >= KNOWN_LINES_MAX:
            known.clear()
        known[line] = fact


def content_protocol(value: bytes) -> int:
    """Return JSON, FORM or OTHER for a Content-Type."""
    if _JSON_TYPE.fullmatch(value):
        return JSON
    return FORM if _FORM_TYPE.fullmatch(value) else OTHER


def checked_host(value: bytes) -> str:
    """Return a Host header's value. Raise BadHead if it is neither host nor host:port."""
    if len(value) > HOST_CHARS_MAX or _HOST_VALUE.fullmatch(value) is None:
        raise BadHead("Host is neither host nor host:port")
    return value.decode("ascii")


def trace_header(value: bytes) -> str:
    """Return an X-Amzn-Trace-Id as a message can carry it; empty if it cannot."""
    return value.decode("ascii") if _TRACE_VALUE.fullmatch(value) else ""


def wants_json(accept: str) -> bool:
    """Return whether a Query request's Accept header asks for JSON instead of XML."""
    return "application/json" in accept


def _length(value: bytes) -> _Fact:
    if _LENGTH_VALUE.fullmatch(value) is None:
        raise BadHead("Content-Length is not a number")
    return _LENGTH, int(value)


def _connection(value: bytes) -> _Fact | None:
    options = {option.strip(b" \t").lower() for option in value.split(b",")}
    if b"upgrade" in options:
        return _COLD, True
    return (_CLOSE, True) if b"close" in options else None


_READERS: Final[dict[bytes, Callable[[bytes], _Fact | None]]] = {
    b"content-length": _length,
    b"content-type": lambda value: (_PROTOCOL, content_protocol(value)),
    b"x-amz-target": lambda value: (_TARGET, value),
    b"host": lambda value: (_HOST, checked_host(value)),
    b"amz-sdk-invocation-id": lambda value: (_INVOCATION, value),
    # The application's own id of a call. It replaces the SDK's id, which is new for each call of a method.
    b"x-elasticq-guid": lambda value: (_GUID, value),
    FENCE_HEADER: lambda value: (_FENCE, value.decode("latin-1") or NO_FENCE),
    b"authorization": lambda value: (_AUTHORIZATION, value),
    b"x-amzn-trace-id": lambda value: (_TRACE, trace_header(value)),
    b"accept": lambda value: (_WANTS_JSON, True) if wants_json(value.decode("latin-1")) else None,
    b"transfer-encoding": lambda value: (_CODING, value.lower()),
    b"connection": _connection,
    b"content-encoding": lambda value: None if value.lower() == b"identity" else (_COLD, True),
    b"expect": lambda value: (_COLD, True),
    b"upgrade": lambda value: (_COLD, True),
    NOTIFICATION_TYPE.encode(): lambda value: (_COLD, True),  # refused on the slow path
    # A page can make a browser send requests. The slow path checks which pages may, so that the hot path need not.
    **{name: lambda value: (_COLD, True) for name in browsers.MARKS},
    b"user-agent": lambda value: (_COLD, True) if value.startswith(browsers.AGENT) else None,
}
