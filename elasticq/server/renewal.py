"""Reads certificates, keys and secrets anew while the server runs, which is what SIGHUP asks for.

Only what stands in files is read, by the settings of the start. Connections that are up stay as they are; those that
come later meet what is new. What cannot be read leaves the old one in use.
"""

import logging
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from elasticq.server.settings import SettingsError

_log = logging.getLogger(__name__)


class Part(NamedTuple):
    """What one reader reads. name: its settings; renew: reads all of it, and then puts it in the place of the old one.

    ``renew`` raises SettingsError or OSError where that is not possible, and has changed nothing then.
    """

    name: str
    renew: Callable[[], None]


def renew(parts: Sequence[Part]) -> None:
    """Read all parts anew; log in one line which were read, and in a line each which could not be."""
    renewed = []
    for part in parts:
        try:
            part.renew()
        except (SettingsError, OSError) as error:
            _log.error("not_renewed: SIGHUP came, and what was read before stays in use: %s", error)
        else:
            renewed.append(part.name)
    if renewed:
        _log.info("renewed: SIGHUP came, and these were read anew: %s.", ", ".join(renewed))
    elif not parts:
        _log.info("renewed: SIGHUP came, and there is nothing to read anew: no setting names a file with a secret.")


def has_terminal() -> bool:
    """Tell whether this process was started at a terminal: SIGHUP means then that the terminal was closed."""
    return sys.stdin is not None and sys.stdin.isatty()
