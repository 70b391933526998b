"""A member's simulated disk: real record bytes, synced late, and torn by a crash.

The same contract as a storage: records are appended under a token, and the
token counts when a sync that began after the append is over. A crash keeps
what was synced and a random byte prefix of the rest, of which one 512-byte
sector of the last record may read as zeros (pages persist in any order).
"""

from random import Random

from elasticq.replication.records import Durable, Entry, Record, Truncation, Vote
from elasticq.storage.records import FIRST_CRC, SECTOR_BYTES, crc_of, encode_record, scan

SYNC_MIN_US, SYNC_USUAL_US, SYNC_MAX_US = 200, 1_500, 30_000
SYNC_STALL_US, SYNC_STALL_SHARE = 100_000, 0.003
SLOW_DISK_FACTOR = 8


class DurableView:
    """What the synced records say, kept current record by record (the checkers ask it at each step)."""

    def __init__(self) -> None:
        self.vote = Vote(0, None)
        self.entries: dict[int, Entry] = {}
        self.last_index = 0

    def take(self, record: Record) -> None:
        match record:
            case Entry():
                self.entries[record.index] = record
                self.last_index = record.index
            case Truncation():
                for index in range(record.index, self.last_index + 1):
                    self.entries.pop(index, None)
                self.last_index = min(self.last_index, record.index - 1)
            case Vote():
                self.vote = record

    def has(self, index: int, term: int) -> bool:
        entry = self.entries.get(index)
        return entry is not None and entry.term == term


class Disk:
    """One file of records. ``sync_us`` draws how long the next sync takes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.synced = bytearray()
        self.view = DurableView()
        self.unsynced: list[tuple[Record, bytes, int]] = []  # record, its bytes, token
        self.crc = FIRST_CRC
        self.token = 0  # of the newest append
        self.is_slow = False

    def append(self, records: list[Record], token: int) -> None:
        for record in records:
            encoded = encode_record(record, self.crc)
            self.crc = crc_of(encoded)
            self.unsynced.append((record, encoded, token))
        self.token = token

    def sync_us(self) -> int:
        """200 us to 30 ms, most about 1 ms; rarely a stall of 100 ms."""
        random = self.random.random()
        if random < SYNC_STALL_SHARE:
            return SYNC_STALL_US
        duration_us = min(SYNC_MAX_US, SYNC_MIN_US + int(self.random.expovariate(1 / SYNC_USUAL_US)))
        return duration_us * SLOW_DISK_FACTOR if self.is_slow else duration_us

    def sync(self, count: int) -> None:
        """The first ``count`` unsynced records (those appended when the sync began) are durable now."""
        for record, encoded, _ in self.unsynced[:count]:
            self.synced += encoded
            self.view.take(record)
        del self.unsynced[:count]

    def crash(self) -> None:
        """Lose what a power cut loses."""
        lost = b"".join(encoded for _, encoded, _ in self.unsynced)
        kept = bytearray(lost[: self.random.randint(0, len(lost))])
        self._lose_sector(kept)
        self.synced += kept
        self.unsynced = []

    def _lose_sector(self, kept: bytearray) -> None:
        """Zero one sector of the last record that was kept, now and then."""
        if not kept or self.random.random() < 0.5:
            return
        base, last = len(self.synced), self._start_of_last(len(kept))
        sector = self.random.randrange((base + last) // SECTOR_BYTES, -(-(base + len(kept)) // SECTOR_BYTES))
        start = max(sector * SECTOR_BYTES - base, last)
        end = min((sector + 1) * SECTOR_BYTES - base, len(kept))
        kept[start:end] = bytes(end - start)

    def _start_of_last(self, kept_bytes: int) -> int:
        start = 0
        for _, encoded, _ in self.unsynced:
            if start + len(encoded) >= kept_bytes:
                break
            start += len(encoded)
        return start

    def load(self) -> Durable:
        """Read the file as a starting member does: a torn tail is cut, damage must not happen here."""
        found = scan(bytes(self.synced))
        assert not found.damaged, "a crash leaves a torn tail, never damage"
        del self.synced[found.valid_bytes :]
        self.crc, self.token, self.unsynced = found.crc, 0, []
        self.view = DurableView()
        for record in found.records:
            self.view.take(record)
        entries = [self.view.entries[index] for index in range(1, self.view.last_index + 1)]
        return Durable(self.view.vote, entries)
