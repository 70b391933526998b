"""What numbers and names of frames, log entries and records may be; msgspec judges them while it decodes.

A number beyond its range is a bug, a flipped bit or malice of whoever sent it, never something to compute with:
sequences, queue ids and hand-outs carry the term in their upper bits and must fit 63 bits (the rows on disk are
SQLite's integers), and of times dates are made.
"""

from typing import Annotated, Final

from msgspec import Meta

from elasticq.model.limits import HEAD_BYTES_MAX

INT_MAX: Final = (1 << 63) - 1
TERM_MAX: Final = (1 << 23) - 1
"""A sequence is term << 40 | counter (engine/identity.py): the highest term whose sequences fit 63 bits."""
TERM_JUMP_MAX: Final = 1 << 16
"""Elections that a member may have missed: a frame of a term further ahead is refused, or a few could use all up."""
INDEX_MAX: Final = (1 << 62) - 1
TIME_MS_MAX: Final = 1 << 47  # the year 6429: cluster time as members tell it, and whatever is added stays a date
ROW_TIME_MS_MAX: Final = 1 << 48
MEMBER_ID_CHARS_MAX: Final = 256
PEER_TEXT_CHARS_MAX: Final = 1_024
VOTERS_MAX: Final = 64
PEERS_MAX: Final = 1_024  # members that one remembers to have met; those that left long ago go first

Term = Annotated[int, Meta(ge=0, le=TERM_MAX)]
Index = Annotated[int, Meta(ge=0, le=INDEX_MAX)]
"""A place in the log, the number of a round or of a letter."""
TimeMs = Annotated[int, Meta(ge=-TIME_MS_MAX, le=TIME_MS_MAX)]
RowTimeMs = Annotated[int, Meta(ge=-ROW_TIME_MS_MAX, le=ROW_TIME_MS_MAX)]
Number = Annotated[int, Meta(ge=0, le=INT_MAX)]
"""A sequence, a queue id or a hand-out number."""
Digest = Annotated[bytes, Meta(min_length=16, max_length=16)]
"""Of a call, an attempt or an id, as the history keeps it."""
Count = Annotated[int, Meta(ge=-INDEX_MAX, le=INDEX_MAX)]
MemberId = Annotated[str, Meta(min_length=1, max_length=MEMBER_ID_CHARS_MAX)]
ClusterId = Annotated[str, Meta(max_length=MEMBER_ID_CHARS_MAX)]
"""Empty: of a member that belongs to none yet."""
CallText = Annotated[str, Meta(max_length=HEAD_BYTES_MAX)]
"""What a call has from the head of a request."""
PeerText = Annotated[str, Meta(max_length=PEER_TEXT_CHARS_MAX)]
