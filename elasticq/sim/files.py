"""Files in memory that lose what a power cut loses."""

from random import Random

from elasticq.storage.files import Files
from elasticq.storage.records import SECTOR_BYTES

PADDING_BYTES = 4_096


class _File:
    """end: where the next append goes, with zeros behind; synced_end: what a power cut leaves of that."""

    __slots__ = ("data", "end", "synced_bytes", "synced_end")

    def __init__(self) -> None:
        self.data = bytearray()
        self.end = self.synced_end = self.synced_bytes = 0


class SimulatedFiles(Files):
    """Files whose names are durable at once, and whose contents are durable when synced."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def names(self) -> list[str]:
        return sorted(self._files)

    def read(self, name: str) -> bytes:
        return bytes(self._files[name].data)

    def create(self, name: str) -> None:
        assert name not in self._files
        self._files[name] = _File()

    def append(self, name: str, data: bytes) -> None:
        file = self._files[name]
        past = file.end + len(data)
        if past > len(file.data):
            file.data += bytes(past + PADDING_BYTES - len(file.data))
        file.data[file.end : past] = data
        file.end = past

    def sync(self, name: str) -> None:
        file = self._files[name]
        file.synced_bytes, file.synced_end = len(file.data), file.end

    def truncate(self, name: str, size_bytes: int) -> None:
        file = self._files[name]
        del file.data[size_bytes:]
        file.end = file.synced_end = file.synced_bytes = size_bytes

    def trim(self, name: str) -> None:
        self.truncate(name, self._files[name].end)

    def remove(self, name: str) -> None:
        del self._files[name]

    def crash(self, random: Random) -> None:
        """Keep a random prefix of what was not synced; now and then one of its sectors reads as zeros."""
        for file in self._files.values():
            begin = file.synced_end
            end = begin + random.randint(0, file.end - begin)
            file.data[end:] = bytes(max(0, file.synced_bytes - end))
            if end > begin and random.random() < 0.5:
                sector = random.randrange(begin // SECTOR_BYTES, -(-end // SECTOR_BYTES))
                first, last = max(sector * SECTOR_BYTES, begin), min((sector + 1) * SECTOR_BYTES, end)
                file.data[first:last] = bytes(last - first)
            file.synced_bytes = file.end = file.synced_end = len(file.data)
