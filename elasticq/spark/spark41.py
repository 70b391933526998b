"""What PySpark 4.1 does not have yet: the names that the source asks for, without effect."""

from dataclasses import dataclass


class ReadLimit:
    """How much a batch may read."""


@dataclass
class ReadAllAvailable(ReadLimit):
    """All."""


@dataclass
class ReadMaxRows(ReadLimit):
    """At most so many rows."""

    max_rows: int


class SupportsTriggerAvailableNow:
    """That a source can end by itself."""
