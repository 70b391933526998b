"""The order to make a new cluster from one member that lost the others. The others must never come back.

The new cluster has all entries of this member's log, committed or not. Entries that a majority without this member
acknowledged are lost. The new cluster has another id, so it refuses members of the old one. It keeps the MAC key, so
receipt handles and message ids stay valid. It continues with a much higher term: the others may have used ids in
terms that this member does not know, and none of them may be used twice.
"""

import os
from collections.abc import Iterable
from contextlib import closing
from itertools import chain
from pathlib import Path

from elasticq.engine.stored.mutations import ClusterFounded, ClusterRenamed, Mutation, decode, encode
from elasticq.replication.records import Durable, Entry, Record, Vote, Voter
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import DataError
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.log.segments import SegmentLog
from elasticq.storage.offline.backup import TERMS_SKIPPED
from elasticq.storage.rows.rows import Rows
from elasticq.storage.sqlite import load


def force_new(path: Path) -> str:
    """Make a new cluster from the member of this data directory; return a report for the operator.

    Raise DataError if the directory cannot be used or belongs to no cluster; OSError if it cannot be written.
    """
    with closing(DataDirectory(path)) as directory, closing(DirectoryFiles(directory.log)) as files:
        log = SegmentLog(files)
        loaded = load(directory, log, Rows())
        durable = loaded.durable
        logged = (mutation for entry in durable.entries for mutation in decode(entry.payload))
        former_id = _cluster_id(chain(loaded.rows, logged))
        if not former_id:
            raise DataError(f"{path} belongs to no cluster yet: start it, there is nothing to be forced")
        cluster_id = os.urandom(16).hex()
        first = _first_entry(durable, directory.member_id, cluster_id)
        log.append(_records(first, directory.member_id))
        log.sync()
    return _told(path, durable, first, former_id, cluster_id)


def _cluster_id(mutations: Iterable[Mutation]) -> str:
    cluster_id = ""
    for mutation in mutations:
        if isinstance(mutation, ClusterFounded | ClusterRenamed):
            cluster_id = mutation.cluster_id
    return cluster_id


def _first_entry(durable: Durable, member_id: str, cluster_id: str) -> Entry:
    """Return the first entry of the new cluster, which makes this member the only voter."""
    last = durable.entries[-1] if durable.entries else durable.base
    term = max(durable.vote.term, last.term) + TERMS_SKIPPED
    payload = encode([ClusterRenamed(cluster_id)])
    return Entry(last.index + 1, term, last.time_ms, payload, (Voter(member_id),))


def _records(first: Entry, member_id: str) -> list[Record]:
    """Return the vote and the entry as one batch: one frame, so a crash leaves both or none."""
    return [Vote(first.term, member_id), first]


def _told(path: Path, durable: Durable, first: Entry, former_id: str, cluster_id: str) -> str:
    return "\n".join(
        [
            f"{path} is a cluster of its own now: {cluster_id}, before it was of {former_id}.",
            f"It has all entries up to index {first.index - 1}, of which {durable.applied_index} are known to be "
            "committed; what the others had beyond that is lost: messages that were acknowledged may be missing, "
            "deleted ones may come back.",
            "Its voter is this member alone. The old members must not come back as they are: empty their data "
            "directories and let them join this one.",
        ]
    )
