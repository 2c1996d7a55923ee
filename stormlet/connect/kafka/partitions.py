"""The partitions that a consumer has: given and taken away, paused, committed. All of it in the thread that polls.

Theory of operation
-------------------
*Commits are asynchronous.* A synchronous one holds up the thread, for 45 s when the broker is gone, until the group has
given this member up. The client brings an asynchronous one to a broker that comes back. One that fails in a rebalance
is told again by the driver, with what has been settled since.

*A partition that is given away is drained first and fenced second.* The callback of the revocation waits for the loop
to drain it, then commits synchronously, then lets go. Meanwhile nobody polls, so that no report of a commit could
come: those under way are given up, and others are refused until it is over. They are all told again.

*A broker does not fence.* It takes commits for partitions that were given away. So a partition is an object here, which
is gone from :attr:`Partitions.places` from the moment at which it is not ours, and only what is in there is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from stormlet.connect.kafka.settings import Failures, logger
from stormlet.core.settlement.prefix import Front, Prefix
from stormlet.core.shortened import counted
from stormlet.errors import ConnectionLost, NotSettled

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

Place: TypeAlias = Prefix
"""A partition. Positions are offsets that may be committed: one more than that of the message."""
Fronts: TypeAlias = Sequence[tuple[Place, Front]]
Reported: TypeAlias = Callable[[Exception | None], None]
"""Called once with the outcome of a commit."""
Name: TypeAlias = tuple[str, int]

OVERDUE: Final = 0.5
"""Seconds without a commit that succeeded, while some are tried, after which the broker or our membership in the group
may be gone; the client knows later."""
TIMEOUT: Final = 5.0
"""Seconds of a question to the broker for which the thread waits."""


class Owner(Protocol):
    """The loop's side. The thread may call all of it, and waits for the answers."""

    def assign(self, names: Sequence[str]) -> Sequence[Place]:
        """Partitions have come."""
        ...

    def revoke(self, places: Sequence[Place]) -> Fronts:
        """Drain these; return what is to be committed of them."""
        ...

    def lose(self, places: Sequence[Place]) -> None:
        """These are gone."""
        ...


