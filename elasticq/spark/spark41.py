"""The classes that PySpark 4.1 does not have yet but the source uses; they have no effect."""

from dataclasses import dataclass


class ReadLimit:
    """A bound of a batch."""


@dataclass
class ReadAllAvailable(ReadLimit):
    """The batch reads all that is available."""


@dataclass
class ReadMaxRows(ReadLimit):
    """The batch reads at most so many rows."""

    max_rows: int


class SupportsTriggerAvailableNow:
    """The source can end by itself."""
