"""All settings of the server with default and bound, read from a file, the environment and the command line.

Later sources win: defaults, TOML file, ``ELASTICQ_<SECTION>__<KEY>``, flags. An unknown key is an error, because a
misspelt setting that is silently ignored costs a user a day. Settings that contradict each other are an error that
names a way out. conf/elasticq.toml documents each setting with its unit (a test compares both).
"""

import ssl
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from elasticq.extras import how_to_install
from elasticq.model import limits
from elasticq.model.commands import DeclareQueue
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION
from elasticq.model.topic_commands import CreateTopic, Subscribe
from elasticq.push.addresses import REFUSED, unreadable
from elasticq.server import auth as authenticator
from elasticq.server import cluster as peers
from elasticq.server.auth import Auth
from elasticq.server.cluster import PROXY, Cluster, MemberName, is_loopback, read_also, read_secret, with_discovery
from elasticq.server.queues import (
    AutoCreate,
    Declarations,
    QueueSettings,
    template_doubts,
    template_faults,
    template_of,
)
from elasticq.server.topics import TopicDeclarations, TopicSettings
from elasticq.wire.sigv4 import Key

ENVIRONMENT_PREFIX: Final = "ELASTICQ_"

Seconds = Annotated[int, Meta(ge=1, le=3_600)]

RegionName = Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,32}$", description="1 to 32 small letters, digits and -")]


class SettingsError(Exception):
    """A setting that is unknown, ill-typed, out of bounds or contradicts another. The text names it."""


PublicUrl = Annotated[
    str,
    Meta(
        pattern=r"^(https?://[^/\s]+)?$",
        max_length=limits.HOST_CHARS_MAX + 8,
        description="empty or http://HOST:PORT or https://HOST:PORT, without a path",
    ),
]


class Http(Struct, frozen=True, forbid_unknown_fields=True):
    """The SQS port."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 9324
    public_url: PublicUrl = ""
    context_path: Annotated[
        str,
        Meta(
            pattern=r"^(/[A-Za-z0-9._~-]+)*$",
            max_length=256,
            description="empty or a path such as /queues, of letters, digits, ., _, ~ and -",
        ),
    ] = ""
    connections_max: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    connections_per_address: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    streams_per_address: Annotated[int, Meta(ge=0, le=1_000_000)] = 100
    buffers_mb: Annotated[int, Meta(ge=8, le=65_536)] = 64
    header_s: Seconds = 10
    body_s: Seconds = 10
    body_bytes_per_s: Annotated[int, Meta(ge=1_024, le=1_073_741_824)] = 65_536
    idle_s: Seconds = 75
    stop_s: Annotated[int, Meta(ge=0, le=300)] = 5
    tls_cert: str = ""
    tls_key: str = ""


class Node(Struct, frozen=True, forbid_unknown_fields=True):
    """This member: its name, region, account and rules."""

    id: MemberName = "node1"
    region: RegionName = DEFAULT_REGION
    single_region: bool = False
    account: Annotated[str, Meta(pattern=r"^[0-9]{12}$", description="a number of 12 digits")] = DEFAULT_ACCOUNT
    sixty_second_rules: bool = False
    limits: Literal["strict", "relaxed"] = "strict"


class Storage(Struct, frozen=True, forbid_unknown_fields=True):
    """The storage of messages, and the memory that they may use."""

    data_dir: Annotated[str, Meta(min_length=1)] = "./data"
    memory: bool = False
    durability: Literal["fsync", "os", "none"] = "fsync"
    reserve_mb: Annotated[int, Meta(ge=32, le=65_536)] = 64
    memory_mb: Annotated[int, Meta(ge=1, le=1_048_576)] = 64
    memory_max_mb: Annotated[int, Meta(ge=0, le=1_048_576)] = 0


class Admin(Struct, frozen=True, forbid_unknown_fields=True):
    """The port of the operators."""

    host: Annotated[str, Meta(min_length=1, max_length=253)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=-1, le=65_535)] = 9325
    public_url: PublicUrl = ""
    tls_cert: str = ""
    tls_key: str = ""
    token_file: str = ""
    read_only: bool = False


class Log(Struct, frozen=True, forbid_unknown_fields=True):
    """The log on stderr."""

    format: Literal["text", "json"] = "text"
    requests: Literal["off", "failed", "all"] = "failed"
    slow_ms: Annotated[int, Meta(ge=1, le=3_600_000)] = 1_000


class Otel(Struct, frozen=True, forbid_unknown_fields=True):
    """OpenTelemetry's spans of requests."""

    enabled: bool = False
    exporter: Literal["otlp", "console"] = "otlp"


