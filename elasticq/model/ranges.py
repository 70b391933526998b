"""The ranges of numbers and names in frames, log entries and records. msgspec checks them while it decodes.

A number outside its range comes from a bug, a flipped bit or an attacker, so the server must not use it. Sequences,
queue ids and deliveries have the term in their upper bits. They must fit in 63 bits, because rows on disk have the
integers of SQLite. Times must be in the range of dates.
"""

from typing import Annotated, Final

from msgspec import Meta

from elasticq.model.limits import HEAD_BYTES_MAX, LONG_RANGE

INT_MAX: Final = (1 << 63) - 1
TERM_MAX: Final = (1 << 23) - 1
"""The highest term whose sequences fit in 63 bits. A sequence is term << 40 | counter (engine/stored/identity.py)."""
TERM_JUMP_MAX: Final = 1 << 16
"""How many terms a frame may be ahead of its receiver, which may have missed elections. Frames further ahead are
refused, because a few of them could use up all terms."""
INDEX_MAX: Final = (1 << 62) - 1
TIME_MS_MAX: Final = 1 << 47  # the year 6429: after all additions, cluster time is still a date
ROW_TIME_MS_MAX: Final = 1 << 48
MEMBER_ID_CHARS_MAX: Final = 256
PEER_TEXT_CHARS_MAX: Final = 1_024
VOTERS_MAX: Final = 64
PEERS_MAX: Final = 1_024  # other members that a member remembers; it first forgets those that left earliest

Term = Annotated[int, Meta(ge=0, le=TERM_MAX)]
Index = Annotated[int, Meta(ge=0, le=INDEX_MAX)]
"""An index of the log, or the number of a round or of a forwarded message."""
TimeMs = Annotated[int, Meta(ge=-TIME_MS_MAX, le=TIME_MS_MAX)]
RowTimeMs = Annotated[int, Meta(ge=-ROW_TIME_MS_MAX, le=ROW_TIME_MS_MAX)]
Number = Annotated[int, Meta(ge=0, le=INT_MAX)]
"""A sequence, a queue id or a delivery number."""
Priority = Annotated[int, Meta(ge=LONG_RANGE[0], le=LONG_RANGE[1])]
VirtualTime = Annotated[bytes, Meta(max_length=16)]
"""A virtual time of fair shares (engine/ordering/shares.py). In the long run it needs more than 63 bits."""
Digest = Annotated[bytes, Meta(min_length=16, max_length=16)]
"""The digest that identifies a call, a receive attempt or the id of a message."""
Count = Annotated[int, Meta(ge=-INDEX_MAX, le=INDEX_MAX)]
MemberId = Annotated[str, Meta(min_length=1, max_length=MEMBER_ID_CHARS_MAX)]
ClusterId = Annotated[str, Meta(max_length=MEMBER_ID_CHARS_MAX)]
"""The id of a cluster; empty for a member that has not joined one."""
Owner = Annotated[str, Meta(pattern=r"\A[0-9]{12}(/([a-z0-9-]{1,32}|~topics))?\Z")]
"""The owner of queues: an account, with a region that is not the node's own, or with INNER (model/names.py)."""
CallText = Annotated[str, Meta(max_length=HEAD_BYTES_MAX)]
"""A text of a call from the head of its HTTP request."""
PeerText = Annotated[str, Meta(max_length=PEER_TEXT_CHARS_MAX)]