class Partitions:
    """The partitions of one consumer, by topic and number."""

    def __init__(self, owner: Owner, failures: Failures, *, from_end: bool) -> None:
        """``from_end``: a group that has committed nothing of a partition begins at its end."""
        self.consumer: Consumer
        self.places: dict[Name, Place] = {}
        self.taken = set[Name]()
        """Partitions that were taken away; whoever polls clears it."""
        self.closing = False
        """True at the end, when everything is committed and the loop does not wait for partitions any more."""
        self._owner = owner
        self._failures = failures
        self._from_end = from_end
        self._names: dict[Place, Name] = {}
        self._paused = set[Place]()
        self._held = False
        self._revoking = False
        self._commits: dict[frozenset[tuple[str, int, int]], Reported] = {}
        self._behind_since: float | None = None
        self._refused = set[Name]()
        """Partitions whose commits are refused while those of others are taken, as of a topic that was deleted."""
        self._delivered: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}
        self._ends: dict[Place, int] = {}

    # Given and taken away: the callbacks of the consumer.

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Partitions have come."""
        if self.closing:
            return
        self._note(partitions)
        begun = self._begun(partitions) if self._from_end else []
        consumer.incremental_assign(partitions)
        if begun:  # else another owner might begin at a later end, and pass over what came in between
            consumer.commit(offsets=begun, asynchronous=False)
        # It may have been paused when it was here before.
        (consumer.pause if self._held else consumer.resume)(partitions)

    def take(self, partitions: list[TopicPartition]) -> None:
        """Have these for good, without a group that gives and takes."""
        self._note(partitions)
        self.consumer.assign(partitions)

    def _note(self, partitions: Iterable[TopicPartition]) -> None:
        names = [(each.topic, each.partition) for each in partitions]
        new = self._owner.assign([f"{topic}[{number}]" for topic, number in names])
        self.places.update(zip(names, new, strict=True))
        self._names.update(zip(new, names, strict=True))

    def _begun(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Have partitions of which nothing is committed begin at their end; return these."""
        consumer = self.consumer
        by_name = {(each.topic, each.partition): each for each in partitions}
        begun = [each for each in consumer.committed(list(by_name.values()), TIMEOUT) if each.offset < 0]
        for each in begun:
            each.offset = consumer.get_watermark_offsets(each, TIMEOUT)[1]
            by_name[each.topic, each.partition].offset = each.offset
        return begun

    def on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Partitions are about to be given to somebody else."""
        places = self._those_of(partitions)
        if not self.closing and places:
            self.give_up_commits()
            self._revoking = True
            try:
                fronts = self._owner.revoke(places)
                self._commit_last(fronts)
            finally:
                self._revoking = False
        self._forget(places)
        consumer.incremental_unassign(partitions)

    def _commit_last(self, fronts: Fronts) -> None:
        from confluent_kafka import KafkaException

        offsets = self._offsets(fronts)
        if not offsets:
            return
        try:
            done = self.consumer.commit(offsets=offsets, asynchronous=False)
            errors = [each.error for each in done if each.error is not None]
        except KafkaException as exception:
            errors = [exception.args[0]]
        if errors:
            logger.warning(
                "%s given away without a last commit, so that some messages come twice: %s",
                counted(len(offsets), "partition was", "partitions were"),
                self._failures.words(errors[0]),
            )

    def on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Partitions belong to somebody else already."""
        places = self._those_of(partitions)
        self._forget(places)
        if not self.closing:
            self._owner.lose(places)
        consumer.incremental_unassign(partitions)

    def _those_of(self, partitions: Iterable[TopicPartition]) -> list[Place]:
        names = ((each.topic, each.partition) for each in partitions)
        return [self.places[name] for name in names if name in self.places]

    def _forget(self, places: Iterable[Place]) -> None:
        self._behind_since = None  # perhaps there is nothing more to commit
        for place in places:
            name = self._names.pop(place)
            del self.places[name]
            self.taken.add(name)
            self._refused.discard(name)
            self._paused.discard(place)
            for table in (self._delivered, self._committed, self._ends):
                table.pop(place, None)

    # Pausing.

    def pause(self, places: Collection[Place]) -> None:
        """Receive nothing more of these."""
        self._paused.update(place for place in places if place in self._names)
        self.consumer.pause(self._partitions(places))

    def resume(self, places: Collection[Place]) -> None:
        """Receive messages of these again."""
        self._paused.difference_update(places)
        if not self._held:
            self.consumer.resume(self._partitions(places))

    def hold(self, held: bool) -> None:
        """Pause all partitions, or resume all but those that were paused one by one."""
        if held is not self._held:
            self._held = held
            others = [place for place in self._names if place not in self._paused]
            (self.consumer.pause if held else self.consumer.resume)(self._partitions(others))

    @property
    def is_held(self) -> bool:
        """True while all partitions are paused."""
        return self._held

    def _partitions(self, places: Iterable[Place]) -> list[TopicPartition]:
        from confluent_kafka import TopicPartition

        return [TopicPartition(*self._names[place]) for place in places if place in self._names]

    # Committing.

    @property
    def is_committing(self) -> bool:
        """True while the outcome of a commit has not come; it comes by polling."""
        return bool(self._commits)

    @property
    def is_behind(self) -> bool:
        """True while a commit that succeeds is overdue, whether those that were tried failed or have no outcome."""
        since = self._behind_since
        return since is not None and monotonic() - since > OVERDUE

    def commit(self, fronts: Fronts, reported: Reported) -> None:
        """Commit what is still ours of these."""
        from confluent_kafka import KafkaException

        if self._revoking:
            reported(NotSettled("partitions are being given away"))
            return
        offsets = self._offsets(fronts)
        if not offsets:
            reported(None)
            return
        if self._behind_since is None and not self._refused.issuperset(map(_name, offsets)):
            self._behind_since = monotonic()
        try:
            self.consumer.commit(offsets=offsets)
        except KafkaException as exception:
            reported(NotSettled(self._failures.words(exception.args[0])))
        else:
            self._commits[_key(offsets)] = reported

    def _offsets(self, fronts: Fronts) -> list[TopicPartition]:
        from confluent_kafka import TopicPartition

        ours = ((self._names[place], front) for place, front in fronts if place in self._names)
        return [TopicPartition(topic, number, front.position) for (topic, number), front in ours]

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """The outcome of a commit has come: the callback of the consumer."""
        reported = self._commits.pop(_key(partitions), None)
        if reported is None:  # it was given up
            return
        refused = [each for each in partitions if each.error is not None]
        if error is None and len(refused) < len(partitions):
            self._behind_since = None
            self._refused.difference_update(map(_name, partitions))
            self._refused.update(map(_name, refused))
        error = error or next((each.error for each in refused), None)
        if error is None:
            self._failures.is_up()
            for place, each in zip(self._those_of(partitions), partitions, strict=False):
                self._committed[place] = each.offset
            reported(None)
        elif error.fatal() or "AUTHORIZATION" in error.name():
            reported(ConnectionLost(self._failures.words(error)))
        else:  # a rebalance, or the coordinator of the group is about to change
            reported(NotSettled(self._failures.words(error)))

    def give_up_commits(self) -> None:
        """Nothing will be known of the commits that are under way."""
        commits, self._commits = self._commits, {}
        for reported in commits.values():
            reported(NotSettled("the outcome is not known"))

    # Lag.

    def delivered(self, positions: Mapping[Place, int]) -> None:
        """Messages were read, up to these positions."""
        self._delivered.update(positions)

    def reached_end(self, name: Name, position: int) -> None:
        """There is nothing behind this position. It lies behind the last message also where that is followed by the
        marker of a transaction, which takes a position, too."""
        if name in self.places:
            self._ends[self.places[name]] = position

    def lag(self) -> Mapping[str, int]:
        """Return the messages of each partition that are not committed."""
        from confluent_kafka import KafkaException

        try:
            self._ask_for_committed()
            return {place.name: self._lag_of(place) for place in self._names}
        except KafkaException:  # the broker is not there now
            return {}

    def _ask_for_committed(self) -> None:
        unknown = [place for place in self._names if place not in self._committed]
        if unknown:
            found = self.consumer.committed(self._partitions(unknown), TIMEOUT)
            self._committed.update(zip(unknown, (each.offset for each in found), strict=True))

    def _lag_of(self, place: Place) -> int:
        (partition,) = self._partitions([place])
        low, high = self.consumer.get_watermark_offsets(partition, cached=True)
        # What is paused is not fetched, and nothing is known of it.
        if high < 0 or self._held or place in self._paused:
            low, high = self.consumer.get_watermark_offsets(partition, TIMEOUT)
        committed = self._committed[place]
        if committed < 0:
            committed = low
        if self._delivered.get(place, committed) == committed:
            committed = max(committed, self._ends.get(place, 0))
        return max(0, high - committed)


def _name(partition: TopicPartition) -> Name:
    return partition.topic, partition.partition


def _key(partitions: Iterable[TopicPartition]) -> frozenset[tuple[str, int, int]]:
    return frozenset((each.topic, each.partition, each.offset) for each in partitions)
