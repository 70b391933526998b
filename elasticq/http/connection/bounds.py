"""The bounds of the SQS port, as the settings give them."""

from msgspec import Struct


class Bounds(Struct, frozen=True, kw_only=True):
    """Deadlines in milliseconds, sizes in bytes; the sweep is once a second, so a deadline is met within one."""

    connections_max: int = 10_000
    refused_max: int = 256  # connections over the limit that are told so; beyond them nothing is said
    connections_per_address: int = 0  # 0: no bound of its own
    streams_per_address: int = 100  # of REST; 0: no bound of its own
    header_ms: int = 10_000
    body_ms: int = 10_000
    body_bytes_per_s: int = 65_536  # slowest sender that is waited for, on top of body_ms
    idle_ms: int = 75_000
    held_bytes_max: int = 262_144  # what a client may send ahead while its reply is waited for
    buffers_bytes_max: int = 67_108_864  # of all connections: requests in parts or waiting, replies that nobody reads
    linger_ms: int = 2_000  # after an early error: time for the client to read it
