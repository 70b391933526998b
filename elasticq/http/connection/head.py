"""Reads the head of a request, strictly: the security boundary of the SQS port.

Every head of every connection is judged here, before anything of the request is acted on. Three outcomes:

- ``Head`` with ``hot`` True: a POST with one plain Content-Length, or a GET of the REST API for messages, without a
  body; the hot path serves it.
- ``Head`` with ``hot`` False: legal, but for aiohttp (GET, chunked, HTTP/1.0, Expect, Upgrade, what browsers send,
  a Host that is not this server's ...).
- ``BadHead``: a head that two parsers could read differently (two lengths, length with Transfer-Encoding, bare LF,
  folded lines, NUL, odd names, a header of ``ONCE`` twice). Answered 400, the connection ends.

Speed: nearly every line of a request is equal to one seen before, so a line is
looked up whole in a bounded dict and parsed only when it is new. A line is in
that dict only after it passed the strict pattern, so a hit needs no second
look. Lines with secrets or with values that never repeat stay out.

The heads of an SDK differ from call to call in a few values only, which are
cut out of them by a template (templates.py) that was made of a head like them.
What a template does not fit is read line by line: it never refuses anything,
and what it reads is what the lines would have told.
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

EXTENSIONS: Final = ("/_elasticq/", "/_aws/", "/moto-api/", "/api/v1/", "/API/v1/")
"""Paths that begin so are not SQS's, whatever else the head says: the slow path answers nearly all (_REST_LINE)."""
_REST: Final = EXTENSIONS[-2:]

KNOWN_HEADS_MAX: Final = 512
KNOWN_HEAD_BYTES_MAX: Final = 1_024
KNOWN_LINES_MAX: Final = 1_024
KNOWN_LINE_BYTES_MAX: Final = 512

TEMPLATES_MAX: Final = 256
TEMPLATES_OF_A_LENGTH_MAX: Final = 4
TEMPLATE_BYTES_MAX: Final = 4_096
LEARN_EVERY: Final = 8
"""Of so many heads that no template fits one is made a template, as that costs more than reading its lines."""

CHUNKED: Final = 1 << 62
"""The body length of a head whose body comes in chunks; no real body is as long."""

_FRAMING: Final = frozenset(b"content-length expect te trailer transfer-encoding upgrade".split())

OTHER: Final = 0
JSON: Final = 1
FORM: Final = 2
FORM_FOR_JSON: Final = 3  # a form whose client wants its answer as JSON: never hot
REST: Final = 4  # of hot heads only: the request line tells it, and what else the head says does not matter


class BadHead(Exception):
    """The head is not HTTP/1.x as all parsers read it. The text names the rule and quotes nothing of the request."""


# What a line tells: the fact's name and value. A line of no interest is named by itself, one that may stand once
# by its header, so that only a repeated line or header, or two of a kind, make a head's facts fewer than its lines.
_LENGTH, _PROTOCOL, _TARGET, _HOST, _INVOCATION, _AUTHORIZATION, _CODING, _GUID = range(8)
_TRACE: Final = "trace"
_FENCE: Final = "fence"
_WANTS_JSON: Final = "wants JSON"
_CLOSE: Final = "close"
_COLD: Final = "cold"
_Fact = tuple[object, Any]

# A target is a path: a whole URL would name the host a second time.
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

# Spellings that SDKs use; others are as good, only slower.
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
"""Headers whose values a template cuts out. A value without a reader of its own says nothing, whatever it is."""


