"""Keeps inputs of a target in one small file: msgpack in xz, the shortest inputs first."""

import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

FOLDER: Final = Path(__file__).parent / "corpus"
FILE_BYTES_MAX: Final = 60_000
"""Of the file of one target: a repository keeps every version of it."""
_INPUTS_BYTES_MAX: Final = 64 * 1_048_576


def file_of(name: str) -> Path:
    return FOLDER / f"{name}.xz"


def read(name: str) -> list[bytes]:
    """The kept inputs of a target; none where there is no file."""
    file = file_of(name)
    if not file.is_file():
        return []
    data = lzma.LZMADecompressor(memlimit=256 * 1_048_576).decompress(file.read_bytes(), _INPUTS_BYTES_MAX)
    return msgspec.msgpack.decode(data, type=list[bytes])


def write(name: str, inputs: Iterable[bytes]) -> int:
    """Keep these inputs, as many of the shortest ones as the file may hold; return how many."""
    kept = sorted(set(inputs), key=lambda each: (len(each), each))
    while len(packed := lzma.compress(msgspec.msgpack.encode(kept), preset=9)) > FILE_BYTES_MAX:
        del kept[len(kept) * 9 // 10 :]
    FOLDER.mkdir(exist_ok=True)
    file_of(name).write_bytes(packed)
    return len(kept)
