"""What numbers and names of frames, log entries and records may be; msgspec judges them while it decodes.

A number beyond its range is a bug, a flipped bit or malice of whoever sent it, never something to compute with:
sequences, queue ids and deliveries carry the term in their upper bits and must fit 63 bits (the rows on disk are
SQLite's integers), and of times dates are made.
"""

from typing import Annotated, Final

from msgspec import Meta

from elasticq.model.limits import HEAD_BYTES_MAX, LONG_RANGE

INT_MAX: Final = (1 << 63) - 1
TERM_MAX: Final = (1 << 23) - 1
"""A sequence is term << 40 | counter (engine/stored/identity.py): the highest term whose sequences fit 63 bits."""
TERM_JUMP_MAX: Final = 1 << 16
"""How many terms a frame may be ahead of its receiver, which may have missed elections. Frames that are further ahead
are refused, as a few of them could use up all terms."""
INDEX_MAX: Final = (1 << 62) - 1
TIME_MS_MAX: Final = 1 << 47  # the year 6429: with whatever is added to it, cluster time is still a date
ROW_TIME_MS_MAX: Final = 1 << 48
MEMBER_ID_CHARS_MAX: Final = 256
PEER_TEXT_CHARS_MAX: Final = 1_024
VOTERS_MAX: Final = 64
PEERS_MAX: Final = 1_024  # other members that a member remembers; those that left longest ago are forgotten first

Term = Annotated[int, Meta(ge=0, le=TERM_MAX)]
Index = Annotated[int, Meta(ge=0, le=INDEX_MAX)]
"""A place in the log, the number of a round or of a forwarded message."""
TimeMs = Annotated[int, Meta(ge=-TIME_MS_MAX, le=TIME_MS_MAX)]
RowTimeMs = Annotated[int, Meta(ge=-ROW_TIME_MS_MAX, le=ROW_TIME_MS_MAX)]
Number = Annotated[int, Meta(ge=0, le=INT_MAX)]
"""A sequence, a queue id or a delivery number."""
Priority = Annotated[int, Meta(ge=LONG_RANGE[0], le=LONG_RANGE[1])]
VirtualTime = Annotated[bytes, Meta(max_length=16)]
"""A moment of what groups share (engine/ordering/shares.py), which 63 bits would end one day."""
Digest = Annotated[bytes, Meta(min_length=16, max_length=16)]
"""The digest by which a call, a receive attempt or an id of a message is remembered."""
Count = Annotated[int, Meta(ge=-INDEX_MAX, le=INDEX_MAX)]
MemberId = Annotated[str, Meta(min_length=1, max_length=MEMBER_ID_CHARS_MAX)]
ClusterId = Annotated[str, Meta(max_length=MEMBER_ID_CHARS_MAX)]
"""Empty for a member that belongs to no cluster yet."""
Owner = Annotated[str, Meta(pattern=r"\A[0-9]{12}(/([a-z0-9-]{1,32}|~topics))?\Z")]
"""Of queues: an account, and behind it a region that is not the node's own, or INNER (model/names.py)."""
CallText = Annotated[str, Meta(max_length=HEAD_BYTES_MAX)]
"""A text that a call takes over from the head of its HTTP request."""
PeerText = Annotated[str, Meta(max_length=PEER_TEXT_CHARS_MAX)]
