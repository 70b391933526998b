"""The options of ``format("sqs")``: names, types, bounds and defaults.

Each use (reading, writing, consuming) has a frozen dataclass whose fields are its options. Spark passes options as
texts with case-insensitive names, and ``parse`` turns them into the dataclass.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

CHECKPOINT: Final = "checkpointlocation"
# Names that users know from Spark's other sources, in lower case, and what to use here.
ELSEWHERE: Final = {
    "maxoffsetspertrigger": "use maxMessagesPerTrigger",
    "minoffsetspertrigger": "use minMessagesPerTrigger",
    "maxfilespertrigger": "use maxMessagesPerTrigger",
    "kafka.bootstrap.servers": "use endpoints",
    "subscribe": "use queueName",
    "subscribepattern": "use queuePrefix",
    "topic": "use queueName",
    "streamname": "use queueName",
    "endpointurl": "use endpoint",
    "includeheaders": "use includeAttributes",
    "maxfetchrecordspershard": "use pageSize",
    "awsaccesskeyid": "use accessKeyId",
    "awssecretkey": "use secretAccessKey",
    "startingoffsets": "a queue has no offsets, a new query begins with the messages that wait",
    "startingposition": "a queue has no offsets, a new query begins with the messages that wait",
    "endingoffsets": "use endingMode",
    "failondataloss": "a committed message is gone, and no other can be lost",
}
TRUE: Final = frozenset(["true", "1", "yes", "on"])
FALSE: Final = frozenset(["false", "0", "no", "off"])
UNITS_S: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
LEASE_SECONDS_MAX: Final = 43_200  # the longest visibility timeout of SQS
PARTITIONS_DEFAULT: Final = 4  # tasks of a batch read that receives

T = TypeVar("T")


class OptionError(ValueError):
    """The error of an option that is unknown, wrong or missing."""


def text(value: str) -> str:
    """Return the text without spaces around it."""
    return value.strip()


def flag(value: str) -> bool:
    """Parse ``true`` or ``false``, and their synonyms (``TRUE``, ``FALSE``). Raise ValueError for anything else."""
    word = value.strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    raise ValueError("true or false")


def choice(*words: str) -> Callable[[str], str]:
    """Return a parser that accepts one of the words in any case, and returns it as it is spelt in ``words``."""
    spelling = {word.lower(): word for word in words}

    def parse_choice(value: str) -> str:
        if value.strip().lower() in spelling:
            return spelling[value.strip().lower()]
        raise ValueError(" or ".join([", ".join(words[:-1]), words[-1]]))

    return parse_choice


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a parser for a whole number from ``least`` to ``most``."""

    def parse_whole(value: str) -> int:
        try:
            number = int(value.strip())
        except ValueError:
            number = least - 1
        if least <= number <= most:
            return number
        raise ValueError(f"a whole number from {least} to {most}")

    return parse_whole


def seconds(least: float, most: float) -> Callable[[str], float]:
    """Return a parser for a time such as ``90``, ``1.5m`` or ``12h``. It returns seconds."""

    def parse_seconds(value: str) -> float:
        word = value.strip().lower()
        number = word.rstrip("abcdefghijklmnopqrstuvwxyz ")
        try:
            time_s = float(number) * UNITS_S[word[len(number) :].strip() or "s"]
        except (ValueError, KeyError):
            time_s = least - 1
        if least <= time_s <= most:
            return time_s
        raise ValueError(f"seconds from {least:g} to {most:g}, or with a unit: 90s, 15m, 12h")

    return parse_seconds


def addresses(value: str) -> str:
    """Parse addresses of servers, separated by commas. Return them without spaces."""
    found = [each.strip().rstrip("/") for each in value.split(",") if each.strip()]
    for each in found:
        if urlsplit(each).scheme not in ("http", "https") or not urlsplit(each).hostname:
            raise ValueError("addresses such as http://n1:9324,http://n2:9324")
    return ",".join(found)


def option(parse_value: Callable[[str], Any], default: Any, about: str, *, secret: bool = False) -> Any:
    """Return a dataclass field for an option.

    parse_value: parses its text, and raises a ValueError that describes what is allowed. about: the help text. secret:
    whether errors and reprs leave out its value.
    """
    return field(default=default, repr=not secret, metadata={"parse": parse_value, "about": about, "secret": secret})


