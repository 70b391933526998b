"""Every setting of the server with unit, default and bound; read from file, environment and command line.

Later sources win: defaults, TOML file, ``ELASTICQ_<SECTION>__<KEY>``, flags.
An unknown key is an error, as a misspelt setting that is silently ignored
costs somebody a day. conf/elasticq.toml documents each one (a test compares).
What contradicts itself is refused, with what to do instead.
"""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION
from elasticq.server.cluster import Cluster, contradictions, doubts, read_secret, with_discovery

ENVIRONMENT_PREFIX: Final = "ELASTICQ_"

Seconds = Annotated[int, Meta(ge=1, le=3_600)]


class SettingsError(Exception):
    """A setting that is unknown, of the wrong type, out of bounds or against another; the text says which."""


class Http(Struct, frozen=True, forbid_unknown_fields=True):
    """The SQS port."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 9324
    public_url: Annotated[str, Meta(pattern=r"^(https?://[^/\s]+)?$")] = ""
    connections_max: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    header_s: Seconds = 10
    body_s: Seconds = 10
    body_bytes_per_s: Annotated[int, Meta(ge=1_024, le=1_073_741_824)] = 65_536
    idle_s: Seconds = 75
    stop_s: Annotated[int, Meta(ge=0, le=300)] = 5


class Node(Struct, frozen=True, forbid_unknown_fields=True):
    """This member, and what it tells of itself."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")] = "node1"
    region: Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,32}$")] = DEFAULT_REGION
    account: Annotated[str, Meta(pattern=r"^[0-9]{12}$")] = DEFAULT_ACCOUNT
    sixty_second_rules: bool = False


class Storage(Struct, frozen=True, forbid_unknown_fields=True):
    """Where messages are kept."""

    data_dir: Annotated[str, Meta(min_length=1)] = "./data"
    memory: bool = False
    durability: Literal["fsync", "os", "none"] = "fsync"
    reserve_mb: Annotated[int, Meta(ge=32, le=65_536)] = 64
    memory_mb: Annotated[int, Meta(ge=1, le=1_048_576)] = 64


class Admin(Struct, frozen=True, forbid_unknown_fields=True):
    """The port of the operators."""

    host: Annotated[str, Meta(min_length=1, max_length=253)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=-1, le=65_535)] = 9325


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    http: Http = field(default_factory=Http)
    node: Node = field(default_factory=Node)
    storage: Storage = field(default_factory=Storage)
    cluster: Cluster = field(default_factory=Cluster)
    admin: Admin = field(default_factory=Admin)


SECTIONS: Final[dict[str, type[Struct]]] = {
    "http": Http,
    "node": Node,
    "storage": Storage,
    "cluster": Cluster,
    "admin": Admin,
}


def load(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Mapping[str, Any]]) -> Settings:
    """The settings that are in force. Reads the files that the cluster's section names. Raises SettingsError."""
    sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    if file is not None:
        _merge(sections, _read(file), str(file))
    _merge(sections, _from_environment(environment), "the environment")
    _merge(sections, flags, "the command line")
    _split_seeds(sections["cluster"])
    try:
        settings = msgspec.convert(sections, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(str(error)) from error
    if "discovery" not in sections["cluster"]:
        settings = replace(settings, cluster=with_discovery(settings.cluster))
    wrong = contradictions(settings.cluster)
    if wrong:
        raise SettingsError("; ".join(wrong))
    return settings


def warnings(settings: Settings) -> list[str]:
    """What is allowed and still likely a mistake: a line each for the start's log."""
    try:
        return doubts(settings.cluster)
    except ValueError as error:  # the secret's file went away after ``load``
        raise SettingsError(str(error)) from error


def secret(settings: Settings) -> bytes:
    """The cluster's secret, empty if it has none. Raises SettingsError."""
    try:
        return read_secret(settings.cluster)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _split_seeds(cluster: dict[str, Any]) -> None:
    """The environment and the flags have one text, ``a:1,b:2``."""
    seeds = cluster.get("seeds")
    if isinstance(seeds, str):
        cluster["seeds"] = [seed.strip() for seed in seeds.split(",") if seed.strip()]


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """ELASTICQ_HTTP__PORT=9325 is http.port; names without the double underscore are not settings."""
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
        known = [f"{section}.{key}" for key in SECTIONS[section].__struct_fields__]
        for key, value in values.items():
            if f"{section}.{key}" not in known:
                raise SettingsError(_unknown("setting", f"{section}.{key}", known, source))
            sections[section][key] = value


def _unknown(kind: str, name: str, known: list[str], source: str) -> str:
    close = difflib.get_close_matches(name, known, 1, 0.5)
    hint = f", did you mean {close[0]}?" if close else f" (known: {', '.join(known)})"
    return f"{source}: unknown {kind} {name}{hint}"
