"""The memory that a process may use is the least of what bounds it."""

from pathlib import Path

from elasticq.server.machine import memory_bytes


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_without_control_groups_the_machine_bounds_it(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path) > 1_048_576


def test_group_of_the_process_and_those_around_it_bound_it(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/pods/one\n")
    write(tmp_path, "sys/fs/cgroup/pods/memory.max", "9000000\n")
    write(tmp_path, "sys/fs/cgroup/pods/one/memory.max", "max\n")
    assert memory_bytes(tmp_path) == 9_000_000
    write(tmp_path, "sys/fs/cgroup/pods/one/memory.max", "8000000\n")
    assert memory_bytes(tmp_path) == 8_000_000


def test_version_1_of_control_groups_bounds_it(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "9:cpu:/\n4:memory:/one\n0::/\n")
    write(tmp_path, "sys/fs/cgroup/memory/one/memory.limit_in_bytes", "7000000\n")
    assert memory_bytes(tmp_path) == 7_000_000
