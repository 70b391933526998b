"""The translation of ElasticMQ's configuration into ours: its elasticmq.conf (HOCON) and ``-Dkey=value``.

The keys and defaults are those of ElasticMQ 1.7. A key that we do not know has no effect, and a note names it. It is
not an error, because such files may also contain settings of ElasticMQ's libraries.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, field

from elasticq.model import limits
from elasticq.model.names import ACCOUNT, DEFAULT_ACCOUNT, FIFO_SUFFIX, has_fifo_suffix
from elasticq.server.bad_values import taken
from elasticq.server.hocon import MigrationError, parse

Properties = Sequence[tuple[str, str]]


class Duration(int):
    """A duration in whole seconds."""


Port = Annotated[int, Meta(ge=0, le=65_535)]


class NodeAddress(Struct, rename="kebab"):
    protocol: Literal["http", "https"] = "http"
    host: str = ""
    port: Port = 9324
    context_path: str = ""


class RestSqs(Struct, rename="kebab"):
    enabled: bool = True
    bind_port: Port | None = None
    bind_hostname: str | None = None
    sqs_limits: str | None = None


class RestStats(Struct, rename="kebab"):
    enabled: bool = True
    bind_port: Port | None = None
    bind_hostname: str | None = None


class DeadLettersQueue(Struct, rename="camel"):
    name: str = ""
    max_receive_count: int = 0


class Queue(Struct, rename="camel"):
    """One queue. partitions: a key of ours, which ElasticMQ ignores."""

    default_visibility_timeout: Duration | None = None
    delay: Duration | None = None
    receive_message_wait: Duration | None = None
    dead_letters_queue: DeadLettersQueue | None = None
    fifo: bool = False
    content_based_deduplication: bool = False
    partitions: int = 0
    copy_to: str = ""
    move_to: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    created: int = 0
    last_modified: int = 0


class AutoCreateQueues(Struct, rename="kebab"):
    enabled: bool = False
    template: Queue = field(default_factory=Queue)


class QueuesStorage(Struct, rename="kebab"):
    enabled: bool = False
    path: str = ""


class MessagesStorage(Struct, rename="kebab"):
    enabled: bool = False
    driver_class: str = ""
    uri: str = "jdbc:h2:/data/elasticmq-h2"
    username: str = ""
    password: str = ""
    prune_data_on_init: bool = False


class Aws(Struct, rename="camel"):
    region: str = ""
    account_id: str = ""


class Own(Struct, rename="kebab"):
    debug: bool = False


class ElasticMq(Struct, rename="kebab"):
    """All keys of ElasticMQ."""

    elasticmq: Own = field(default_factory=Own)
    node_address: NodeAddress = field(default_factory=NodeAddress)
    generate_node_address: bool = False
    rest_sqs: RestSqs = field(default_factory=RestSqs)
    rest_stats: RestStats = field(default_factory=RestStats)
    queues: dict[str, Queue] = field(default_factory=dict)
    auto_create_queues: AutoCreateQueues = field(default_factory=AutoCreateQueues)
    queues_storage: QueuesStorage = field(default_factory=QueuesStorage)
    messages_storage: MessagesStorage = field(default_factory=MessagesStorage)
    aws: Aws = field(default_factory=Aws)


class Migrated(Struct):
    """Our settings by section, and notes on keys that are translated or ignored."""

    sections: dict[str, dict[str, Any]]
    notes: list[str]


ROOTS: Final = tuple(struct_field.encode_name for struct_field in msgspec.structs.fields(ElasticMq))
_ROOT_LINE: Final = re.compile(
    rf"^[^\S\n]*+(?:include\b|(?:{'|'.join(map(re.escape, ROOTS))})\s*+[.{{=:])", re.MULTILINE
)


def is_elasticmq(file: Path) -> bool:
    """Return whether a file is ElasticMQ's: by its name, or because it is not TOML and has ElasticMQ's keys."""
    if file.suffix in (".conf", ".hocon"):
        return True
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return False  # the next reader of the file reports the error
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return _ROOT_LINE.search(text) is not None
    return False


def read(file: Path | None, properties: Properties) -> Migrated:
    """Return our settings, without a file only those that the properties name. Raise MigrationError if one is wrong."""
    notes: list[str] = []
    tree: dict[str, Any] = {} if file is None else parse(file)
    for key, value in properties:
        _put(tree, key, value)
    source = "the command line" if file is None else str(file)
    given = _typed(tree, source, notes)
    if given.queues_storage.enabled and given.queues_storage.path:
        given.queues.update(_stored_queues(Path(given.queues_storage.path), notes))
    sections = _sections(given, tree, notes, is_whole=file is not None)
    return Migrated({name: section for name, section in sections.items() if section}, notes)


def _put(tree: dict[str, Any], key: str, value: str) -> None:
    *path, last = re.findall(r'"[^"]*"|[^.]+', key) or [key]
    for part in path:
        below = tree.setdefault(part.strip('"'), {})
        if not isinstance(below, dict):
            below = tree[part.strip('"')] = {}
        tree = below
    tree[last.strip('"')] = value


# --- types ---------------------------------------------------------------------------


def _typed(tree: dict[str, Any], source: str, notes: list[str]) -> ElasticMq:
    """Return the tree as a struct. Raise MigrationError if a value does not fit."""
    fitting = _fit_struct(tree, ElasticMq, "", source, notes)
    try:
        return msgspec.convert(fitting, ElasticMq, strict=False)
    except msgspec.ValidationError as error:
        raise MigrationError(f"{source}: {error}") from error


def _known_keys(kind: type[Struct], path: str = "") -> Iterator[str]:
    for struct_field in msgspec.structs.fields(kind):
        whole = f"{path}{struct_field.encode_name}"
        below = _struct_in(struct_field.type)
        if below is None:
            yield whole
        else:
            yield from _known_keys(below, f"{whole}.NAME." if get_origin(struct_field.type) is dict else f"{whole}.")


def _struct_in(kind: Any) -> type[Struct] | None:
    kinds = [kind, *get_args(kind)]
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, Struct)), None)


def _fit_struct(tree: Any, kind: type[Struct], path: str, source: str, notes: list[str]) -> dict[str, Any]:
    if not isinstance(tree, Mapping):
        raise MigrationError(f"{source}: {path} is not an object{_in_quotes(path)}")
    known = {struct_field.encode_name: struct_field.type for struct_field in msgspec.structs.fields(kind)}
    fitting = {}
    for key, value in tree.items():
        whole = f"{path}.{key}" if path else key
        if key in known:
            if value is not None:
                fitting[key] = _fit(value, known[key], whole, source, notes)
        else:
            notes.append(f"{source}: {whole} is unknown and has no effect{_hint(key, whole, list(known))}")
    return fitting


def _hint(key: str, whole: str, known: list[str]) -> str:
    parent = whole.removesuffix(key)
    close = difflib.get_close_matches(key, known, 1, 0.6)
    if close:
        return f", did you mean {parent}{close[0]}?"
    elsewhere = {each.rpartition(".")[2]: each for each in _known_keys(ElasticMq)}
    found = difflib.get_close_matches(key, list(elsewhere), 1, 0.8)
    return f", did you mean {elsewhere[found[0]]}?" if found else ""


def _fit(value: Any, kind: Any, path: str, source: str, notes: list[str]) -> Any:
    below = _struct_in(kind)
    kinds = (kind, *get_args(kind))
    if get_origin(kind) is dict and below is not None:
        if not isinstance(value, Mapping):
            raise MigrationError(f"{source}: {path} is not an object")
        return {name: _fit_struct(each, below, f"{path}.{name}", source, notes) for name, each in value.items()}
    if get_origin(kind) is dict:
        return dict(_texts(value, path, source))
    if below is not None:
        return _fit_struct(value, below, path, source, notes)
    if isinstance(value, Mapping | list):
        raise MigrationError(f"{source}: {path} is more than one value{_in_quotes(path)}")
    if Duration in kinds:
        return _seconds(value, path, source, notes)
    one = _flag(value) if bool in kinds else _text(value) if str in kinds else value
    try:
        return msgspec.convert(one, kind, strict=False)
    except msgspec.ValidationError as error:
        raise MigrationError(f"{source}: {path} {one} is not {taken(kind)}") from error


def _in_quotes(path: str) -> str:
    """Return a hint for errors: an unquoted name with a dot reads as the names of nested objects."""
    name = path.removeprefix("queues.")
    return f'; a queue whose name has a dot is written "{name}"' if name != path else ""


def _texts(value: Any, path: str, source: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of tags. An unquoted key with dots was parsed as nested objects."""
    if not isinstance(value, Mapping):
        raise MigrationError(f"{source}: {path} is not an object")
    for key, below in value.items():
        if isinstance(below, Mapping):
            yield from ((f"{key}.{rest}", text) for rest, text in _texts(below, path, source))
        elif below is not None:
            yield key, _text(below)


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _flag(value: Any) -> Any:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    return words.get(value.lower(), value) if isinstance(value, str) else value


