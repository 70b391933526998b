"""The mutation by which members compare their rows. No row is stored of it."""

from msgspec import Struct

from elasticq.model.ranges import Number


class RowsCompared(Struct, array_like=True, tag=150, frozen=True, gc=False):
    """A part of a comparison: each member hashes its rows behind ``after`` and up to ``until``. No row changes.

    number: the log index of the first part. after, until: positions of engine/views/digest.py; ``after`` is empty in
    the first part, ``until`` in the last. It is alone in its entry, as it is about the rows at one index.
    """

    number: Number
    after: list[int | str]
    until: list[int | str]
