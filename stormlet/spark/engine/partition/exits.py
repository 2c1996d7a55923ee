"""The way out of a partition: tuples for other stages, from their emit until they are rows.

A tuple leaves when each tree in this partition that it belongs to has its outcome, and after those that were emitted
before it for the same task: as in process, none overtakes another. Of an attempt that failed nothing leaves, as the
input is executed again here, or given up. A tuple of several trees leaves with those that were acked: to drop it would
lose it for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from random import Random
from typing import Any, cast

from stormlet.spark.engine.partition.account import Account
from stormlet.spark.engine.partition.keyed.execution import Execution
from stormlet.spark.engine.partition.keyed.folding import Folding
from stormlet.spark.engine.partition.lanes import Lane, MessagesOf
from stormlet.spark.engine.partition.merging import CombiningLane, Members, Merging
from stormlet.spark.engine.partition.rows import CHUNK, Kind, Row
from stormlet.spark.engine.planning.combiners import Combiner
from stormlet.spark.engine.planning.numbering import Place


class Exits:
    """All ways out of one partition."""

    def __init__(self, places: Mapping[int, Place], account: Account, random: Random, driver: Place) -> None:
        """``places`` are those of the tasks in later stages."""
        self._places = places
        self._account = account
        self._randbytes = random.randbytes
        self._lanes: dict[tuple[int, int], Lane] = {}
        self._numbers: dict[int, int] = {}
        self._driver = driver
        self._mergings: list[Merging] = []
        self._groups = count(1)

    def leads_to(self, task: int) -> bool:
        """True if this task is in a later stage."""
        return task in self._places

    def lane(
        self, producer: int, target: int, streams: Sequence[str], merging: Merging | None, *, sorts: bool
    ) -> Lane:
        """Return the way between two tasks, of which ``streams`` are all streams of the producer that may come."""
        lane = self._lanes.get((producer, target))
        if lane is None:
            if merging is None:
                lane = Lane(producer, target, streams, sorts=sorts)
            else:
                lane = CombiningLane(producer, target, streams, merging, sorts=sorts)
            self._lanes[producer, target] = lane
        return lane

    def merging(self, combiner: Combiner | Execution, producer: int) -> Merging:
        """Return a place in which values of a task are merged."""
        made = Merging if isinstance(combiner, Combiner) else Folding
        merging = made(cast("Any", combiner), producer, self._groups)
        self._mergings.append(merging)
        return merging

    @property
    def waiting(self) -> bool:
        """True if tuples wait for the outcomes of their trees."""
        return any(lane.waiting.values for lane in self._lanes.values())

    def drop_waiting(self) -> None:
        """Forget all tuples that wait: what they come of is undone."""
        for lane in self._lanes.values():
            lane.take()

    def release(self, messages_of: MessagesOf) -> None:
        """Let those tuples leave whose trees have their outcomes."""
        for lane in self._lanes.values():
            if lane.waiting.values:
                lane.let_go(messages_of)

    def release_all(self, first: int, messages: Sequence[int], messages_of: MessagesOf) -> None:
        """Let all tuples leave: the trees from this root on were acked, and have a message each."""
        for lane in self._lanes.values():
            if not lane.waiting.values:
                continue
            if min(lane.waiting.roots) >= first:
                waiting = lane.take()
                lane.make_all_ready(waiting, [messages[root - first] for root in waiting.roots])
            else:
                lane.let_go(messages_of)

    def full(self) -> Iterator[Row]:
        """Iterate over chunks that are full."""
        return self._rows(CHUNK)

    def rest(self) -> Iterator[Row]:
        """Iterate over all chunks that are left."""
        return self._rows(1)

    def _rows(self, least: int) -> Iterator[Row]:
        for lane in self._lanes.values():
            for fields in lane.chunks(least):
                yield self._row(lane, fields)
        for merging in self._mergings:
            left, merging.left = merging.left, []
            for each in left:
                yield self._row_of(merging.producer, each)

    def _row_of(self, producer: int, members: Members) -> Row:
        row = Row(
            Kind.MEMBERS,
            self._driver.stage,
            self._driver.partition,
            producer=producer,
            number=self._next(producer),
            size=members.size,
            payload=members.packed(),
        )
        return self._account.wrote(row)

    def _next(self, producer: int) -> int:
        number = self._numbers[producer] = self._numbers.get(producer, 0) + 1
        return number

    def _row(self, lane: Lane, fields: dict[str, Any]) -> Row:
        place, producer = self._places[lane.target], lane.producer
        words = self._randbytes(8 * fields["size"])
        row = Row(
            Kind.CHUNK,
            place.stage,
            place.partition,
            target=lane.target,
            producer=producer,
            number=self._next(producer),
            words=words,
            **fields,
        )
        self._account.wrote(row)
        return row
