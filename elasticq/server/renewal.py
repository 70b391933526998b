"""The renewal of certificates, keys and secrets while the server runs, on SIGHUP.

The server reads again the files that its settings named at the start. Open connections are not affected; later ones
use the new files. If a file cannot be read, its old content stays in use.
"""

import logging
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from elasticq.server.settings import SettingsError

_log = logging.getLogger(__name__)


class Part(NamedTuple):
    """Files that are renewed together.

    name: the name of their settings, for the log. renew: reads all files, then puts them into use. If a file cannot be
    used, it changes nothing and raises SettingsError or OSError.
    """

    name: str
    renew: Callable[[], None]


def renew(parts: Sequence[Part]) -> None:
    """Renew all parts. Log one line for all that were renewed, and one line for each failure."""
    renewed = []
    for part in parts:
        try:
            part.renew()
        except (SettingsError, OSError) as error:
            _log.error("not_renewed: SIGHUP came, but the old files stay in use: %s", error)
        else:
            renewed.append(part.name)
    if renewed:
        _log.info("renewed: SIGHUP came, and these were read again: %s.", ", ".join(renewed))
    elif not parts:
        _log.info("renewed: SIGHUP came, but no setting names a file with a secret.")


def has_terminal() -> bool:
    """Return whether this process was started at a terminal. If so, SIGHUP means that the terminal was closed."""
    return sys.stdin is not None and sys.stdin.isatty()
