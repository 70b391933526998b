"""The check of the permissions of a file with a secret."""

import os
from typing import Final

_GROUP_AND_OTHERS: Final = 0o077
_WRITE_OF_GROUP_AND_OTHERS: Final = 0o037


def check_mode(setting: str, path: object, state: os.stat_result) -> None:
    """Raise ValueError if other users could read or write the file."""
    if state.st_mode & refused_mode(state.st_uid, os.geteuid()):
        raise ValueError(f"{setting} {path} is open to other users of this machine: chmod 600 {path}")


def refused_mode(owner: int, user: int) -> int:
    """Return the mode bits that a secret's file must not have.

    A file of root may be readable by its group, as in PostgreSQL, because Kubernetes mounts secrets so.
    """
    return _WRITE_OF_GROUP_AND_OTHERS if owner == 0 != user else _GROUP_AND_OTHERS