def name_of(known: "Field[Any]") -> str:
    """Return an option's name, such as maxMessagesPerTrigger for the field ``max_messages_per_trigger``."""
    first, *others = known.name.split("_")
    return first + "".join(word.capitalize() for word in others)


@dataclass(frozen=True)
class Connection:
    """The endpoint, the region and the credentials of a client. It is the key under which clients are kept."""

    endpoint: str = option(text, "", "address of the server; AWS's own for the region if it is not given")
    endpoints: str = option(
        addresses, "", "addresses of a cluster's members, separated by commas; a call uses one that answers"
    )
    region: str = option(text, "", "AWS region; by default that of the environment or the profile")
    profile: str = option(text, "", "profile of the AWS configuration files")
    access_key_id: str = option(text, "", "key; by default the one that boto3 finds")
    secret_access_key: str = option(text, "", "secret of the key", secret=True)
    session_token: str = option(text, "", "token of a temporary key", secret=True)
    client: str = option(choice("auto", "boto3", "light"), "auto", "auto: light on elasticq, boto3 elsewhere")
    retry_seconds: float = option(
        seconds(0, 3600), 120.0, "how long to retry a call after 503, throttling or no answer"
    )

    @property
    def servers(self) -> tuple[str, ...]:
        """Return the addresses of all servers, the endpoint first; () for AWS's own endpoint."""
        return tuple(dict.fromkeys(each for each in (self.endpoint, *self.endpoints.split(",")) if each))


@dataclass(frozen=True)
class Queue(Connection):
    """The options that name the queue or queues."""

    queue_url: str = option(text, "", "the queue by its URL")
    queue_name: str = option(text, "", "the queue by its name")
    queue_prefix: str = option(text, "", "all queues whose names begin with it (reading)")

    @property
    def connection(self) -> Connection:
        """Return only the options of the connection, so that queues of one server share a client."""
        return Connection(**{known.name: getattr(self, known.name) for known in fields(Connection)})


@dataclass(frozen=True)
class Read(Queue):
    """The options of ``read`` and ``readStream``."""

    mode: str = option(
        choice("auto", "lease", "wal", "driver"),
        "auto",
        "how a batch survives failures; auto: lease on elasticq, else wal",
    )
    wal_location: str = option(text, "", "folder of the write-ahead log: a shared path, file:// or s3://")
    query_name: str = option(text, "", "part of the names of leases and log files, for operators")
    lease_name: str = option(text, "", "as queryName, which it overrides")
    ack_mode: str = option(
        choice("commit", "none", "onRead"),
        "",
        "delete what Spark committed, nothing, or each page at once (may lose messages). Streams: commit by default",
    )
    partitions: int = option(whole(1, 10_000), 0, "exact number of tasks of a batch; by default by the backlog")
    min_partitions: int = option(
        whole(1, 10_000), 1, "fewest tasks of a batch; there is one for each 5,000 messages, for a FIFO queue one"
    )
    max_messages_per_trigger: int = option(whole(1, 10_000_000), 20_000, "most messages of a micro-batch")
    max_bytes_per_trigger: int = option(
        whole(1, 2**40), 0, "approximate bytes of all bodies of a micro-batch; 0: no limit"
    )
    min_messages_per_trigger: int = option(whole(1, 10_000_000), 1, "smallest backlog that starts a micro-batch")
    max_trigger_delay: float = option(seconds(0, 86_400), 900.0, "longest wait for minMessagesPerTrigger")
    max_rate_per_second: int = option(whole(1, 10_000_000), 0, "messages a second on average; 0: no limit")
    poll_interval: float = option(
        seconds(0, 3600), -1.0, "time between two requests for the backlog of an idle queue; by default 0.2 with leases"
    )
    visibility_timeout: float = option(
        seconds(1, LEASE_SECONDS_MAX), 300.0, "of received messages, except in mode=lease; the driver renews it"
    )
    lease_seconds: float = option(
        seconds(1, LEASE_SECONDS_MAX), float(LEASE_SECONDS_MAX), "how long a lease lasts unless the driver renews it"
    )
    on_lease_expired: str = option(
        choice("continue", "fail"),
        "continue",
        "if the lease of a replayed batch ended: read its messages in a later batch, or fail",
    )
    heartbeat: str = option(choice("auto", "off"), "auto", "whether the driver renews the messages of a running batch")
    wait_time_seconds: float = option(
        seconds(0, 20), -1.0, "wait of a receive for messages; by default 0 on elasticq, else 1"
    )
    page_size: int = option(
        whole(1, 1000), 0, "messages a receive; by default the most: 1000 by the light client on elasticq, else 10"
    )
    dedupe_window: float = option(
        seconds(0, 86_400), 3600.0, "wal and driver: how long to keep the ids that show a redelivery"
    )
    ending_mode: str = option(text, "empty", "batch read: empty, snapshot or count:N")
    include_attributes: bool = option(flag, True, "whether the attributes column is filled")
    value_format: str = option(choice("string", "binary", "json"), "string", "type of the body column")
    on_parse_error: str = option(
        choice("fail", "null", "deadletter"),
        "fail",
        "for a body that does not fit the schema: fail, null values, or send it to deadLetterQueue",
    )
    dead_letter_queue: str = option(text, "", "queue (name or URL) for onParseError=deadletter")


