"""Bugs planted in connectors and in the driver, and how many seeds it takes until one is found:
``python -m tests.connect.planted_bugs --seeds 300``. The exit code is 1 if one was missed."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import pytest

from stormlet import Failure, is_compiled
from stormlet.connect.driver import reading, settling
from stormlet.connect.driver.burying import Burying
from stormlet.connect.driver.held import Held, Unreadable
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.partitions import Partitions
from stormlet.connect.driver.serving import Serving
from stormlet.connect.driver.sink import SinkBolt
from stormlet.connect.driver.spout import SourceSpout
from stormlet.connect.session import DONE, Delivery, Item, Settlement, Written
from stormlet.core.settlement.credit import Credit
from stormlet.core.settlement.leases import Due, Leases
from stormlet.core.settlement.prefix import Front, Prefix
from stormlet.core.settlement.receipts import Receipts
from stormlet.errors import NotSettled
from stormlet.testing.brokers.logs import LogSession
from stormlet.testing.brokers.queues import QueueSession
from tests.connect.seeds import run

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]

PATIENCE: Final = 1500.0
"""Seconds of simulated time after which a consumer is taken to be stuck."""


def gives(result: object) -> Callable[..., object]:
    """A method that does nothing but return this."""

    def method(*_: object) -> object:
        return result

    return method


def settled_when_emitted(patch: Patch) -> None:
    """The broker is told when a message is emitted, and not when it is done."""
    honest: Any = SourceSpout.__dict__["next_tuple"]

    def next_tuple(self: SourceSpout[Any], out: Any) -> None:
        honest(self, out)
        holding = self._holding  # pyright: ignore[reportPrivateUsage]
        for id in list(holding.receipts):
            holding.done(id)

    patch.setattr(SourceSpout, "next_tuple", next_tuple)


def looks_all_the_time(patch: Patch) -> None:
    """A read that waits looks each two milliseconds."""
    patch.setattr(reading, "RECEIVE", 0.002)


def one_by_one(patch: Patch) -> None:
    """Each message is asked for alone."""

    def left(self: Credit, pending: int, buffered: int, size: int) -> int:
        return int(not buffered)

    patch.setattr(Credit, "left", left)


def late_fence(patch: Patch) -> None:
    """A partition that was given away goes on being committed."""
    patch.setattr(Prefix, "revoke", gives(None))
    patch.setattr(Partitions, "lose", gives(None))


def fence_first(patch: Patch) -> None:
    """Partitions are given away at once, with what was begun."""

    async def at_once(self: object, ids: object, seconds: float) -> None:
        return

    patch.setattr(Holding, "until_over", at_once)


def acks_of_old_connections(patch: Patch) -> None:
    """Receipts are sent by whatever connection there is."""

    def take(self: Any, id: str) -> Any:
        return self._held.pop(id, None) or self._old.pop(id, None)

    patch.setattr(Receipts, "take", take)
    patch.setattr(Serving, "_lose", gives(None))


def settles_twice(patch: Patch) -> None:
    """A receipt is not taken out when it is used."""
    honest = settling.Settling.done

    def done(self: settling.Settling, receipt: Any) -> None:
        honest(self, receipt)
        honest(self, receipt)

    patch.setattr(settling.Settling, "done", done)


def cancelled_reads(patch: Patch) -> None:
    """A read is cut short when something else is to be done."""
    for kind in (QueueSession, LogSession):
        honest = kind.receive

        async def receive(self: Any, most: int, timeout: float, honest: Any = honest) -> Sequence[Delivery]:  # noqa: ASYNC109
            try:
                return await asyncio.wait_for(honest(self, most, timeout), 0.0009)
            except TimeoutError:
                return []

        patch.setattr(kind, "receive", receive)


def forgotten_commits(patch: Patch) -> None:
    """A commit that the broker refused is taken for done."""

    async def settle(self: LogSession, settlement: Settlement, honest: Any = LogSession.settle) -> int:
        try:
            return int(await honest(self, settlement))
        except NotSettled:
            return 0

    patch.setattr(LogSession, "settle", settle)


def no_renewals(patch: Patch) -> None:
    """Leases run out under trees that take longer."""
    patch.setattr(Leases, "due", gives(Due([], [], [])))
    patch.setattr(Leases, "next_due", gives(None))


def keeps_lost_leases(patch: Patch) -> None:
    """Messages are replayed whose lease is lost."""
    patch.setattr(Holding, "withdraw", gives(None))


def drops_what_it_cannot_read(patch: Patch) -> None:
    """A body that is no record is acked in silence."""

    def begin(self: Any, held: Held) -> None:
        self._holding.done(held.id)

    patch.setattr(Burying, "_begin", begin)


def front_over_open_ones(patch: Patch) -> None:
    """The last message that is done is committed, whatever is open before it."""

    def settle(self: Any, number: int) -> bool:
        if number < self._first:
            return False
        while self._first <= number:
            self._front = self._order.popleft()
            self._first += 1
        return True

    patch.setattr(Prefix, "settle", settle)


def front_by_plus_one(patch: Patch) -> None:
    """The front waits for positions that do not exist."""

    def to_commit(self: Any, honest: Any = Prefix.__dict__["to_commit"]) -> Front | None:
        front = honest(self)
        return front if front is None or front.position == front.number else None

    patch.setattr(Prefix, "to_commit", to_commit)


def stop_is_a_failure(patch: Patch) -> None:
    """What was read and not begun when the topology stopped is settled as done."""

    patch.setattr(Holding, "give_back", Holding.done)


def buries_twice(patch: Patch) -> None:
    """Dead letters go to the run and to the broker."""
    honest: Any = SourceSpout.__dict__["__init__"]

    def init(self: Any, source: Any) -> None:
        honest(self, source)
        self.buries = True

    patch.setattr(SourceSpout, "__init__", init)


def forgets_failed(patch: Patch) -> None:
    """A message that has failed for good stays with the broker for ever."""

    def fail(self: Any, message_id: object, failure: Failure) -> None: ...

    patch.setattr(SourceSpout, "fail", fail)


def takes_all_for_written(patch: Patch) -> None:
    """A sink acks its inputs whatever the broker has said of them."""
    honest: Any = SinkBolt.__dict__["_write"]

    async def write(self: Any, items: Sequence[Item]) -> Sequence[Written]:
        return [DONE for _ in await honest(self, items)]

    patch.setattr(SinkBolt, "_write", write)


def no_bound(patch: Patch) -> None:
    """It takes whatever there is."""
    patch.setattr(Credit, "left", gives(50))


def what_is_given_away_is_begun(patch: Patch) -> None:
    """What comes of a partition that is about to be given away is begun."""
    patch.setattr(Partitions, "is_given_away", lambda self, place: place.is_revoked)


def late_renewals(patch: Patch) -> None:
    """Leases are renewed when they have just run out."""
    hold = Leases.hold

    def late(self: Any, receipt: Any, now: float) -> None:
        hold(self, receipt, now)
        self._leases[receipt].ends += self.seconds
        self._leases[receipt].due = now + 1.1 * self.seconds

    patch.setattr(Leases, "hold", late)


def credit_is_not_given_back(patch: Patch) -> None:
    """What is withdrawn counts for ever among what is held."""
    withdraw, left, gone = Holding.withdraw, Credit.left, list[str]()

    def counting(self: Any, ids: Iterable[str]) -> None:
        before = self._status.withdrawn
        withdraw(self, ids)
        gone.extend([""] * (self._status.withdrawn - before))

    def less(self: Any, *held: int) -> int:
        return max(0, left(self, *held) - len(gone))

    patch.setattr(Holding, "withdraw", counting)
    patch.setattr(Credit, "left", less)


def acked_before_it_is_buried(patch: Patch) -> None:
    """The broker is told of a dead letter that is not written yet."""
    bury: Any = Burying.__dict__["_bury"]

    async def late(self: Any, held: Held, unreadable: Unreadable) -> None:
        self._holding.give_up(held.id, str(unreadable.error))
        await bury(self, held, unreadable)

    patch.setattr(Burying, "_bury", late)


def the_last_settlement_is_not_awaited(patch: Patch) -> None:
    """The connection is closed while the broker does not know all that is done."""
    close: Any = SourceSpout.__dict__["close"]

    async def at_once(self: Any) -> None:
        self._settling.told = asyncio.Event()
        self._settling.told.set()
        await close(self)

    patch.setattr(SourceSpout, "close", at_once)


def redeliveries_have_no_key(patch: Patch) -> None:
    """A message that adopts another receipt is of no key from then on."""
    add = Holding.add

    def keyless(self: Any, held: Held) -> bool:
        is_new = add(self, held)
        if not is_new:
            held.key = None
        return is_new

    patch.setattr(Holding, "add", keyless)


class Sought(NamedTuple):
    """A bug that seeds must bring to light at this twin."""

    plant: Plant
    profile: str
    first: int = 0
    """The seed with which the short form begins."""


SOUGHT: Final = [
    Sought(settled_when_emitted, "kafka"),
    Sought(settled_when_emitted, "redis-7"),
    Sought(late_fence, "kafka"),
    Sought(fence_first, "kafka", 25),
    Sought(what_is_given_away_is_begun, "kafka", 25),
    Sought(acks_of_old_connections, "rabbitmq-4.0"),
    Sought(settles_twice, "rabbitmq-4.0"),
    Sought(front_over_open_ones, "kafka"),
    Sought(forgotten_commits, "kafka", 25),
    Sought(stop_is_a_failure, "jetstream"),
    Sought(late_renewals, "jetstream"),
    Sought(credit_is_not_given_back, "rabbitmq-4.0"),
    Sought(acked_before_it_is_buried, "redis-7"),
    Sought(buries_twice, "postgres"),
    Sought(the_last_settlement_is_not_awaited, "kafka", 15),
    Sought(redeliveries_have_no_key, "redis-7"),
]


def found_by(sought: Sought, seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first of these seeds that brings it to light, and what was wrong; None if none does."""
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            sought.plant(patch)
            found = run(sought.profile, seed, PATIENCE)
        if found is not None:
            misfits = [error for error in ("TypeError", "AttributeError") if error in found]
            assert not misfits, f"the bug does not fit the code any more: {found}"
            return seed, found.strip().splitlines()[-1]
    return None


def main() -> int:
    """Plant one bug after another. The exit code is 1 if one was missed."""
    parser = argparse.ArgumentParser(description="Bugs of connectors, found by seeds.")
    parser.add_argument("--seeds", type=int, default=300)
    seeds = parser.parse_args().seeds
    if is_compiled():
        parser.error("nothing can be planted in compiled modules; set STORMLET_COMPILED=0")
    logging.disable()
    missed = 0
    for sought in SOUGHT:
        found = found_by(sought, range(seeds))
        missed += found is None
        said = f"not in {seeds} seeds" if found is None else f"in {found[0] + 1} seeds: {found[1]}"
        print(f"{sought.plant.__name__} at {sought.profile}: {said}"[:160], flush=True)
    print(f"{len(SOUGHT)} bugs, {missed} missed")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
