"""What may become of the rows between two stages: each fault is one that the ledger must show."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from stormlet import BasicBolt, Collector, Stream, Topology, Tuple
from stormlet.spark.engine.partition.rows import Row, packed, unpacked
from stormlet.spark.engine.planning.numbering import Place
from tests.cast import Join, ignore
from tests.spark.engine.twin import Twin, twin

Again: TypeAlias = Callable[[], Sequence[Row]]


@dataclass
class OneFault:
    """Does something to the rows of one partition, or to one of them."""

    kind: str
    random: Random
    done: bool = False
    hit: set[int] = field(default_factory=set[int])
    """The roots of all messages in the rows that were lost, doubled or altered; 0 for tuples that belong to none."""

    def __call__(self, place: Place, rows: Sequence[Row], again: Again) -> Sequence[Row]:
        """Change the rows, if it is their turn."""
        if self.done or not rows or (place.stage < 1 and self.random.random() < 0.7):
            return rows
        changed = WAYS[self.kind](list(rows), self.random, again)
        before, after = Counter(rows), Counter(changed)
        self.done = before != after  # their order alone changes nothing
        for row in [*(before - after), *(after - before)]:
            self.hit |= {*unpacked(row.roots)} | ({0} if 0 in unpacked(row.counts) else set[int]())
        return changed


def _drop(rows: list[Row], random: Random, again: Again) -> list[Row]:
    del rows[random.randrange(len(rows))]
    return rows


def _drop_all(rows: list[Row], random: Random, again: Again) -> list[Row]:
    return []


def _double(rows: list[Row], random: Random, again: Again) -> list[Row]:
    return [*rows, random.choice(rows)]


def _triple(rows: list[Row], random: Random, again: Again) -> list[Row]:
    return [*rows, *[random.choice(rows)] * 2]


def _exchange(rows: list[Row], random: Random, again: Again) -> list[Row]:
    """One is lost, and another comes twice."""
    lost = random.randrange(len(rows))
    return [rows[(lost + 1) % len(rows)] if at == lost else row for at, row in enumerate(rows)]


def _alter(rows: list[Row], random: Random, again: Again) -> list[Row]:
    """One value is another, and all numbers are the same."""
    at = random.randrange(len(rows))
    values, streams = pickle.loads(rows[at].payload)
    values[random.randrange(len(values))] = -1
    rows[at] = replace(rows[at], payload=pickle.dumps((values, streams), pickle.HIGHEST_PROTOCOL))
    return rows


def _other_root(rows: list[Row], random: Random, again: Again) -> list[Row]:
    """A value belongs to another message."""
    rooted = [at for at, row in enumerate(rows) if row.roots]
    if not rooted:
        return rows
    at = random.choice(rooted)
    roots = unpacked(rows[at].roots)
    roots[random.randrange(len(roots))] ^= 1
    rows[at] = replace(rows[at], roots=packed(roots))
    return rows


def _misaddress(rows: list[Row], random: Random, again: Again) -> list[Row]:
    """One comes to another partition of its stage, for the task that it was meant for or for the one there."""
    at = random.randrange(len(rows))
    others = [row for row in rows if row.stage == rows[at].stage and row.partition != rows[at].partition]
    if others:
        other = random.choice(others)
        target = random.choice([rows[at].target, other.target])
        rows[at] = replace(rows[at], partition=other.partition, target=target)
    return rows


def _mix(rows: list[Row], random: Random, again: Again) -> list[Row]:
    """What some partitions read is another attempt's."""
    second = again()
    places = sorted({(row.stage, row.partition) for row in [*rows, *second]})
    of_second = set(random.sample(places, random.randint(1, len(places))))
    return [
        row
        for attempt, rows_ in enumerate((rows, second))
        for row in rows_
        if ((row.stage, row.partition) in of_second) is bool(attempt)
    ]


WAYS: Final[dict[str, Callable[[list[Row], Random, Again], list[Row]]]] = {
    "drop": _drop,
    "drop all": _drop_all,
    "double": _double,
    "triple": _triple,
    "exchange": _exchange,
    "alter": _alter,
    "other root": _other_root,
    "misaddress": _misaddress,
    "mix": _mix,
}


class Chance(BasicBolt[int, int]):
    """Emits something else at each attempt of Spark's."""

    def __init__(self, random: Random, *, values_only: bool) -> None:
        self.random = random
        self.values_only = values_only

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        for _ in range(1 if self.values_only else self.random.randint(0, 2)):
            out.emit(self.random.randrange(1000, 1_000_000))


def by_hundred(value: int) -> int:
    """Return a key that a bolt of chance does not change."""
    return value // 1_000_000


def topology(random: Random) -> Topology:
    """Return a topology of several stages, with a bolt of chance and a join."""
    topology = Topology("faults")
    source: Stream[Any] = topology.spout("source", range(random.randint(4, 40)))
    chance: Stream[Any] = topology.bolt(
        "chance",
        partial(Chance, random, values_only=random.random() < 0.5),
        source.fields(),
        parallelism=random.randint(1, 3),
        outputs=int,
    )
    key = random.choice([by_hundred, lambda value: value])
    joined = topology.bolt(
        "join", Join, chance.fields(key), source.fields(), parallelism=random.randint(1, 3)
    )
    topology.bolt("end", ignore, joined.fields(str), chance.all(), parallelism=2)
    return topology


def faulty(kind: str, seed: int) -> Twin | None:
    """Run with one fault of this kind; None if the run gave no chance for it."""
    random = Random(f"{kind}/{seed}")
    fault = OneFault(kind, random)
    run = twin(topology(random), spouts=random.randint(1, 3), seed=seed, fault=fault)
    return run if fault.done else None