def parse(kind: type[T], options: Mapping[str, str]) -> T:
    """Return the options as a ``kind``, a dataclass of ``option`` fields.

    Raise OptionError for an unknown name or a wrong value. The error does not show secrets.
    """
    known = {name_of(each).lower(): each for each in fields(kind)}  # type: ignore[arg-type]
    given = {key.lower(): value for key, value in options.items() if value is not None}
    values = {}
    for key, value in given.items():
        if key in known:
            values[known[key].name] = _value(known[key], value)
        elif key not in sparks_own():
            raise OptionError(_unknown(key, (name_of(each) for each in known.values())))
    return kind(**values)


def sparks_own() -> frozenset[str]:
    """Return the names, in lower case, of the options that Spark passes to a sink or source together with the user's.

    They are what a query of this version of Spark can be started with, such as queryName, and the checkpoint's place.
    """
    from inspect import signature

    from pyspark.sql.streaming.readwriter import DataStreamWriter

    return frozenset([CHECKPOINT, *(name.lower() for name in signature(DataStreamWriter.start).parameters)])


def _value(known: "Field[Any]", value: str) -> Any:
    try:
        return known.metadata["parse"](str(value))
    except ValueError as error:
        shown = "the given value" if known.metadata["secret"] else repr(value)
        raise OptionError(f"option {name_of(known)}: {shown} is not {error}") from None


def _unknown(key: str, names: Iterable[str]) -> str:
    if key in ELSEWHERE:
        return f"format sqs has no option {key!r}: {ELSEWHERE[key]}"
    from difflib import get_close_matches

    spelling = {name.lower(): name for name in names}
    near = get_close_matches(key, spelling, 1, 0.6)
    hint = f"did you mean {spelling[near[0]]}?" if near else "known are " + ", ".join(sorted(spelling.values()))
    return f"format sqs has no option {key!r}: {hint}"


Q = TypeVar("Q", bound=Queue)


def parse_queue(kind: type[Q], options: Mapping[str, str]) -> Q:
    """Return the options as a ``kind`` that names a queue or queues.

    ``load(path)`` may name the queue. Without the option endpoint, the queue's URL, the first of
    endpoints or the environment gives it.
    Raise OptionError unless exactly one of queueUrl, queueName and queuePrefix is given, or as ``parse`` does.
    """
    merged = {key.lower(): value for key, value in options.items() if value is not None}
    path = merged.pop("path", "")
    if path:
        merged.setdefault("queueurl" if "://" in path else "queuename", path)
    given = [name for name in ("queueUrl", "queueName", "queuePrefix") if merged.get(name.lower(), "").strip()]
    if len(given) != 1:
        said = f"not {' and '.join(given)}" if given else "none is given"
        raise OptionError(f"one of queueUrl, queueName and queuePrefix is needed, {said}")
    url = merged.get("queueurl", "").strip()
    if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise OptionError(f"option queueUrl: {url!r} is no URL; is it meant as queueName?")
    options_given = parse(kind, merged)
    if options_given.endpoint:
        return options_given
    return replace(options_given, endpoint=_endpoint(url) or options_given.endpoints.partition(",")[0] or _usual())


def _endpoint(queue_url: str) -> str:
    """Return the endpoint in a queue's URL; for an AWS URL or none, ""."""
    parts = urlsplit(queue_url)
    host = parts.hostname or ""
    if host and not host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        return f"{parts.scheme}://{parts.netloc}"
    return ""


def _usual() -> str:
    """Return the endpoint of boto3's environment variables, or ""."""
    return os.environ.get("AWS_ENDPOINT_URL_SQS") or os.environ.get("AWS_ENDPOINT_URL") or ""
