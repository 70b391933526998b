"""The options ``--admin`` and ``--token-file``, and what commands with them share."""

import argparse
import os
from collections.abc import Callable
from typing import Final

from elasticq.cli.admin_client import AdminClient, Failure
from elasticq.cli.ask import BadUrl, Unreachable
from elasticq.cli.exits import fail, refuse

DEFAULT_ADMIN: Final = "http://127.0.0.1:9325"
TOKEN_VARIABLE: Final = "ELASTICQ_ADMIN__TOKEN_FILE"


def add_admin_options(parser: argparse.ArgumentParser) -> None:
    words = f"admin port of any member ({DEFAULT_ADMIN})"
    parser.add_argument("--admin", default=DEFAULT_ADMIN, metavar="URL", help=words)
    parser.add_argument("--token-file", metavar="FILE", help="the members' admin.token_file, if they have one")


def admin_client(options: argparse.Namespace) -> AdminClient:
    """Return a client of the member that ``--admin`` names. Raise Failure if the token's file cannot be read."""
    from elasticq.server.auth import read_token

    try:
        return AdminClient(options.admin, read_token(options.token_file or os.environ.get(TOKEN_VARIABLE, "")))
    except ValueError as error:
        raise Failure(str(error)) from error


def run_asking(run: Callable[[], int], options: argparse.Namespace) -> int:
    """Run a command that asks the admin port. Print its error if it fails. Return the exit status."""
    try:
        return run()
    except BadUrl as error:
        return refuse(str(error))
    except Unreachable as error:
        hint = " (--admin names another member)" if options.admin == DEFAULT_ADMIN else ""
        return fail(f"{error}{hint}")
    except Failure as error:
        return fail(str(error))
