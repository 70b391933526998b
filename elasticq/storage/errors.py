"""Errors of a data directory: each text says why it cannot be used, and what the operator can do."""

from typing import Final


class DataError(Exception):
    """The data directory cannot be used as it is; the text is for the operator."""


class DirectoryInUse(DataError):
    """Another process has the directory open."""


class WrongFormat(DataError):
    """A newer version of elasticq wrote the data, or one from before the first release."""


BEFORE_FIRST_RELEASE: Final = (
    "was written by a version of elasticq from before the first release, and no release reads it. Nothing was "
    "changed. Receive the messages with the version that wrote them, or start with an empty directory."
)


class Damaged(DataError):
    """Bytes of a file changed after they were synced."""

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(
            f"{file} is damaged at byte {offset}: {reason}. Nothing was changed. "
            "Restore a backup, or run 'elasticq repair DIR': it salvages what can be read and says what is lost."
        )
        self.file = file
        self.offset = offset
        self.reason = reason
