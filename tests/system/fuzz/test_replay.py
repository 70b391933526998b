"""Every kept input is handled rightly, in each build; a planted fault in what a target tries is found by them."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from elasticq.push.post import DONE
from tests.system.fuzz import corpus, target
from tests.system.fuzz.target import Target, TooExpensive, judge
from tests.system.fuzz.targets import TARGETS


def inputs_of(name: str) -> list[bytes]:
    return [*TARGETS[name].seeds, *corpus.read(name)]


def judge_all(name: str) -> None:
    for data in inputs_of(name):
        judge(TARGETS[name], data)


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_are_handled_rightly(name: str) -> None:
    assert corpus.read(name), "make fuzz, then scripts/fuzz.py --keep"
    for data in inputs_of(name):
        try:
            judge(TARGETS[name], data)
        except Exception as error:
            raise AssertionError(f"target {name}, input {data!r}") from error


def test_files_of_kept_inputs_are_small_and_of_targets() -> None:
    files = sorted(corpus.FOLDER.iterdir())
    assert [file.name for file in files] == sorted(f"{name}.xz" for name in TARGETS)
    assert [file.name for file in files if file.stat().st_size > corpus.FILE_BYTES_MAX] == []


def test_inputs_beyond_what_a_file_may_hold_are_left_out(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "FOLDER", tmp_path / "corpus")
    monkeypatch.setattr(corpus, "FILE_BYTES_MAX", 200)
    assert corpus.read("one") == []
    few = [b"b", b"a", b"a"]
    assert corpus.write("one", few) == 2
    assert corpus.read("one") == [b"a", b"b"]
    many = [bytes((at * step) % 251 for at in range(60)) for step in range(1, 40)]
    assert 0 < corpus.write("one", many) < len(many)
    assert corpus.file_of("one").stat().st_size <= 200


def test_an_input_that_takes_too_long_or_too_much_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(data: bytes) -> None:
        sum(range(1_000_000))

    def hold(data: bytes) -> None:
        held.append(b"x" * (target.resource.getrusage(target.resource.RUSAGE_SELF).ru_maxrss + 10_000) * 1_024)

    held: list[bytes] = []
    judge(Target(count), b"")
    monkeypatch.setattr(target, "CPU_S_MAX", 60)  # a worker with much memory holds as much again
    monkeypatch.setattr(target, "MEMORY_KB_MAX", 1_000)
    with pytest.raises(TooExpensive, match="of memory"):
        judge(Target(hold), b"")
    monkeypatch.setattr(target, "CPU_S_MAX", 0.000_1)
    with pytest.raises(TooExpensive, match="s of CPU"):
        judge(Target(count), b"")


# --- planted faults -----------------------------------------------------------------------


def fails(*arguments: Any, **named: Any) -> Any:
    raise KeyError("planted")


def true(*arguments: Any, **named: Any) -> bool:
    return True


def nothing(*arguments: Any, **named: Any) -> None:
    return None


def changed(change: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What gives back something else than it did."""
    return lambda real: lambda *arguments, **named: change(real(*arguments, **named))


def instead(fault: Any) -> Callable[[Any], Any]:
    return lambda real: fault


def longer(head: Any) -> Any:
    if head is not None:
        head.body_bytes += 1
    return head


def shorter(found: tuple[Any, bytes]) -> tuple[Any, bytes]:
    return found[0], found[1][:-1]


def forget(reader: Any, need: int) -> None:
    reader._need, reader._buffer, reader._at = need, b"", 0


PLANTED: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "head": ("elasticq.http.connection.head", "_HeadTemplate.read", changed(longer)),
    "chunks": ("elasticq.http.connection.chunks", "Chunks._checked_part", instead(lambda self, part: b"")),
    "connection": ("elasticq.wire.json", "_sent_digests", instead(fails)),
    "rest": ("elasticq.rest.routes", "_value", instead(fails)),
    "json": ("elasticq.wire.careful", "decode", changed(lambda command: type(command)())),
    "form": ("elasticq.wire.form", "_unquote", instead(fails)),
    "query": ("elasticq.wire.query", "_integer", changed(lambda number: number + 1)),
    "calls": ("elasticq.wire.query", "_in_order", changed(lambda items: items[::-1])),
    "signature": ("elasticq.wire.sigv4", "_check_payload", instead(fails)),
    "tokens": ("elasticq.engine.stored.identity", "compare_digest", instead(true)),
    "browsers": ("elasticq.wire.browsers", "LOCAL_ENDS", instead({".com": "", ".localhost": ""})),
    "engine": ("elasticq.engine.actions.receive", "receive_message", instead(fails)),
    "filters": ("elasticq.engine.filters.patterns", "Wanted.holds", changed(lambda holds: not holds)),
    "filter_text": ("elasticq.engine.filters.patterns", "_network", instead(fails)),
    "delivery": (
        "elasticq.engine.stored.delivery_policies",
        "DeliveryPolicy._grown_s",
        changed(lambda seconds: seconds + 100),
    ),
    "policy": ("elasticq.engine.policies.evaluation", "_is_named", instead(fails)),
    "frames": ("elasticq.peers.frames", "FrameReader._wait", instead(forget)),
    "messages": ("elasticq.replication.messages", "decode", instead(fails)),
    "handshake": ("elasticq.peers.handshake", "compare_digest", instead(true)),
    "members": ("elasticq.node.node", "Node.receive", instead(fails)),
    "records": ("elasticq.storage.log.records", "_is_torn", instead(fails)),
    "entries": ("elasticq.engine.validation", "_are_equally_long", instead(fails)),
    "log_end": ("elasticq.storage.log.acknowledged_end", "LogEnd.read", instead(nothing)),
    "pages": ("elasticq.storage.rows.pages", "living_priorities", changed(lambda found: dict(list(found.items())[1:]))),
    "snapshot": ("elasticq.storage.snapshot", "check_all", instead(fails)),
    "salvage": ("elasticq.storage.rows.salvage", "_is_contents", instead(fails)),
    "carve": ("elasticq.storage.rows.carve", "_row", changed(shorter)),
    "answers": ("elasticq.push.post", "_outcome_of", instead(lambda status: DONE)),
    "endpoints": ("elasticq.push.addresses", "Guard.check", instead(fails)),
    "toml": ("elasticq.server.settings", "_merge_tables", instead(fails)),
    "hocon": ("elasticq.server.elasticmq", "_seconds", instead(fails)),
    "goaws": ("elasticq.server.goaws", "_topic", instead(fails)),
    "environment": ("elasticq.server.settings", "_split", instead(fails)),
}
"""For each target a module, what of it is replaced, and by what."""


def plant(monkeypatch: pytest.MonkeyPatch, module: str, path: str, fault: Callable[[Any], Any]) -> None:
    owner: Any = import_module(module)
    *names, last = path.split(".")
    for name in names:
        owner = getattr(owner, name)
    monkeypatch.setattr(owner, last, fault(getattr(owner, last)))


@pytest.mark.pure
@pytest.mark.parametrize("name", TARGETS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, *PLANTED[name])
    with pytest.raises((KeyError, AssertionError, TypeError, ValueError, AttributeError)):
        judge_all(name)