class _Alike:
    """Hot heads that one template fits, and the facts that they share; nothing else of the first one is kept."""

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
        self._invocation_at = _place(names, b"amz-sdk-invocation-id")
        self._authorization_at = _place(names, b"authorization")
        self._trace_at = _place(names, b"x-amzn-trace-id")

    def read(self, head: bytes) -> Head | None:
        """Return the facts of ``head``, which has the same length; None where only its lines can tell them."""
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
    """Return which lines of a head have a value that varies, and where those values stand.

    All of a line behind its colon is such a value, but a length only, without the blanks around it.
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


def _place(names: list[bytes], name: bytes) -> int:
    return names.index(name) if name in names else -1


class HeadReader:
    """Reads heads and remembers lines: one for all connections of a server."""

    __slots__ = ("_alike", "_alike_count", "_fact", "_heads", "_paths", "_unlike_count")

    def __init__(
        self,
        public_url: str = "",
        scheme: str = "http",
        context_path: str = "",
        is_foreign: Callable[[str], bool] = lambda host: False,
        service: Service = SQS,
    ) -> None:
        """``is_foreign``: tells of a Host whether the slow path must judge the request, so that it is not hot."""
        lines = _Lines(public_url, scheme, context_path, is_foreign, service.by_target)
        self._fact: Callable[[bytes], _Fact] = lines.__getitem__
        self._paths = _RequestLines()
        self._heads: dict[bytes, Head] = {}
        self._alike: dict[int, list[_Alike]] = {}  # by length
        self._alike_count = 0
        self._unlike_count = 0

    def read(self, head: bytes) -> Head:
        """Return the facts of ``head`` (without its last blank line). Raises BadHead.

        A client that neither signs nor numbers its calls repeats its head byte for byte: such heads are remembered
        whole, which saves 3 us a request. One that does both repeats all but a few values, which saves 2 us.
        """
        for alike in self._alike.get(len(head), ()):
            read = alike.read(head)
            if read is not None:
                return read
        known = self._heads.get(head)
        if known is not None:
            return known
        facts = self._parse(head)
        if facts.invocation_id:
            self._unlike_count += 1
            if self._unlike_count % LEARN_EVERY == 0:
                self._learn(facts)
        elif len(head) <= KNOWN_HEAD_BYTES_MAX:
            if len(self._heads) >= KNOWN_HEADS_MAX:
                self._heads.clear()
                self._learn(facts)  # probably signed, and so never equal
            self._heads[head] = facts
        return facts

    def _learn(self, facts: Head) -> None:
        """Make a template of a hot head. Of one length the last few are kept, and all are forgotten where too many."""
        if not facts.hot or len(facts.text) > TEMPLATE_BYTES_MAX or facts.text.startswith(b"GET"):
            return
        if self._alike_count >= TEMPLATES_MAX:
            self._alike.clear()
            self._alike_count = 0
        of_length = self._alike.setdefault(len(facts.text), [])
        if len(of_length) >= TEMPLATES_OF_A_LENGTH_MAX:
            del of_length[0]
            self._alike_count -= 1
        of_length.append(_Alike(facts))
        self._alike_count += 1

    def _parse(self, head: bytes) -> Head:
        """Read ``head`` line by line.

        The loop over the lines runs in C: ``map`` and ``dict`` come back to Python for unknown lines only.
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
    """Return which headers of ``ONCE`` there are. Raises BadHead if one of them is repeated."""
    names = [name for name in (header.partition(b":")[0].lower() for header in headers) if name in ONCE]
    if len(names) != len(set(names)):
        raise BadHead("a header that may stand once stands twice")
    return set(names)


def _cold(head: bytes, lines: list[bytes], facts: dict[object, Any]) -> Head:
    """Return a Head that is not hot, after checking the rules of framing. Raises BadHead."""
    names = _names(lines[1:])  # facts that make a head cold may hide others
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
    """Return the head without the headers that announce a body, for a parser that must never see a body."""
    kept = [line for line in lines if line.partition(b":")[0].lower() not in _FRAMING]
    return b"\r\n".join(kept) + b"\r\n\r\n"


class _RequestLines(dict[bytes, str]):
    """Maps request lines that were seen to the path of a hot one, and to an empty text for another legal one.

    The path of a hot GET has its query behind it.
    """

    __slots__ = ()

    def __missing__(self, line: bytes) -> str:
        hot = _REST_LINE.fullmatch(line) or _HOT_LINE.fullmatch(line)
        if hot is None:
            if _REQUEST_LINE.fullmatch(line) is None:
                raise BadHead("no request line")
            return ""
        path = (hot[1] or hot[2]).decode("ascii")
        if path.startswith(EXTENSIONS) and hot.re is _HOT_LINE:
            return ""
        _remember(self, line, path)
        return path


class _Lines(dict[bytes, _Fact]):
    """Maps header lines that were seen to the fact that each states."""

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
        if fact_name is not None and colon and not value.translate(None, PRINTABLE):  # a third of the pattern's price
            return fact_name, value.strip(b" ")
        header = _HEADER_LINE.fullmatch(line)
        if header is None:
            raise BadHead("no header line")
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
    """Keep a line. A full table means that a client varies what others repeat: it is emptied and begins anew."""
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
    """Return a Host header's value, which must be host or host:port. Raises BadHead."""
    if len(value) > HOST_CHARS_MAX or _HOST_VALUE.fullmatch(value) is None:
        raise BadHead("Host is no host")
    return value.decode("ascii")


def trace_header(value: bytes) -> str:
    """Return an X-Amzn-Trace-Id as a message may carry it, empty where it may not."""
    return value.decode("ascii") if _TRACE_VALUE.fullmatch(value) else ""


def wants_json(accept: str) -> bool:
    """Tell whether a Query request's Accept header asks for JSON instead of XML."""
    return "application/json" in accept


def _length(value: bytes) -> _Fact:
    if _LENGTH_VALUE.fullmatch(value) is None:
        raise BadHead("Content-Length is no number")
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
    # The application's own id of a call, in the place of its SDK's, which is a new one for each call of a method.
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
    # A page can make a browser ask; who may is judged on the slow path, so that the hot one need not.
    **{name: lambda value: (_COLD, True) for name in browsers.MARKS},
    b"user-agent": lambda value: (_COLD, True) if value.startswith(browsers.AGENT) else None,
}
