"""The bounds of the SQS port, from the settings."""

from msgspec import Struct


class Bounds(Struct, frozen=True, kw_only=True):
    """The bounds of one port. The server checks deadlines once a second, so a connection may end up to 1 s late."""

    connections_max: int = 10_000
    refused_max: int = 256  # connections over the limit that get a 503; those beyond are aborted
    connections_per_address: int = 0  # 0: no bound per address
    streams_per_address: int = 100  # event streams of REST; 0: no bound per address
    header_ms: int = 10_000
    body_ms: int = 10_000
    body_bytes_per_s: int = 65_536  # each second allows this many bytes more, on top of body_ms
    idle_ms: int = 75_000
    held_bytes_max: int = 262_144  # what a client may send ahead before it gets its reply
    buffers_bytes_max: int = 67_108_864  # of all connections: partial and waiting requests, unread replies
    linger_ms: int = 2_000  # how long a client may read an early error before the connection ends
