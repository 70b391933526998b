"""Discarded entries are on the disk, for people to read."""

import json
from pathlib import Path

from elasticq.engine.stored import mutations as m
from elasticq.model.commands import MessageAttributeValue
from elasticq.replication.records import Entry
from elasticq.storage.rows.discarded import Discarded


def lost(index: int, term: int, *mutations: m.Mutation) -> Entry:
    return Entry(index, term, 1_000, m.encode(list(mutations)), None, True)


def test_discarded_entries_are_a_line_each_in_the_file_of_their_term(tmp_path: Path) -> None:
    discarded = Discarded(tmp_path / "discarded")
    attributes = {"b": MessageAttributeValue("Binary", binary_value=b"\xff")}
    sent = m.MessageStored(1, 2, "text äöü", 7, "sender", attributes=attributes)
    discarded.append([lost(5, 3, sent), lost(6, 3), lost(7, 4, m.MessagesRemoved(1, [9]))])
    discarded.append([lost(8, 4)])
    assert discarded.count == Discarded(tmp_path / "discarded").count == 4
    lines = [json.loads(line) for line in (tmp_path / "discarded" / "3.jsonl").read_text().splitlines()]
    assert [(line["index"], line["term"], line["time_ms"]) for line in lines] == [(5, 3, 1_000), (6, 3, 1_000)]
    (told,) = lines[0]["mutations"]
    assert (told["mutation"], told["sequence"], told["body"]) == ("MessageStored", 2, "text äöü")
    assert len((tmp_path / "discarded" / "4.jsonl").read_text().splitlines()) == 2


def test_nothing_discarded_makes_no_directory(tmp_path: Path) -> None:
    discarded = Discarded(tmp_path / "discarded")
    discarded.append([])
    assert (discarded.count, list(tmp_path.iterdir())) == (0, [])


def test_torn_line_of_a_crash_is_cut(tmp_path: Path) -> None:
    Discarded(tmp_path / "discarded").append([lost(5, 3)])
    file = tmp_path / "discarded" / "3.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"index":6,"te')
    discarded = Discarded(tmp_path / "discarded")
    assert (discarded.count, file.read_bytes()) == (1, whole)
    discarded.append([lost(6, 3)])
    assert Discarded(tmp_path / "discarded").count == 2
