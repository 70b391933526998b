"""One HTTP request of a siege, before it is signed, as it is logged for a replay.

python -m tests.system.siege.request FILE NUMBER prints the request with this number in a worker's log.
"""

import base64
import sys
import zlib
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

MASTER, FOLLOWER, PROXY = "master", "follower", "proxy"
ROLES: Final = (MASTER, FOLLOWER, PROXY)
KEEP, PIPE, CUT = "keep", "pipe", "cut"
MANNERS: Final = (KEEP, PIPE, CUT)
"""How a request is sent: on a kept connection, together with the one after it, or without waiting for the answer."""


class Request(Struct):
    """A request.

    name: of its entry point and action; to: the role that it is sent to; is_operators: to the operators' port.
    service: of its signature; empty for none. account: of the key that signs. cut: how much of it a cut one sends.
    """

    name: str
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    service: str = "sqs"
    is_operators: bool = False
    account: str = ""
    to: str = MASTER
    manner: str = KEEP
    cut: float = 1.0
    focus: tuple[str, str, str, str] = ("", "", "", "")

    def head(self, host: str, more: dict[str, str]) -> bytes:
        """Return the bytes in front of the body. more: headers of the signature."""
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in (self.headers | more).items()]
        clean = [line.replace("\r", " ").replace("\n", " ") for line in lines]
        return ("\r\n".join(clean) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def dump(request: Request, number: int, time_s: float) -> str:
    """Return a line of the log. Most long bodies are repetitions, which compress well."""
    packed = base64.b85encode(zlib.compress(msgspec.msgpack.encode(request), 1)).decode()
    return f"{number} {time_s:.3f} {request.to} {request.name} {packed}\n"


def load(line: str) -> tuple[float, Request]:
    """Return the time and the request. Raises ValueError for a line that is cut off."""
    _, time_s, *_, packed = line.split()
    try:
        data = zlib.decompress(base64.b85decode(packed))
    except zlib.error as error:
        raise ValueError(line[:100]) from error
    return float(time_s), msgspec.msgpack.decode(data, type=Request)


if __name__ == "__main__":
    for line in Path(sys.argv[1]).read_text().splitlines():
        if line.startswith(f"{sys.argv[2]} "):
            print(load(line)[1])
