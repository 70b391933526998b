"""The commands ``server`` and ``config check``. -D accepts the keys of ElasticMQ's java command."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from elasticq.cli.exits import refuse

OPTIONS: Final = {
    "http.host": "--host",
    "http.port": "--port",
    "admin.port": "--admin-port",
    "auth.mode": "--auth",
    "auth.keys_file": "--keys-file",
    "node.id": "--node-id",
    "log.format": "--log-format",
    "storage.data_dir": "--data-dir",
    "cluster.role": "--role",
    "cluster.nodes": "--nodes",
    "cluster.name": "--cluster-name",
    "cluster.seeds": "--seeds",
    "cluster.discovery": "--discovery",
    "cluster.peer_host": "--peer-host",
    "cluster.peer_port": "--peer-port",
    "cluster.secret_file": "--cluster-secret-file",
    "cluster.ack_mode": "--ack-mode",
}
"""The options that set one setting each. The settings validate their values."""


def add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="TOML, or ElasticMQ's .conf")
    _add_properties(parser)
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", help="port of the SQS API, 0 for a free one (9324)")
    parser.add_argument("--admin-port", metavar="PORT", help="operators' port, 0 free, -1 off (9325)")
    parser.add_argument("--auth", choices=("off", "lax", "strict"), help="who may use the SQS API (off: everybody)")
    parser.add_argument("--keys-file", metavar="FILE", help="access keys as TOML, not readable by other users")
    parser.add_argument("--node-id", metavar="ID", help="name of this member (node1)")
    parser.add_argument("--log-format", choices=("text", "json"), help="format of the log on stderr (text)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--memory", action="store_true", help="store messages in memory only")
    where.add_argument("--data-dir", type=Path, metavar="DIR", help="store messages in DIR (./data)")
    words = "keep the port open in a parent process that restarts the server when a signal kills it"
    parser.add_argument("--supervise", action="store_true", help=words)
    _add_cluster(parser.add_argument_group("cluster"))
    parser.set_defaults(run=_serve)


def add_config(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="print all settings as FILE sets them, or what is wrong with it")
    check.add_argument("file", type=Path, nargs="?", metavar="FILE", help="TOML, or ElasticMQ's .conf")
    _add_properties(check)
    check.set_defaults(run=_check)


def _add_properties(parser: argparse.ArgumentParser) -> None:
    words = "a key of ElasticMQ's configuration, or -Dconfig.file=FILE"
    parser.add_argument("-D", dest="properties", action="append", default=[], metavar="KEY=VALUE", help=words)


def _add_cluster(group: "argparse._ArgumentGroup") -> None:
    words = "proxy: store nothing, pass calls on to the cluster of --seeds (member)"
    group.add_argument("--role", choices=("member", "proxy"), help=words)
    group.add_argument("--nodes", metavar="N", help="how many new members form the cluster (1)")
    group.add_argument("--cluster-name", metavar="NAME", help="only members with the same name connect (elasticq)")
    group.add_argument("--seeds", metavar="HOST:PORT,...", help="peer ports of other members; some are enough")
    group.add_argument("--discovery", choices=("zeroconf", "seeds", "none"), help="how members find each other")
    group.add_argument("--peer-host", metavar="HOST", help="address to listen on for other members (127.0.0.1)")
    group.add_argument("--peer-port", metavar="PORT", help="port for other members, 0 for a free one (9326)")
    group.add_argument("--cluster-secret-file", metavar="FILE", help="file with the secret that all members share")
    modes = ("async", "one", "majority", "all")
    group.add_argument("--ack-mode", choices=modes, help="when a send to a standard queue is answered (majority)")


def _serve(options: argparse.Namespace) -> int:
    from elasticq.server.ports import is_supervised
    from elasticq.server.settings import SettingsError, load

    notes: list[str] = []
    try:
        file, properties = _properties(options.properties, options.config)
        settings = load(file, os.environ, _flags(options), properties, notes, OPTIONS)
    except (SettingsError, ValueError) as error:
        return refuse(str(error))
    _print_notes(notes)
    if options.supervise and not is_supervised():
        from elasticq.server.supervisor import supervise

        return supervise(settings, [sys.executable, *sys.orig_argv[1:]])
    from elasticq.server.life import serve

    return serve(settings)


def _properties(given: list[str], file: Path | None) -> tuple[Path | None, list[tuple[str, str]]]:
    """Return the file, which --config or -Dconfig.file names, and the other properties.

    Raise ValueError if both name different files.
    """
    properties = []
    for each in given:
        key, _, value = each.partition("=")
        if key in ("config.url", "config.resource"):
            raise ValueError(f"-D{key} is not supported: name a file with -Dconfig.file=FILE")
        if key == "config.file" and file is not None and file != Path(value):
            raise ValueError(f"--config {file} and -Dconfig.file={value} name two files")
        if key == "config.file":
            file = Path(value)
        else:
            properties.append((key, value))
    return file, properties


def _print_notes(notes: list[str]) -> None:
    for note in notes:
        print(f"elasticq: note: {note}", file=sys.stderr)


def _flags(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the given flags, by section."""
    flags: dict[str, dict[str, Any]] = {}
    for name, option in OPTIONS.items():
        section, _, key = name.partition(".")
        value = getattr(options, option.removeprefix("--").replace("-", "_"))
        if value is not None:
            flags.setdefault(section, {})[key] = str(value)
    if options.memory or options.data_dir is not None:  # both options override storage.memory of the file
        flags.setdefault("storage", {})["memory"] = bool(options.memory)
    return flags


def _check(options: argparse.Namespace) -> int:
    """Print the settings as TOML, which can be used as a file. Print warnings on stderr."""
    import msgspec

    from elasticq.server.auth import shown
    from elasticq.server.settings import SettingsError, load, warnings

    notes: list[str] = []
    try:
        file, properties = _properties(options.properties, options.file)
        settings = load(file, os.environ, {}, properties, notes)
        notes += warnings(settings)
    except (SettingsError, ValueError) as error:
        return refuse(str(error))
    _print_notes(notes)
    for line in _toml(shown(msgspec.to_builtins(settings))):
        print(line)
    return 0


def _toml(sections: dict[str, Any]) -> Iterator[str]:
    named = {section: sections.pop(section) for section in ("queues", "topics")}
    tables = dict(sections)
    for section, each in named.items():
        tables |= {f"{section}.{_text(name)}": table for name, table in each.items()}
    for at, (section, values) in enumerate(tables.items()):
        if at:
            yield ""
        yield f"[{section}]"
        yield from (f"{name} = {_value(value)}" for name, value in values.items())


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(name)} = {_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _text(value)


def _text(value: object) -> str:
    """Return a value as TOML: its JSON, but with the control character DEL escaped, as TOML requires."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
