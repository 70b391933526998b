"""The reserve: held while there is space, given up when there is none, made again when it is back."""

import errno
import os
from pathlib import Path

import pytest

from elasticq.storage.log.reserve import Reserve

SIZE_BYTES = 8_192


class Disk:
    """How much the reserve believes to be free."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free_bytes = 100 * SIZE_BYTES
        self._real = os.statvfs("/")
        self._fallocate = os.posix_fallocate
        monkeypatch.setattr(os, "statvfs", self._statvfs)
        monkeypatch.setattr(os, "posix_fallocate", self._allocate)

    def _statvfs(self, path: Path) -> os.statvfs_result:
        values = list(self._real)
        values[1], values[4] = 1, self.free_bytes
        return os.statvfs_result(values)

    def _allocate(self, descriptor: int, offset: int, length: int) -> None:
        if self.free_bytes < length:
            raise OSError(errno.ENOSPC, "no space")
        self._fallocate(descriptor, offset, length)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def reserve(tmp_path: Path, disk: Disk) -> Reserve:
    return Reserve(tmp_path / "reserve", SIZE_BYTES)


def test_it_is_made_at_start_and_kept_over_a_restart(tmp_path: Path, disk: Disk, reserve: Reserve) -> None:
    reserve.start()
    assert (reserve.is_held, reserve.is_full) == (True, False)
    assert (tmp_path / "reserve").stat().st_size == SIZE_BYTES
    disk.free_bytes = SIZE_BYTES * 2
    again = Reserve(tmp_path / "reserve", SIZE_BYTES)
    again.start()
    assert (again.is_held, again.is_full) == (True, False)


def test_without_space_for_it_the_member_starts_full(tmp_path: Path, disk: Disk, reserve: Reserve) -> None:
    disk.free_bytes = SIZE_BYTES - 1
    reserve.start()
    assert (reserve.is_held, reserve.is_full) == (False, True)
    assert not (tmp_path / "reserve").exists()


def test_it_is_given_up_once(tmp_path: Path, reserve: Reserve) -> None:
    reserve.start()
    assert reserve.give_up()
    assert not (tmp_path / "reserve").exists()
    assert not reserve.give_up()
    assert reserve.is_full


def test_it_is_made_again_when_twice_its_size_is_free(disk: Disk, reserve: Reserve) -> None:
    reserve.start()
    reserve.give_up()
    disk.free_bytes = 2 * SIZE_BYTES - 1
    reserve.review()
    assert (reserve.is_held, reserve.is_full) == (False, True)
    disk.free_bytes = 2 * SIZE_BYTES
    reserve.review()
    assert (reserve.is_held, reserve.is_full) == (True, False)


def test_the_disk_counts_as_full_while_the_reserve_is_still_held(disk: Disk, reserve: Reserve) -> None:
    reserve.start()
    disk.free_bytes = SIZE_BYTES - 1
    reserve.review()
    assert (reserve.is_held, reserve.is_full) == (True, True)
    disk.free_bytes = SIZE_BYTES
    reserve.review()
    assert reserve.is_full  # at the edge it stays as it is
    disk.free_bytes = SIZE_BYTES * 2
    reserve.review()
    assert not reserve.is_full
