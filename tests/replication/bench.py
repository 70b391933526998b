"""One Replica on the bench: messages in by hand, what it wants done laid out."""

from typing import Any

from elasticq.replication.election import Timing
from elasticq.replication.events import BecameMaster, Event
from elasticq.replication.messages import AnyMessage, Append, AppendReply, PreVote, PreVoteReply, RequestVote, VoteReply
from elasticq.replication.records import NOTHING, Durable, Entry, Record, Vote
from elasticq.replication.replica import Replica
from elasticq.replication.seeded_random import SeededRandom

TIMING = Timing(heartbeat_ms=100, election_min_ms=700, election_max_ms=1_400, broken_link_ms=180)


def entry(index: int, term: int, payload: bytes = b"") -> Entry:
    return Entry(index, term, 1_000, payload)


def with_log(*terms: int, term: int | None = None, voted_for: str | None = None) -> Durable:
    """A log whose entries have these terms."""
    newest = max(terms, default=0) if term is None else term
    return Durable(Vote(newest, voted_for), [entry(index, made) for index, made in enumerate(terms, 1)])


class Bench:
    """Member "a" of a, b and c (or of ``voters``); syncs only when told, unless ``syncs``."""

    def __init__(
        self,
        durable: Durable = NOTHING,
        *,
        voters: tuple[str, ...] = ("a", "b", "c"),
        syncs: bool = True,
        is_volatile: bool = False,
        timing: Timing = TIMING,
    ) -> None:
        self.now_ms = 1_000
        self.events: list[Event] = []
        self.syncs = syncs
        self.token = 0
        self.records: list[Record] = []
        self.sent: list[AnyMessage] = []
        self.replica = Replica(
            "a",
            voters,
            durable,
            timing,
            SeededRandom(b"bench"),
            lambda now_ms: (False, 5_000_000 + now_ms),
            is_volatile=is_volatile,
        )
        self.replica.start(self.now_ms)
        self.drain()

    def drain(self) -> list[AnyMessage]:
        """Take what is ready; the messages of this turn. Like a node it asks for the first round of a mastership."""
        self.replica.settle(self.now_ms)
        ready, turn = self.replica.ready, list[AnyMessage]()
        while ready.events or ready.records or ready.messages:
            self.events += ready.events
            if any(type(event) is BecameMaster for event in ready.events):
                self.replica.ask_round(self.now_ms)
            ready.events.clear()
            if ready.records:
                self.token += 1
                self.records += ready.records
                ready.records.clear()
                self.replica.durability.handed_out(self.token, self.replica.log.last_index)
            turn += [message for message, _ in ready.messages]
            ready.messages.clear()
            if self.syncs:
                self.replica.synced(self.token, self.now_ms)
        self.sent += turn
        return turn

    def sync(self) -> list[AnyMessage]:
        self.replica.synced(self.token, self.now_ms)
        return self.drain()

    def tick(self, ms: int = 0) -> list[AnyMessage]:
        self.now_ms += ms
        self.replica.tick(self.now_ms)
        return self.drain()

    def get(self, message: AnyMessage) -> list[AnyMessage]:
        self.replica.receive(message, self.now_ms)
        return self.drain()

    def propose(self, payload: bytes = b"x", time_ms: int | None = None) -> list[AnyMessage]:
        time_ms = self.replica.log.last_time_ms if time_ms is None else time_ms
        self.replica.propose(payload, time_ms, self.now_ms)
        return self.drain()

    @property
    def newest_vote(self) -> Vote:
        return [record for record in self.records if isinstance(record, Vote)][-1]

    # --- messages of the others --------------------------------------------------------

    def _of(self, kind: type[Any], sender: str, term: int, **rest: Any) -> Any:
        return kind(cluster="", group=0, sender=sender, to="a", term=term, **rest)

    def append(
        self, sender: str, term: int, prev: tuple[int, int] = (0, 0), *entries: Entry, commit: int = 0, round_: int = 1
    ) -> list[AnyMessage]:
        """``prev`` is (index, term)."""
        return self.get(
            self._of(
                Append,
                sender,
                term,
                prev_index=prev[0],
                prev_term=prev[1],
                commit_index=commit,
                round=round_,
                time_ms=7_000_000 + self.now_ms,
                entries=list(entries),
            )
        )

    def append_reply(
        self, sender: str, match: int, *, ok: bool = True, term: int | None = None, round_: int | None = None
    ) -> list[AnyMessage]:
        term = self.replica.term if term is None else term
        round_ = self.replica.lease.round if round_ is None else round_
        return self.get(self._of(AppendReply, sender, term, ok=ok, match_index=match, round=round_))

    def pre_vote(self, sender: str, term: int, last: tuple[int, int] = (0, 0)) -> PreVoteReply:
        (reply,) = self.get(self._of(PreVote, sender, term, last_index=last[0], last_term=last[1]))
        return reply

    def pre_vote_reply(self, sender: str, asked_term: int, *, granted: bool = True, term: int = 0) -> list[AnyMessage]:
        return self.get(self._of(PreVoteReply, sender, term, asked_term=asked_term, granted=granted))

    def request_vote(
        self, sender: str, term: int, last: tuple[int, int] = (0, 0), *, transfer: bool = False
    ) -> VoteReply:
        replies = self.get(
            self._of(RequestVote, sender, term, last_index=last[0], last_term=last[1], transfer=transfer)
        )
        (reply,) = [message for message in replies if isinstance(message, VoteReply)]
        return reply

    def vote_reply(self, sender: str, term: int, *, granted: bool = True) -> list[AnyMessage]:
        return self.get(self.vote_of(sender, term, granted=granted))

    def vote_of(self, sender: str, term: int, *, granted: bool = True) -> VoteReply:
        reply: VoteReply = self._of(VoteReply, sender, term, granted=granted, linked=False, time_ms=0)
        return reply

    # --- ways to a role ------------------------------------------------------------------

    def silence(self) -> None:
        """Long enough that nobody has heard a master, not long enough to stand."""
        self.now_ms += TIMING.election_min_ms

    def campaign(self) -> list[AnyMessage]:
        """Stand for election after silence; the RequestVotes."""
        self.tick(TIMING.election_max_ms)
        return self.pre_vote_reply("b", self.replica.term + 1)

    def win(self) -> list[AnyMessage]:
        self.campaign()
        return self.vote_reply("b", self.replica.term)
