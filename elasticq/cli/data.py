"""Commands on a data directory whose server is stopped: backup, restore, repair, force-new."""

import argparse
from collections.abc import Callable
from pathlib import Path

from elasticq.cli.confirm import NotConfirmed, confirm
from elasticq.cli.exits import EXIT_DATA_IN_USE, fail


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
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


def force_new(options: argparse.Namespace) -> int:
    from elasticq.storage.offline.force_new import force_new

    directory = options.directory
    if not options.yes and directory.is_dir():
        question = (
            f"Make {directory} a cluster of its own, and lose what only the others had? Type the directory's name:"
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
    """Print what ``work`` returns, or why the data cannot be used."""
    from elasticq.storage.errors import DataError, DirectoryInUse, WrongFormat

    try:
        print(work())
    except DataError as error:
        status = fail(str(error))
        return EXIT_DATA_IN_USE if isinstance(error, (DirectoryInUse, WrongFormat)) else status
    except OSError as error:
        return fail(str(error))
    return 0