class Push(Struct, frozen=True, forbid_unknown_fields=True):
    """Deliveries of topics to web servers."""

    timeout_s: Annotated[int, Meta(ge=1, le=60)] = 15
    connections: Annotated[int, Meta(ge=1, le=1_000)] = 64
    sign_queues: bool = False
    refused_networks: Annotated[list[str], Meta(max_length=256)] = field(default_factory=lambda: list(REFUSED))


class Testing(Struct, frozen=True, forbid_unknown_fields=True):
    """The paths with which tests control this server."""

    enabled: bool = False


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All sections."""

    http: Http = field(default_factory=Http)
    auth: Auth = field(default_factory=Auth)
    node: Node = field(default_factory=Node)
    storage: Storage = field(default_factory=Storage)
    cluster: Cluster = field(default_factory=Cluster)
    admin: Admin = field(default_factory=Admin)
    log: Log = field(default_factory=Log)
    otel: Otel = field(default_factory=Otel)
    push: Push = field(default_factory=Push)
    testing: Testing = field(default_factory=Testing)
    auto_create: AutoCreate = field(default_factory=AutoCreate)
    queues: dict[str, QueueSettings] = field(default_factory=dict)
    topics: dict[str, TopicSettings] = field(default_factory=dict)


SECTIONS: Final[dict[str, type[Struct]]] = {
    "http": Http,
    "auth": Auth,
    "node": Node,
    "storage": Storage,
    "cluster": Cluster,
    "admin": Admin,
    "log": Log,
    "otel": Otel,
    "push": Push,
    "testing": Testing,
    "auto_create": AutoCreate,
    "queues": QueueSettings,  # of each of its tables
    "topics": TopicSettings,
}
_TABLES: Final = ("queues", "topics")
_ALL_ADDRESSES: Final = frozenset(("0.0.0.0", "::", ""))
NO_OPENTELEMETRY: Final = f"otel.enabled needs OpenTelemetry: {how_to_install('otel')}"
_FILE_ONLY: Final = (*_TABLES, "auto_create")


def load(
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, Mapping[str, Any]],
    properties: Sequence[tuple[str, str]] = (),
    notes: list[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings of all sources. Raise SettingsError if one is invalid or a file that they name is unreadable.

    properties: (key, value) of ElasticMQ's keys, given by -D; notes: receives texts on keys of foreign files that are
    translated or ignored; options: the flag of each setting, for errors about its value.
    """
    sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    found_notes: list[str] = []
    is_migrated = file is not None and _is_elasticmqs(file)
    if file is not None:
        given = _migrated(file, properties, found_notes) if is_migrated else _read(file, found_notes)
        _merge(sections, given, str(file))
    _merge(sections, _from_environment(environment), "the environment")
    if properties:  # with a file of ElasticMQ, those of queues were merged into its queues above
        given = _migrated(None, properties, [] if is_migrated else found_notes)
        _merge(sections, {key: given[key] for key in given if not (is_migrated and key in _FILE_ONLY)}, "-D")
    if notes is not None:
        notes += dict.fromkeys(found_notes)
    _merge(sections, flags, "the command line")
    _split(sections["cluster"], "seeds")
    _split(sections["auth"], "allowed_origins")
    _split(sections["auth"], "allowed_hosts")
    _split(sections["push"], "refused_networks")
    try:
        settings = msgspec.convert(sections, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(_bad_values(sections, error, file, environment, flags, options or {})) from error
    if "discovery" not in sections["cluster"]:
        settings = replace(settings, cluster=with_discovery(settings.cluster))
    if settings.cluster.role == PROXY and "id" not in sections["node"]:  # two processes of one name cannot both run
        settings = replace(settings, node=replace(settings.node, id=f"{PROXY}-{token_hex(4)}"))
    wrong = _contradictions(settings)
    if wrong:
        raise SettingsError("; ".join(wrong))
    return settings


def _bad_values(
    sections: Mapping[str, Any],
    error: msgspec.ValidationError,
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, Mapping[str, Any]],
    options: Mapping[str, str],
) -> str:
    """Return a text on all values that do not fit. It names each setting as its source does: flag, variable or key."""
    from elasticq.server.bad_values import unfit  # needed only after an error

    in_environment = _from_environment(environment)

    def given(name: str) -> str:
        section, _, key = name.partition(".")
        if key in flags.get(section, ()):
            return options.get(name, name)
        if key in in_environment.get(section, ()):
            return f"{ENVIRONMENT_PREFIX}{section}__{key}".upper()
        return name if file is None else f"{file}: {name}"

    # A missing or unknown key is not an unfit value: then msgspec's text is all there is.
    return "; ".join(unfit(sections, Settings, given)) or str(error).replace("`$.", "`")


