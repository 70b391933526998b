"""The simulated files of a disk. They are in memory, and a crash loses what a power cut loses."""

from random import Random

from elasticq.storage.files import Files
from elasticq.storage.log.records import SECTOR_BYTES

PADDING_BYTES = 4_096


class PaddedFile:
    """A file with zeros after its appended bytes.

    data: all bytes, zeros included. end: where the next append starts.
    synced_end: the ``end`` at the last sync. A power cut loses nothing before it.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.end = self.synced_end = 0

    def write(self, data: bytes, padding_bytes: int) -> None:
        """Append ``data``, over the zeros. If this makes the file longer, add ``padding_bytes`` zeros after it."""
        past = self.end + len(data)
        if past > len(self.data):
            self.data += bytes(past + padding_bytes - len(self.data))
        self.data[self.end : past] = data
        self.end = past

    def cut(self, size_bytes: int) -> None:
        """Cut the file to ``size_bytes``. The next append starts there."""
        del self.data[size_bytes:]
        self.end = size_bytes


class _File(PaddedFile):
    """A simulated file. synced_bytes: its length at the last sync, zeros included."""

    def __init__(self) -> None:
        super().__init__()
        self.synced_bytes = 0

    def sync(self) -> None:
        self.synced_bytes, self.synced_end = len(self.data), self.end


class SimulatedFiles(Files):
    """The files of one disk. Their names are durable at once, their contents after a sync."""

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
        self._files[name].write(data, PADDING_BYTES)

    def sync(self, name: str) -> None:
        self._files[name].sync()

    def truncate(self, name: str, size_bytes: int) -> None:
        file = self._files[name]
        file.cut(size_bytes)
        file.sync()

    def trim(self, name: str) -> None:
        self.truncate(name, self._files[name].end)

    def remove(self, name: str) -> None:
        del self._files[name]

    def crash(self, random: Random) -> None:
        """Keep a random prefix of each file's unsynced bytes. Sometimes overwrite one of its sectors with zeros."""
        for file in self._files.values():
            begin = file.synced_end
            end = begin + random.randint(0, file.end - begin)
            file.data[end:] = bytes(max(0, file.synced_bytes - end))
            if end > begin and random.random() < 0.5:
                sector = random.randrange(begin // SECTOR_BYTES, -(-end // SECTOR_BYTES))
                first, last = max(sector * SECTOR_BYTES, begin), min((sector + 1) * SECTOR_BYTES, end)
                file.data[first:last] = bytes(last - first)
            file.end = len(file.data)
            file.sync()
