"""Bugs of connectors and of the driver, each planted here and found by the cases that every connector must pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pytest

from stormlet import Failure
from stormlet.connect.driver import settling, spout
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.partitions import Partitions
from stormlet.connect.driver.sink import SinkBolt
from stormlet.connect.driver.spout import SourceSpout
from stormlet.connect.session import DONE, Delivery, Item, Settlement, Written
from stormlet.core.settlement.leases import Due, Leases
from stormlet.core.settlement.prefix import Front, Prefix
from stormlet.core.settlement.receipts import Receipts
from stormlet.errors import NotSettled
from stormlet.testing.brokers.logs import LogSession
from stormlet.testing.brokers.queues import QueueSession
from tests.connect import conformance as cases
from tests.connect.conformance import Case, TwinBench

Plant = Callable[[pytest.MonkeyPatch], None]


class Bug(NamedTuple):
    name: str
    plant: Plant
    profile: str
    found_by: Sequence[Case]


def gives(result: object) -> Callable[..., object]:
    """A method that does nothing but return this."""

    def method(*_: object) -> object:
        return result

    return method


def settled_when_emitted(patch: pytest.MonkeyPatch) -> None:
    """The broker is told when a message is emitted, and not when it is done."""
    honest: Any = SourceSpout.__dict__["next_tuple"]

    def next_tuple(self: SourceSpout[Any], out: Any) -> None:
        honest(self, out)
        holding = self._holding  # pyright: ignore[reportPrivateUsage]
        for id in list(holding.receipts):
            holding.settle(id)

    patch.setattr(SourceSpout, "next_tuple", next_tuple)


def late_fence(patch: pytest.MonkeyPatch) -> None:
    """A partition that was given away goes on being committed."""
    patch.setattr(Prefix, "revoke", gives(None))
    patch.setattr(Partitions, "lose", gives(None))


def fence_first(patch: pytest.MonkeyPatch) -> None:
    """Partitions are given away at once, with what was begun."""

    async def at_once(self: object, ids: object, seconds: float) -> None:
        return

    patch.setattr(Holding, "until_over", at_once)


def acks_of_old_connections(patch: pytest.MonkeyPatch) -> None:
    """Receipts are sent by whatever connection there is."""

    def take(self: Any, id: str) -> Any:
        return self._held.pop(id, (0, None))[1]

    patch.setattr(Receipts, "take", take)
    patch.setattr(SourceSpout, "_lose_connection", gives(None))


def settles_twice(patch: pytest.MonkeyPatch) -> None:
    """A receipt is not taken out when it is used."""
    honest = settling.Settling.done

    def done(self: settling.Settling, receipt: Any) -> None:
        honest(self, receipt)
        honest(self, receipt)

    patch.setattr(settling.Settling, "done", done)


def cancelled_reads(patch: pytest.MonkeyPatch) -> None:
    """A read is cut short when something else is to be done."""
    for kind in (QueueSession, LogSession):
        honest = kind.receive

        async def receive(self: Any, most: int, timeout: float, honest: Any = honest) -> Sequence[Delivery]:  # noqa: ASYNC109
            try:
                return await asyncio.wait_for(honest(self, most, timeout), 0.0009)
            except TimeoutError:
                return []

        patch.setattr(kind, "receive", receive)


def forgotten_commits(patch: pytest.MonkeyPatch) -> None:
    """A commit that the broker refused is taken for done."""

    async def settle(self: LogSession, settlement: Settlement, honest: Any = LogSession.settle) -> int:
        try:
            return int(await honest(self, settlement))
        except NotSettled:
            return 0

    patch.setattr(LogSession, "settle", settle)


def no_renewals(patch: pytest.MonkeyPatch) -> None:
    """Leases run out under trees that take longer."""
    patch.setattr(Leases, "due", gives(Due[str]([], [], [])))
    patch.setattr(Leases, "next_due", gives(None))


def keeps_lost_leases(patch: pytest.MonkeyPatch) -> None:
    """Messages are replayed whose lease is lost."""
    patch.setattr(Holding, "withdraw", gives(None))


def drops_what_it_cannot_read(patch: pytest.MonkeyPatch) -> None:
    """A body that is no record is acked in silence."""

    async def bury(self: Any, id: str, delivery: Delivery, error: Exception) -> None:
        self._holding.done(id)

    patch.setattr(SourceSpout, "_bury", bury)


def front_over_open_ones(patch: pytest.MonkeyPatch) -> None:
    """The last message that is done is committed, whatever is open before it."""

    def settle(self: Any, number: int) -> bool:
        if number < self._first:
            return False
        while self._first <= number:
            self._front = self._order.popleft()
            self._first += 1
        return True

    patch.setattr(Prefix, "settle", settle)


def front_by_plus_one(patch: pytest.MonkeyPatch) -> None:
    """The front waits for positions that do not exist."""

    def to_commit(self: Any, honest: Any = Prefix.__dict__["to_commit"]) -> Front[int] | None:
        front = honest(self)
        return front if front is None or front.position == front.number else None

    patch.setattr(Prefix, "to_commit", to_commit)


def stop_is_a_failure(patch: pytest.MonkeyPatch) -> None:
    """What was read and not begun when the topology stopped is settled as done."""

    patch.setattr(Holding, "give_back", Holding.done)


def buries_twice(patch: pytest.MonkeyPatch) -> None:
    """Dead letters go to the run and to the broker."""
    honest: Any = SourceSpout.__dict__["__init__"]

    def init(self: Any, source: Any) -> None:
        honest(self, source)
        self.buries = True

    patch.setattr(SourceSpout, "__init__", init)


def forgets_failed(patch: pytest.MonkeyPatch) -> None:
    """A message that has failed for good stays with the broker for ever."""

    def fail(self: Any, message_id: object, failure: Failure) -> None: ...

    patch.setattr(SourceSpout, "fail", fail)


def takes_all_for_written(patch: pytest.MonkeyPatch) -> None:
    """A sink acks its inputs whatever the broker has said of them."""
    honest: Any = SinkBolt.__dict__["_write"]

    async def write(self: Any, items: Sequence[Item]) -> Sequence[Written]:
        return [DONE for _ in await honest(self, items)]

    patch.setattr(SinkBolt, "_write", write)


def no_bound(patch: pytest.MonkeyPatch) -> None:
    """It takes whatever there is."""
    patch.setattr(spout.Credit, "left", gives(50))


BUGS: Final = [
    Bug("commit before ack", settled_when_emitted, "kafka", [cases.case_20_others_go_on_while_one_is_stuck]),
    Bug(
        "ack before work", settled_when_emitted, "jetstream", [cases.case_20_others_go_on_while_one_is_stuck]
    ),
    Bug("late fence", late_fence, "kafka", [cases.case_18b_partitions_are_taken_without_a_word]),
    Bug("fence first", fence_first, "kafka", [cases.case_18_partitions_go_from_one_to_another]),
    Bug(
        "ack of an old connection",
        acks_of_old_connections,
        "rabbitmq-4.0",
        [cases.case_09_an_ack_of_an_old_connection_changes_nothing],
    ),
    Bug("settles twice", settles_twice, "rabbitmq-4.0", [cases.case_01_everything_arrives_and_is_acked_once]),
    Bug(
        "cancelled reads",
        cancelled_reads,
        "rabbitmq-4.0",
        [cases.case_10_outcomes_cost_no_message_on_its_way],
    ),
    Bug(
        "cancelled reads of a log",
        cancelled_reads,
        "kafka",
        [cases.case_10_outcomes_cost_no_message_on_its_way],
    ),
    Bug("forgotten commits", forgotten_commits, "kafka", [cases.case_21_a_commit_that_fails_is_tried_again]),
    Bug("no renewals", no_renewals, "jetstream", [cases.case_17_replays_stop_when_the_lease_is_lost]),
    Bug("keeps lost leases", keeps_lost_leases, "sqs", [cases.case_17_replays_stop_when_the_lease_is_lost]),
    Bug(
        "drops the unreadable",
        drops_what_it_cannot_read,
        "redis-7",
        [cases.case_12_what_cannot_be_decoded_is_a_dead_letter],
    ),
    Bug(
        "front over open ones", front_over_open_ones, "kafka", [cases.case_20_others_go_on_while_one_is_stuck]
    ),
    Bug("front by plus one", front_by_plus_one, "kafka", [cases.case_19_offsets_have_gaps]),
    Bug(
        "a stop is a success",
        stop_is_a_failure,
        "jetstream",
        [cases.case_03b_a_stop_gives_back_what_nobody_has_begun],
    ),
    Bug("buries twice", buries_twice, "postgres", [cases.case_11_a_poison_message_is_a_dead_letter_once]),
    Bug(
        "forgets the failed",
        forgets_failed,
        "redis-7",
        [cases.case_11_a_poison_message_is_a_dead_letter_once],
    ),
    Bug(
        "ack before work, and a kill",
        settled_when_emitted,
        "kafka",
        [cases.case_02_a_process_is_killed_at_random_moments],
    ),
    Bug(
        "takes all for written",
        takes_all_for_written,
        "postgres",
        [cases.case_29_what_is_routed_nowhere_is_a_dead_letter],
    ),
    Bug("no bound", no_bound, "kafka", [cases.case_15_a_slow_bolt_takes_no_more_than_it_may]),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case passes without it, and fails with it."""
    bench = TwinBench(bug.profile)
    for case in bug.found_by:
        bench.hold(case)
    bug.plant(monkeypatch)
    for case in bug.found_by:
        with pytest.raises((AssertionError, TimeoutError, RuntimeError)):
            bench.hold(case)
