"""What a consumer knows of its commits, with a client that answers as it is told, on a clock of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from stormlet.connect.address import read_address
from stormlet.connect.kafka import partitions as module
from stormlet.connect.kafka.partitions import OVERDUE, Fronts, Partitions, Place
from stormlet.connect.kafka.settings import Failures
from stormlet.core.settlement.prefix import Front, Prefix

STALE = KafkaError(KafkaError.UNKNOWN_MEMBER_ID)


class Client:
    """A consumer that keeps what it was asked to commit."""

    def __init__(self) -> None:
        self.asked = list[list[TopicPartition]]()

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool = True) -> list[TopicPartition]:
        if asynchronous:
            self.asked.append(offsets)
        return offsets

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        pass

    incremental_assign = incremental_unassign = resume = pause = assign


class Owner:
    """The loop's side, in the same thread."""

    def __init__(self) -> None:
        self.places = list[Place]()

    def assign(self, names: Sequence[str]) -> Sequence[Place]:
        come = [Prefix(name, 1000) for name in names]
        self.places += come
        return come

    def revoke(self, places: Sequence[Place]) -> Fronts:
        return []

    def lose(self, places: Sequence[Place]) -> None:
        pass


class Member:
    """One consumer with the partitions 0 and 1, and the time."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        patch.setattr(module, "monotonic", lambda: self.now)
        self.client, self.owner = Client(), Owner()
        where = read_address("kafka://k1", where="test")
        self.partitions = Partitions(self.owner, Failures(where, ()), from_end=False)
        self.partitions.consumer = self._consumer
        self.partitions.on_assign(self._consumer, [TopicPartition("t", number) for number in (0, 1)])
        self.outcomes = list[Exception | None]()

    @property
    def _consumer(self) -> Any:
        return self.client

    def commit(self, position: int, first: int = 0) -> None:
        fronts = [(place, Front(1, position)) for place in self.owner.places[first:]]
        self.partitions.commit(fronts, self.outcomes.append)

    def answer(self, *errors: KafkaError | None) -> None:
        """Report the last commit: one error of all, or one for each partition."""
        offsets = self.client.asked.pop()
        if len(errors) == 1:
            self.partitions.on_commit(errors[0], offsets)
            return
        reported = [Reported(each, error) for each, error in zip(offsets, errors, strict=True)]
        self.partitions.on_commit(None, reported)  # type: ignore[arg-type]

    def fails(self, *, times: int, every: float) -> None:
        for _ in range(times):
            self.commit(1)
            self.now += every
            self.answer(STALE)


class Reported:
    """A partition as the client reports it: one that a test makes itself cannot have an error."""

    def __init__(self, partition: TopicPartition, error: KafkaError | None) -> None:
        self.topic, self.partition, self.offset = partition.topic, partition.partition, partition.offset
        self.error = error


@pytest.fixture
def member(monkeypatch: pytest.MonkeyPatch) -> Member:
    """A consumer with two partitions."""
    return Member(monkeypatch)


def test_a_commit_without_an_outcome_is_overdue_after_a_while(member: Member) -> None:
    """Until it comes."""
    member.commit(1)
    member.now += OVERDUE
    assert not member.partitions.is_behind
    member.now += 0.01
    assert member.partitions.is_behind
    member.answer(None)
    assert not member.partitions.is_behind
    assert member.outcomes == [None]


def test_commits_that_fail_at_once_are_overdue_too(member: Member) -> None:
    """What is given meanwhile comes twice, just as if there were no outcome."""
    member.fails(times=5, every=0.1)
    assert not member.partitions.is_behind
    member.fails(times=1, every=0.1)
    assert member.partitions.is_behind
    assert not member.partitions.is_committing
    member.commit(2)
    member.answer(None)
    assert not member.partitions.is_behind


def test_time_without_commits_does_not_count(member: Member) -> None:
    """An hour later the first failure is the first."""
    member.commit(1)
    member.answer(None)
    member.now += 3600
    member.fails(times=1, every=0.1)
    assert not member.partitions.is_behind


def test_nothing_is_overdue_of_partitions_that_are_gone(member: Member) -> None:
    """Else the consumer would give nothing more, as there is nothing to commit."""
    for gone in (member.partitions.on_lost, member.partitions.on_revoke):
        member.partitions.on_assign(member.client, [])  # type: ignore[arg-type]
        member.fails(times=6, every=0.1)
        assert member.partitions.is_behind
        number = len(member.partitions.places) - 1
        gone(member.client, [TopicPartition("t", number)])  # type: ignore[arg-type]
        assert not member.partitions.is_behind


def test_one_partition_that_cannot_be_committed_does_not_hold_up_the_others(member: Member) -> None:
    """A topic that was deleted: the group takes its partitions away some time later."""
    for position in range(10):
        member.commit(position)
        member.now += 0.1
        member.answer(None, STALE)
        assert member.outcomes.pop() is not None
        assert not member.partitions.is_behind


def test_such_a_partition_does_not_either_where_the_others_have_nothing_to_commit(member: Member) -> None:
    """It alone is tried again then, until it is taken."""
    member.commit(1)
    member.answer(None, STALE)
    for _ in range(10):
        member.commit(1, first=1)
        member.now += 0.1
        member.answer(STALE)
        assert not member.partitions.is_behind
    member.commit(1, first=1)
    member.answer(None)
    member.commit(2, first=1)
    member.now += OVERDUE + 0.01
    assert member.partitions.is_behind
