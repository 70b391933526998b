"""The commands on data: backup of a running or a stopped server, verify, restore, repair, force-new."""

import argparse
from collections.abc import Callable
from pathlib import Path

from elasticq.cli.admin_options import add_admin_options, admin_client, run_asking
from elasticq.cli.confirm import NotConfirmed, confirm
from elasticq.cli.exits import EXIT_DATA_IN_USE, fail


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    backup = commands.add_parser("backup", help="write the data of a running member, or of a stopped server, to FILE")
    words = "the data directory of a stopped server; without it, the running member at --admin is asked"
    backup.add_argument("directory", type=Path, nargs="?", metavar="DIR", help=words)
    backup.add_argument("file", type=Path, metavar="FILE", help="a new file")
    add_admin_options(backup)
    backup.set_defaults(run=_backup)
    verify = commands.add_parser("verify", help="read all of the backup FILE, and say whether it can be restored")
    verify.add_argument("file", type=Path, metavar="FILE")
    verify.set_defaults(run=_verify)
    restore = commands.add_parser("restore", help="create the new data directory DIR from a backup")
    restore.add_argument("file", type=Path, metavar="FILE")
    restore.add_argument("directory", type=Path, metavar="DIR")
    restore.set_defaults(run=_restore)
    repair = commands.add_parser("repair", help="save all that is readable of a damaged DIR, and print what is lost")
    repair.add_argument("directory", type=Path, metavar="DIR")
    repair.set_defaults(run=_repair)


def force_new(options: argparse.Namespace) -> int:
    from elasticq.storage.offline.force_new import force_new

    directory = options.directory
    if not options.yes and directory.is_dir():
        question = (
            f"Make {directory} a cluster of one, and lose all that only other members have? Type the directory's name:"
        )
        try:
            confirm("force-new", question, directory.resolve().name, "nothing was changed")
        except NotConfirmed as error:
            return fail(str(error))
    return _with_data(lambda: force_new(directory))


def _backup(options: argparse.Namespace) -> int:
    if options.directory is None:
        from elasticq.cli.live_backup import fetch

        return run_asking(lambda: _with_data(lambda: fetch(admin_client(options), options.file)), options)
    from elasticq.storage.offline.backup import backup

    return _with_data(lambda: backup(options.directory, options.file))


def _verify(options: argparse.Namespace) -> int:
    from elasticq.storage.offline.backup import verify

    return _with_data(lambda: verify(options.file))


def _restore(options: argparse.Namespace) -> int:
    from elasticq.storage.offline.backup import restore

    return _with_data(lambda: restore(options.file, options.directory))


def _repair(options: argparse.Namespace) -> int:
    from elasticq.storage.offline.repair import repair

    return _with_data(lambda: repair(options.directory))


def _with_data(work: Callable[[], str]) -> int:
    """Print the result of ``work``, or why the data cannot be used. Return the exit status."""
    from elasticq.storage.errors import DataError, DirectoryInUse, WrongFormat

    try:
        print(work())
    except DataError as error:
        status = fail(str(error))
        return EXIT_DATA_IN_USE if isinstance(error, (DirectoryInUse, WrongFormat)) else status
    except OSError as error:
        return fail(str(error))
    return 0