_DURATION: Final = re.compile(r"\s*+(\d++(?:\.\d++)?)\s*+([a-z]*+)\s*+", re.IGNORECASE)
_UNITS_MS: Final = {
    "": 1.0,
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1e-6),
    **dict.fromkeys(("us", "micro", "micros", "microsecond", "microseconds"), 1e-3),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1.0),
    **dict.fromkeys(("s", "second", "seconds"), 1e3),
    **dict.fromkeys(("m", "minute", "minutes"), 6e4),
    **dict.fromkeys(("h", "hour", "hours"), 3.6e6),
    **dict.fromkeys(("d", "day", "days"), 8.64e7),
}


def _seconds(value: Any, path: str, source: str, notes: list[str]) -> Duration:
    """Return a duration, rounded down as in ElasticMQ. A number without a unit is in milliseconds there."""
    found = _DURATION.fullmatch(str(value))
    unit_ms = _UNITS_MS.get(found[2].lower()) if found is not None else None
    if found is None or unit_ms is None:
        raise MigrationError(f"{source}: {path} is not a duration such as 30 seconds: {str(value)[:80]!r}")
    duration_ms = float(found[1]) * unit_ms
    if duration_ms % 1_000:
        unit = "" if found[2] else f", as a number without a unit is in milliseconds: {value} seconds?"
        notes.append(f"{source}: {path} is cut to {int(duration_ms // 1_000)} whole seconds{unit}")
    return Duration(duration_ms // 1_000)


# --- translation into our settings ---------------------------------------------------


def _stored_queues(path: Path, notes: list[str]) -> dict[str, Queue]:
    """Return the queues that ElasticMQ's queues-storage wrote. They are newer than those of the file."""
    if not path.is_file():
        return {}
    notes.append(f"queues-storage: queues are read from {path}, and stored in the data directory from then on")
    return _typed(parse(path), str(path), notes).queues


def _sections(given: ElasticMq, tree: dict[str, Any], notes: list[str], *, is_whole: bool) -> dict[str, dict[str, Any]]:
    """Return our settings. ``is_whole``: for a whole file, ElasticMQ's defaults fill what it leaves out."""
    return {
        "http": _http(given, tree, notes, is_whole=is_whole),
        "admin": _admin(given, tree),
        "node": _node(given, notes, is_whole=is_whole),
        "storage": _storage(given, notes) if is_whole or "messages-storage" in tree or "queues-storage" in tree else {},
        "auto_create": _auto_create(given) if "auto-create-queues" in tree else {},
        "queues": {name: _queue(queue) for name, queue in _all_queues(given, notes).items()},
    }


def _http(given: ElasticMq, tree: dict[str, Any], notes: list[str], *, is_whole: bool) -> dict[str, Any]:
    rest, address = given.rest_sqs, given.node_address
    if not rest.enabled:
        raise MigrationError("rest-sqs.enabled = false: the server would serve nothing")
    section: dict[str, Any] = {}
    if rest.bind_hostname is not None or is_whole:
        section["host"] = "0.0.0.0" if rest.bind_hostname is None else rest.bind_hostname
    if rest.bind_port is not None:
        section["port"] = rest.bind_port
    if address.host not in ("", "*") and not given.generate_node_address:
        section["public_url"] = f"{address.protocol}://{address.host}:{address.port}"
    elif "node-address" in tree and address.host == "" and not given.generate_node_address:
        notes.append("node-address.host is not set: queue URLs have the host that the client called")
    if address.context_path.strip("/"):
        section["context_path"] = "/" + address.context_path.strip("/")
    if given.elasticmq.debug:
        notes.append("elasticmq.debug has no effect")
    return section


def _admin(given: ElasticMq, tree: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the admin port, which takes the place of rest-stats with other pages."""
    if "rest-stats" not in tree:
        return {}
    stats = given.rest_stats
    section: dict[str, Any] = {"host": stats.bind_hostname, "port": stats.bind_port if stats.enabled else -1}
    return {name: value for name, value in section.items() if value is not None}


def _node(given: ElasticMq, notes: list[str], *, is_whole: bool) -> dict[str, Any]:
    section: dict[str, Any] = {"single_region": True} if is_whole else {}  # ElasticMQ ignores a signature's region
    if given.aws.region:
        section["region"] = given.aws.region
    account = given.aws.account_id
    if account:
        section["account"] = account.zfill(len(DEFAULT_ACCOUNT)) if account.isdecimal() else account
        if not ACCOUNT.match(section["account"]):
            raise MigrationError(f"aws.accountId: {account!r} is not 12 digits")
        if section["account"] != account and account != "0":  # unquoted zeros become one
            notes.append(f"aws.accountId: {account} is read as {section['account']}")
    mode = given.rest_sqs.sqs_limits
    if mode is not None and mode.lower() not in ("strict", "relaxed"):
        raise MigrationError(f"rest-sqs.sqs-limits: {mode[:40]!r} is neither strict nor relaxed")
    if mode is not None:
        section["limits"] = mode.lower()
    return section


_H2: Final = re.compile(r"jdbc:h2:(?:file:|split:)*(?!mem:|tcp:|ssl:|zip:)([^;]+)")


def _storage(given: ElasticMq, notes: list[str]) -> dict[str, Any]:
    messages, queues = given.messages_storage, given.queues_storage
    if messages.enabled and messages.prune_data_on_init:
        notes.append("messages-storage.prune-data-on-init: each start begins empty, so all is stored in memory only")
        return {"memory": True}
    if messages.enabled:
        found = _H2.match(messages.uri)
        directory = str(Path(found[1]).expanduser()) if found is not None else "./data"
        notes.append(
            f"messages-storage: queues and messages are stored in the directory {directory} (no database, no driver); "
            "messages in ElasticMQ's database are not read"
        )
        return {"data_dir": directory, "memory": False}
    if queues.enabled and queues.path:
        directory = str(Path(queues.path).parent / "elasticq-data")
        notes.append(f"queues-storage: queues and their messages are stored in the directory {directory}")
        return {"data_dir": directory, "memory": False}
    return {"memory": True}


def _auto_create(given: ElasticMq) -> dict[str, Any]:
    made = given.auto_create_queues
    return {"enabled": made.enabled, "template": _queue(made.template)}


def _all_queues(given: ElasticMq, notes: list[str]) -> dict[str, Queue]:
    """Return the possible queues, and the dead-letter queues that they name but the file does not have."""
    queues = {name: _possible(name, queue, given, notes) for name, queue in given.queues.items()}
    for name, queue in list(queues.items()):
        dead = queue.dead_letters_queue
        if dead is not None and dead.name and not {dead.name, f"{dead.name}{FIFO_SUFFIX}"} & queues.keys():
            queues[dead.name] = Queue()
            notes.append(f"queues.{name}: deadLettersQueue names {dead.name}, which is not in the file: it is created")
    return queues


def _possible(name: str, queue: Queue, given: ElasticMq, notes: list[str]) -> Queue:
    """Return the queue without what ElasticMQ accepts and AWS refuses. Append a note on each change."""
    changes: dict[str, Any] = {}
    where, is_fifo = f"queues.{name}", _is_fifo(name, given)
    for key, seconds_max in _SECONDS_MAX.items():
        seconds = getattr(queue, key)
        if seconds is not None and seconds > seconds_max:
            changes[key] = Duration(seconds_max)
            notes.append(f"{where}: {key} is cut from {seconds} to {seconds_max} seconds, the maximum of SQS")
    if queue.content_based_deduplication and not is_fifo:
        changes["content_based_deduplication"] = False
        notes.append(f"{where}: contentBasedDeduplication is ignored, because the queue is not a FIFO queue")
    dead = queue.dead_letters_queue
    if dead is not None and dead.name and _is_fifo(dead.name, given) != is_fifo:
        changes["dead_letters_queue"] = None
        notes.append(
            f"{where}: deadLettersQueue is ignored, because {dead.name} is not of the same type, FIFO or standard;"
            " messages are received without end"
        )
    return msgspec.structs.replace(queue, **changes)


_SECONDS_MAX: Final = {
    "default_visibility_timeout": limits.VISIBILITY_S_MAX,
    "delay": limits.DELAY_S_MAX,
    "receive_message_wait": limits.WAIT_S_MAX,
}


def _is_fifo(name: str, given: ElasticMq) -> bool:
    return has_fifo_suffix(name) or (name in given.queues and given.queues[name].fifo)


def _queue(queue: Queue) -> dict[str, Any]:
    dead = queue.dead_letters_queue
    table: dict[str, Any] = {
        "visibility_timeout_s": queue.default_visibility_timeout,
        "delay_s": queue.delay,
        "receive_wait_s": queue.receive_message_wait,
        "dead_letter_queue": dead.name if dead is not None else "",
        "max_receive_count": dead.max_receive_count if dead is not None else 0,
        "fifo": queue.fifo,
        "content_based_deduplication": queue.content_based_deduplication,
        "partitions": queue.partitions,
        "copy_to": queue.copy_to,
        "move_to": queue.move_to,
        "tags": queue.tags,
        "created_ms": _epoch_ms(queue.created),
        "modified_ms": _epoch_ms(queue.last_modified),
    }
    return {name: value for name, value in table.items() if value is not None}


def _epoch_ms(at: int) -> int:
    """Return milliseconds. ElasticMQ writes milliseconds, but people may have written seconds."""
    return at * 1_000 if 0 < at < 100_000_000_000 else at
