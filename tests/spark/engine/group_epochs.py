"""Epochs with keyed state without Spark: what they have written stays by epoch, as in the checkpoint of a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stormlet import Collector, KeyedBolt, ListOf, MapOf, Topology, Tuple, Value
from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.spark.engine.partition.keyed.carried import keyed_places, rows_with, shapes_of
from stormlet.spark.engine.partition.keyed.groups import GroupId, blob_in, by_state, id_of
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.planning.numbering import Place, StatePlan, number
from stormlet.spark.engine.stream.written import Written, after, hashes_of, ids_of, to_write_again, written_by
from tests.spark.engine.keyed_flows import Item, States
from tests.spark.engine.twin import Twin, twin

TTL = 100.0
PAUSE = 60.0


class Everything(KeyedBolt[str, Item, str]):
    """Has a state of each kind and a timer; forgets some of it where the place is divisible by 3."""

    total = Value(int, 0)
    places = ListOf(int)
    thirds = MapOf(int, int)
    brief = Value(int, 0, ttl=TTL)
    calls = Value(int, 0)

    def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
        """Change all of it."""
        place = tup.value.place
        if place % 3 == 0:
            del self.total, self.places, self.thirds
        else:
            self.total += 1
            self.places.append(place)
            self.thirds[place % 3] = place
        self.brief += 1
        self.set_timer(self.now + PAUSE)

    def on_timer(self, at: float, out: Collector[str]) -> None:
        """Count the call."""
        self.calls += 1


class Model:
    """The same as plain dicts."""

    def __init__(self) -> None:
        self.total: dict[str, int] = {}
        self.places: dict[str, list[int]] = {}
        self.thirds: dict[str, dict[int, int]] = {}
        self.brief: dict[str, tuple[int, float]] = {}
        self.calls: dict[str, int] = {}
        self.timers: set[tuple[str, float]] = set()

    def epoch(self, items: Sequence[Item], now: float) -> None:
        """One epoch."""
        for item in items:
            key, place = item.word, item.place
            if place % 3 == 0:
                for each in (self.total, self.places, self.thirds):
                    each.pop(key, None)
            else:
                self.total[key] = self.total.get(key, 0) + 1
                self.places.setdefault(key, []).append(place)
                self.thirds.setdefault(key, {})[place % 3] = place
            self.brief[key] = self._brief(key, now) + 1, now
            self.timers.add((key, now + PAUSE))
        for key, at in sorted(self.timers):
            if at <= now:
                self.calls[key] = self.calls.get(key, 0) + 1
                self.timers.remove((key, at))

    def _brief(self, key: str, now: float) -> int:
        count, written = self.brief.get(key, (0, 0.0))
        return count if written + TTL > now else 0

    def states(self, now: float) -> States:
        """What there is at a time."""
        brief = {key: count for key in self.brief if (count := self._brief(key, now))}
        found = {
            "total": self.total,
            "places": self.places,
            "thirds": self.thirds,
            "brief": brief,
            "calls": self.calls,
        }
        return {f"count.{name}": dict(each) for name, each in found.items() if each}


class Epochs:
    """Those of one stream."""

    def __init__(self, logic: Any = Everything) -> None:
        self._logic = logic
        self._places: dict[str, Sequence[Place]] = {}
        self.files: dict[int, list[Row]] = {}
        """The rows that each epoch has written, as long as some of them count."""
        self.kept: Sequence[Written] = ()
        self.now = 0.0

    def topology(self, tasks: int) -> Topology:
        """One keyed bolt."""
        topology = Topology("keyed", replay_delay=0.001)
        source = topology.spout("items", [Item("", 0)], outputs=Item)
        topology.bolt("count", self._logic, source.fields("word"), parallelism=tasks, outputs=str)
        return topology

    @property
    def all_rows(self) -> list[Row]:
        """All that is in the files."""
        return [row for rows in self.files.values() for row in rows if row.kind == Kind.KEYED]

    @property
    def living(self) -> list[Row]:
        """The rows that count."""
        named = ids_of(self.kept)
        return [row for row in self.all_rows if (id_of(row), row.size) in named]

    def epoch(
        self,
        items: Sequence[Item],
        now: float = 0.0,
        tasks: int = 2,
        *,
        opens_all: bool = False,
        spoil: Callable[[list[Row]], list[Row]] = list,
    ) -> set[GroupId]:
        """Execute one; return the groups that it has written. ``spoil`` changes the rows that it begins with."""
        self.now = now
        topology, number_ = self.topology(tasks), max(self.files, default=-1) + 1
        plan = StatePlan(now, number_, to_write_again(self.kept), opens_all)
        description, configurations = topology.describe().configured(topology.configuration, "run")
        cluster = number(description, configurations, {"items": 2}, in_epochs=True)
        states, moves = spoil(self.all_rows), self._places not in ({}, keyed_places(cluster))
        if moves:
            states = [*rows_with(cluster, by_state(map(blob_in, self.living)), shapes_of(description))]
        done = twin(topology, {"items": items}, states=states, state=plan)
        done.states = states if moves else self.living
        self._check(done)
        written = _hashes(done.written)
        self.kept = after(() if moves else self.kept, written_by(number_, {}, written))
        self.files[number_] = done.written
        for epoch in {*self.files} - {each.epoch for each in self.kept} - {number_}:
            del self.files[epoch]
        self._places = dict(keyed_places(cluster))
        assert hashes_of(self.kept) == _xor(self.living)
        return {*written}

    def _check(self, done: Twin) -> None:
        """Compare what was read with what the record names, as the driver does."""
        assert done.differences == []

    def states(self) -> States:
        """All keyed state."""
        blobs, found = by_state(map(blob_in, self.living)), dict[str, dict[Any, Any]]()
        for spec in self.topology(1).describe().bolts.values():
            for name, declared in spec.states.items():
                state = State(StateId(spec.id, name), declared)
                state.load(blobs.get(state.id, ()))
                state.tell(self.now)
                if items := dict(state.tables[0].committed_items()):
                    found[str(state.id)] = items
        found.pop("count.on_timer", None)
        return found


def _hashes(rows: Sequence[Row]) -> dict[GroupId, int]:
    found: dict[GroupId, int] = {}
    for row in rows:
        if row.kind == Kind.KEYED:
            found[id_of(row)] = found.get(id_of(row), 0) ^ row.hash
    return found


def _xor(rows: Sequence[Row]) -> int:
    found = 0
    for row in rows:
        found ^= row.hash
    return found
