"""The commands on the data directory of a stopped server: backup, restore, repair, force-new."""

import argparse
from collections.abc import Callable
from pathlib import Path

from elasticq.cli.confirm import NotConfirmed, confirm
from elasticq.cli.exits import EXIT_DATA_IN_USE, fail


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    backup = commands.add_parser("backup", help="write the data of DIR, whose server must be stopped, to a new FILE")
    backup.add_argument("directory", type=Path, metavar="DIR")
    backup.add_argument("file", type=Path, metavar="FILE")
    backup.set_defaults(run=_backup)
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
    from elasticq.storage.offline.backup import backup

    return _with_data(lambda: backup(options.directory, options.file))


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
