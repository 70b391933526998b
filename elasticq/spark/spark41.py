"""Substitutes without effect for classes that the source uses and PySpark 4.1 lacks."""

from dataclasses import dataclass


class ReadLimit:
    """The limit of a batch."""


@dataclass
class ReadAllAvailable(ReadLimit):
    """No limit: the batch reads all available rows."""


@dataclass
class ReadMaxRows(ReadLimit):
    """The largest number of rows of a batch."""

    max_rows: int


class SupportsTriggerAvailableNow:
    """The mark of a source that supports Trigger.AvailableNow."""
