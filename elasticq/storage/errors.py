"""The errors that say why a data directory cannot be used, and what to do about it."""


class DataError(Exception):
    """The data directory cannot be used as it is; the text is for the operator."""


class DirectoryInUse(DataError):
    """Another process has the directory open."""


class FormatTooNew(DataError):
    """A newer version of elasticq wrote the directory."""


class Damaged(DataError):
    """Bytes that had been synced have changed."""

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(
            f"{file} is damaged at byte {offset}: {reason}. Nothing was changed. "
            "Restore a backup, or run 'elasticq repair DIR': it salvages what can be read and says what is lost."
        )
        self.file = file
        self.offset = offset
        self.reason = reason
