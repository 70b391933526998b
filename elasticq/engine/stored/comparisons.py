"""The mutation by which members compare their rows. It changes no row."""

from msgspec import Struct

from elasticq.model.ranges import Number


class RowsCompared(Struct, array_like=True, tag=150, frozen=True, gc=False):
    """A part of a comparison. Each member hashes its rows after ``after``, up to and including ``until``.

    number: the log index of the first part. after, until: positions of engine/views/digest.py; ``after`` is empty in
    the first part, and ``until`` in the last one. The entry holds no other mutation, so all members hash the same rows.
    """

    number: Number
    after: list[int | str]
    until: list[int | str]