def warnings(settings: Settings) -> list[str]:
    """Return a line for each setting that is allowed but likely a mistake. Raise SettingsError if a file is gone."""
    try:
        found = peers.doubts(settings.cluster)
    except ValueError as error:  # the secret's file was removed after ``load``
        raise SettingsError(str(error)) from error
    if settings.testing.enabled:
        found.append(
            "testing is enabled: anyone who can reach the SQS port can move its clock, lose messages and delete queues"
        )
    admin = settings.admin
    found += authenticator.doubts(settings.auth, settings.http.host)
    if admin.port >= 0 and not admin.token_file and not is_loopback(admin.host):
        found.append(
            f"THE ADMIN PORT IS OPEN: it listens on {admin.host} without admin.token_file. Anyone who can reach it can "
            "read and change all queues and the cluster"
        )
    declared, announced = _declared(settings)
    found += declared.doubts + announced.doubts(settings.queues)
    found += template_doubts(settings.auto_create)
    if settings.auth.mode == "strict" and admin.port >= 0 and not admin.token_file:
        found.append("auth is strict and admin.token_file is not set: the admin port answers only probes")
    return found


def secrets(settings: Settings) -> tuple[bytes, bytes]:
    """Return the cluster's secret and the second accepted one, each empty without one.

    Raise SettingsError if a file cannot be used.
    """
    try:
        return read_secret(settings.cluster), read_also(settings.cluster)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def keys(settings: Settings) -> list[Key]:
    """Return the access keys. Raise SettingsError if their file cannot be used."""
    try:
        return authenticator.keys_of(settings.auth, settings.node.account)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def admin_token(settings: Settings) -> str | None:
    """Return the operators' token: empty if none is needed, None if nobody is admitted (strict without a token).

    Raise SettingsError if the file cannot be used.
    """
    try:
        token = authenticator.read_token(settings.admin.token_file)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    return None if settings.auth.mode == "strict" and not token else token


def tls(section: str, ports: Http | Admin) -> ssl.SSLContext | None:
    """Return the TLS context of a port, None without TLS. Raise SettingsError if a file cannot be used."""
    try:
        return authenticator.tls_context(section, ports.tls_cert, ports.tls_key)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _contradictions(settings: Settings) -> list[str]:
    found = peers.contradictions(settings.cluster) + authenticator.contradictions(settings.auth, settings.node.account)
    if settings.cluster.role == PROXY and settings.storage != Storage():
        found.append("cluster.role proxy stores nothing: remove the settings of [storage] (--data-dir, --memory)")
    for read in (
        lambda: authenticator.read_token(settings.admin.token_file),
        lambda: authenticator.tls_context("http", settings.http.tls_cert, settings.http.tls_key),
        lambda: authenticator.tls_context("admin", settings.admin.tls_cert, settings.admin.tls_key),
    ):
        try:
            read()
        except ValueError as error:
            found.append(str(error))
    found += [*_of_ports(settings), *_of_libraries(settings.otel)]
    found += [f"push.refused_networks: {text} is not a network" for text in unreadable(settings.push.refused_networks)]
    declared, announced = _declared(settings)
    found += declared.wrong + announced.wrong + template_faults(settings.auto_create)
    made = template(settings)
    if not found and (declared.named or announced.named or made):
        from elasticq.server.rehearsal import NodeRules, faults  # it loads the engine, which few settings need

        node = settings.node
        rules = NodeRules(node.region, node.account, call_limits(settings), node.single_region)
        found += dict.fromkeys(faults([*declared.named, *announced.named], made, rules))
    return found


def _of_ports(settings: Settings) -> Iterator[str]:
    """Yield a text for each two listeners that would take the same port of the same address."""
    http, admin, cluster = settings.http, settings.admin, settings.cluster
    used = [("http.port", http.host, http.port), ("admin.port", admin.host, admin.port)]
    if cluster.discovery != "none" and cluster.role != PROXY:
        used.append(("cluster.peer_port", cluster.peer_host, cluster.peer_port))
    for (first, host, port), (second, other, same) in combinations(used, 2):
        if port == same > 0 and (host == other or {host, other} & _ALL_ADDRESSES):
            yield f"{first} and {second} are both {port}: choose another one"


