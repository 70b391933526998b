"""Reads the command line and calls the room that does the work.

Exit status: 0 stopped by a signal or all is well, 1 failure, 2 usage or
settings, 3 port taken, 4 data directory in use or of a newer format. Rooms are imported by the command that needs them.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_DATA_IN_USE: Final = 4
HEALTH_TIMEOUT_S: Final = 5
DEFAULT_URL: Final = "http://127.0.0.1:9324"
_COMMANDS: Final = ("server", "health", "config", "backup", "restore", "repair", "sim")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; ``argv`` without the program's name. No command means ``server``."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["sim"]:
        from elasticq.sim.cli import main as simulate

        return simulate(arguments[1:])
    if not arguments or (arguments[0] not in _COMMANDS and arguments[0] not in ("-h", "--help", "--version")):
        arguments.insert(0, "server")
    options = _parser().parse_args(arguments)
    run: Any = options.run
    return int(run(options))


def _parser() -> argparse.ArgumentParser:
    from elasticq import __version__

    parser = argparse.ArgumentParser(prog="elasticq", description="A message server that speaks SQS.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_server(commands.add_parser("server", help="serve SQS (the command when none is given)"))
    health = commands.add_parser("health", help="exit 0 if the server at URL is alive, else 1")
    health.add_argument("url", nargs="?", default=DEFAULT_URL, metavar="URL")
    health.set_defaults(run=_health)
    config = commands.add_parser("config", help="look at settings").add_subparsers(required=True, metavar="COMMAND")
    check = config.add_parser("check", help="print the settings in force with FILE, or what is wrong with it")
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(run=_check)
    backup = commands.add_parser("backup", help="write what DIR holds to the new file FILE; its server must be stopped")
    backup.add_argument("directory", type=Path, metavar="DIR")
    backup.add_argument("file", type=Path, metavar="FILE")
    backup.set_defaults(run=_backup)
    restore = commands.add_parser("restore", help="make the new data directory DIR from a backup")
    restore.add_argument("file", type=Path, metavar="FILE")
    restore.add_argument("directory", type=Path, metavar="DIR")
    restore.set_defaults(run=_restore)
    repair = commands.add_parser("repair", help="salvage what can be read of a damaged DIR and say what is lost")
    repair.add_argument("directory", type=Path, metavar="DIR")
    repair.set_defaults(run=_repair)
    commands.add_parser("sim", help="run seeds of the simulator (elasticq sim --help)")
    return parser


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="settings as TOML, see conf/elasticq.toml")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port of the SQS API, 0 for a free one (9324)")
    parser.add_argument("--node-id", metavar="ID", help="name of this member (node1)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--memory", action="store_true", help="keep messages in memory only")
    where.add_argument("--data-dir", type=Path, metavar="DIR", help="keep messages in DIR (./data)")
    parser.set_defaults(run=_serve)


def _serve(options: argparse.Namespace) -> int:
    from elasticq.server.settings import SettingsError, load

    http = {"host": options.host, "port": options.port}
    node = {"id": options.node_id}
    flags = {"http": _given(http), "node": _given(node), "storage": _storage(options)}
    try:
        settings = load(options.config, os.environ, flags)
    except SettingsError as error:
        return _refuse(str(error))
    from elasticq.server.life import serve

    return serve(settings)


def _storage(options: argparse.Namespace) -> dict[str, Any]:
    """A directory that is named on the command line is used, whatever the file says of memory."""
    if options.data_dir is not None:
        return {"data_dir": str(options.data_dir), "memory": False}
    return {"memory": True} if options.memory else {}


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def _check(options: argparse.Namespace) -> int:
    import msgspec

    from elasticq.server.settings import SettingsError, load

    try:
        settings = load(options.file, os.environ, {})
    except SettingsError as error:
        return _refuse(str(error))
    for section, values in msgspec.to_builtins(settings).items():
        print(f"[{section}]")
        for name, value in values.items():
            print(f"{name} = {msgspec.json.encode(value).decode()}")
    return 0


def _backup(options: argparse.Namespace) -> int:
    from elasticq.storage.backup import backup

    return _with_data(lambda: backup(options.directory, options.file))


def _restore(options: argparse.Namespace) -> int:
    from elasticq.storage.backup import restore

    return _with_data(lambda: restore(options.file, options.directory))


def _repair(options: argparse.Namespace) -> int:
    from elasticq.storage.repair import repair

    return _with_data(lambda: repair(options.directory))


def _with_data(work: Callable[[], str]) -> int:
    """Print what ``work`` tells, or why the data cannot be used."""
    from elasticq.storage.errors import DataError, DirectoryInUse, FormatTooNew

    try:
        print(work())
    except DataError as error:
        print(f"elasticq: {error}", file=sys.stderr)
        return EXIT_DATA_IN_USE if isinstance(error, (DirectoryInUse, FormatTooNew)) else EXIT_FAILURE
    except OSError as error:
        print(f"elasticq: {error}", file=sys.stderr)
        return EXIT_FAILURE
    return 0


def _health(options: argparse.Namespace) -> int:
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    address = urlsplit(options.url)
    if address.scheme != "http" or not address.hostname:
        return _refuse(f"{options.url} is no http URL")
    connection = HTTPConnection(address.hostname, address.port or 80, timeout=HEALTH_TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        print(f"elasticq: {options.url} does not answer: {error}", file=sys.stderr)
        return 1
    finally:
        connection.close()
    print("OK" if status == 200 else f"HTTP {status}")
    return 0 if status == 200 else 1


def _refuse(reason: str) -> int:
    print(f"elasticq: {reason}", file=sys.stderr)
    return EXIT_USAGE