def _of_libraries(otel: Otel) -> list[str]:
    names = ["opentelemetry.sdk", *(["opentelemetry.exporter.otlp.proto.http"] if otel.exporter == "otlp" else [])]
    try:
        is_missing = otel.enabled and not all(map(find_spec, names))
    except ModuleNotFoundError:  # of a package above
        is_missing = True
    return [NO_OPENTELEMETRY] if is_missing else []


def _declared(settings: Settings) -> tuple[Declarations, TopicDeclarations]:
    region, account = settings.node.region, settings.node.account
    return Declarations(settings.queues, region, account), TopicDeclarations(settings.topics, region, account)


def declarations(settings: Settings) -> list[DeclareQueue | CreateTopic | Subscribe]:
    """Return the commands that create the queues and topics of the settings, in their order."""
    queues, topics = _declared(settings)
    return [command for _, command in (*queues.named, *topics.named)]


def template(settings: Settings) -> DeclareQueue | None:
    """Return the command that creates a queue at its first use, None if an unknown queue is an error."""
    return template_of(settings.auto_create, settings.node.region, settings.node.account)


def call_limits(settings: Settings) -> limits.Limits:
    """Return the limits of calls."""
    return limits.RELAXED if settings.node.limits == "relaxed" else limits.STRICT


def _is_elasticmqs(file: Path) -> bool:
    from elasticq.server.elasticmq import is_elasticmq

    return is_elasticmq(file)


def _migrated(file: Path | None, properties: Sequence[tuple[str, str]], notes: list[str]) -> dict[str, dict[str, Any]]:
    from elasticq.server.elasticmq import read
    from elasticq.server.hocon import MigrationError

    try:
        migrated = read(file, properties)
    except MigrationError as error:
        raise SettingsError(str(error)) from error
    notes += migrated.notes
    return migrated.sections


def _split(section: dict[str, Any], name: str) -> None:
    """Split a list that the environment or a flag gives as one text, such as ``a:1,b:2``."""
    text = section.get(name)
    if isinstance(text, str):
        section[name] = [part.strip() for part in text.split(",") if part.strip()]


def _read(file: Path, notes: list[str]) -> dict[str, Any]:
    if file.suffix in (".yaml", ".yml"):
        from elasticq.server import goaws
        from elasticq.server.hocon import MigrationError

        try:
            return goaws.read(file, notes)
        except MigrationError as error:
            raise SettingsError(str(error)) from error
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the settings of the environment: ELASTICQ_HTTP__PORT is http.port. Ignore names without ``__``."""
    found: dict[str, dict[str, str]] = {}
    for name, value in environment.items():
        section, two, key = name.removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
        if name.startswith(ENVIRONMENT_PREFIX) and two:
            found.setdefault(section, {})[key] = value
    return found


def _merge(sections: dict[str, dict[str, Any]], more: Mapping[str, Any], source: str) -> None:
    for section, values in more.items():
        if section not in SECTIONS or not isinstance(values, Mapping):
            raise SettingsError(_unknown("section", section, list(SECTIONS), source))
        if section in _TABLES:
            _merge_tables(section, sections[section], values, source)
            continue
        known = [f"{section}.{key}" for key in SECTIONS[section].__struct_fields__]
        for key, value in values.items():
            if f"{section}.{key}" not in known:
                raise SettingsError(_unknown("setting", f"{section}.{key}", known, source))
            sections[section][key] = value


def _merge_tables(section: str, tables: dict[str, Any], more: Mapping[str, Any], source: str) -> None:
    """Merge tables of queues or topics. A later table replaces one of the same name."""
    if source == "the environment":
        raise SettingsError(f"the environment: {section} are set in a file, as [{section}.NAME] tables")
    for name, table in more.items():
        if not isinstance(table, Mapping):
            raise SettingsError(f"{source}: {section}.{name} is not a table, such as [{section}.{name}]")
        known = [f"{section}.{name}.{key}" for key in SECTIONS[section].__struct_fields__]
        for key in table:
            if f"{section}.{name}.{key}" not in known:
                raise SettingsError(_unknown("setting", f"{section}.{name}.{key}", known, source))
        tables[name] = table


def _unknown(kind: str, name: str, known: list[str], source: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, 1, 0.5)
    hint = f", did you mean {close[0]}?" if close else f" (known: {', '.join(known)})"
    return f"{source}: unknown {kind} {name}{hint}"
