"""Columns of what passes through a partition together: the streams of its tasks, and the ways from there to later
stages (:mod:`~stormlet.spark.engine.partition.shortcut`).

A column has values, and beside them the *place* of each, which is the number of the input in its batch that it comes
from. A stream chooses the lanes of all values as soon as they are emitted, as a grouping may refuse some. They leave
when all bolts of the partition were called. Where a consumer has a combiner, the keys are what is chosen: each key has
one lane, and is looked up once for the lane and for the value that it is merged into.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, cast

from stormlet.core.groupings import Chooser, Many, One
from stormlet.core.schema import Opaque, Record
from stormlet.core.tuples import PLAIN
from stormlet.runtime.wire.outlets import CheckedOutlet, Outlet, WrappedOutlet
from stormlet.spark.engine.partition.lanes import Lane
from stormlet.spark.engine.partition.merging import CombiningLane, Merging
from stormlet.spark.engine.partition.outlets import Exit

Taker: TypeAlias = Callable[[Sequence[object], Sequence[int]], None]
"""Takes values and their places as inputs."""


class Stream:
    """One stream of one task."""

    def __init__(self, outlet: Outlet, consumers: Sequence[Taker]) -> None:
        """``consumers`` are those in this partition."""
        self._wrappers: list[WrappedOutlet] = []
        while isinstance(outlet, WrappedOutlet):
            self._wrappers.append(outlet)
            outlet = outlet.inner
        self._outlet = outlet
        self._consumers = consumers
        self._ways = [Way(*each) for each in outlet.links] if isinstance(outlet, Exit) else []
        self._values: Sequence[object] = ()
        self._places: Sequence[int] = ()
        self._chosen: Sequence[Sequence[Any]] = ()
        self._first = 0
        self._fitting = set[type]()
        refusing = {type(each).before for each in self._wrappers} - {WrappedOutlet.before}
        self.by_type = refusing <= {CheckedOutlet.before} and isinstance(
            outlet.source.schema, Opaque | Record
        )
        """True if the type of a value says if it fits."""

    def check(self, value: object) -> None:
        """Raise :class:`~stormlet.errors.InvalidEmit` for a value that does not fit."""
        for each in self._wrappers:
            each.before(value)

    def check_all(self, values: Iterable[object]) -> None:
        """The same for all values."""
        if self.by_type and self._fitting.issuperset(map(type, values)):
            return
        for each in values:
            self.check(each)
        self._fitting = {*map(type, values)}

    def take(
        self, values: Sequence[object], places: Sequence[int], first: int
    ) -> Iterable[tuple[int, Exception]]:
        """Emit values; return the places of those that their groupings refuse, each with the reason. ``first`` is the
        root of place 0."""
        refused: dict[int, Exception] = {}
        self._values, self._places, self._first = values, places, first
        self._chosen = [way.choose(values, refused) for way in self._ways]
        ends = {places[at]: at for at in sorted(refused, reverse=True)}
        if ends:  # what their inputs would have emitted after them is not emitted, either
            self._keep([at for at, place in enumerate(places) if at < ends.get(place, len(places))])
        for each in self._consumers:
            each(self._values, self._places)
        self._count()
        return [(place, refused[at]) for place, at in ends.items()]

    def _count(self) -> None:
        reached = [way.count(chosen) for way, chosen in zip(self._ways, self._chosen, strict=True)]
        emitted = len(self._values)
        self._outlet.count(emitted, emitted * len(self._consumers) + sum(reached))
        for wrapper in self._wrappers:
            if type(wrapper) is not CheckedOutlet:
                for value, place in zip(self._values, self._places, strict=True):
                    wrapper.after(value, (self._first + place,))

    def _keep(self, kept: Sequence[int]) -> None:
        self._values = [self._values[at] for at in kept]
        self._places = [self._places[at] for at in kept]
        self._chosen = [[chosen[at] for at in kept] for chosen in self._chosen]

    def leave(self, messages: Sequence[int], failed: Collection[int]) -> None:
        """Let all leave that was emitted, but for the outputs of places that have failed."""
        if failed:
            self._keep([at for at, place in enumerate(self._places) if place not in failed])
        if self._ways and self._values:
            # A range is that of all inputs, each of which has given one output.
            one_each = type(self._places) is range
            of_each = messages if one_each else [*map(list(messages).__getitem__, self._places)]
            for way, chosen in zip(self._ways, self._chosen, strict=True):
                way.leave(chosen, self._values, of_each)
        self._values, self._places, self._chosen = (), (), ()

    def wait(self) -> None:
        """Let all wait that was emitted, for the trees of its inputs."""
        name = self._outlet.source.stream
        for way, chosen in zip(self._ways, self._chosen, strict=False):
            for each, value, place in zip(chosen, self._values, self._places, strict=True):
                for lane in way.lanes_of(each):
                    lane.append(value, name, (self._first + place,), PLAIN)
        self._values, self._places, self._chosen = (), (), ()


class Way:
    """The way from one task to one consumer in a later stage."""

    def __init__(self, chooser: Chooser, lanes: Sequence[Lane]) -> None:
        self._chooser = chooser
        self._lanes = lanes
        self._merging = merging_of(lanes)
        """The values that are merged on it, if the key says the lane."""

    def choose(self, values: Sequence[object], refused: dict[int, Exception]) -> Sequence[Any]:
        """Choose the lane of each value: the place of its key, itself, or several, as :meth:`lanes_of` reads it."""
        places = self._places(values)
        if places is not None:
            return places
        lanes, chooser = self._lanes, self._chooser
        several = chooser.choose if isinstance(chooser, Many) else None
        pick = None if isinstance(chooser, Many) else chooser.pick
        chosen = list[Any]()
        for at, value in enumerate(values):
            try:
                if refused and at in refused:
                    chosen.append(())
                elif pick is not None:
                    chosen.append(lanes[pick(value)])
                elif several is not None:
                    chosen.append([lanes[index] for index in several(value)])
            except Exception as error:
                refused[at] = error
                chosen.append(())
        return chosen

    def _places(self, values: Sequence[object]) -> Sequence[int] | None:
        """The places of the keys of all values; None if they go one by one."""
        if self._merging is None or self._merging.rests:
            self._merging = None
            return None
        try:
            keys = self._merging.keys_of(values)
            with suppress(KeyError):
                return self._merging.places_of(keys)
            for key, value in zip(keys, values, strict=True):
                if not self._merging.knows(key):
                    lane = self._lanes[cast("One", self._chooser).pick(value)]
                    self._merging.learn(key, cast("CombiningLane", lane))
            return self._merging.places_of(keys)
        except Exception:  # each tells by itself, then
            self._merging = None
            return None

    def lanes_of(self, chosen: Any) -> Sequence[Lane]:
        """Return what was chosen for one value."""
        if self._merging is not None:
            return (self._merging.lane_at(chosen),)
        return (chosen,) if isinstance(chosen, Lane) else chosen

    def count(self, chosen: Sequence[Any]) -> int:
        """Return the number of tuples."""
        return sum(map(len, chosen)) if isinstance(self._chooser, Many) else len(chosen)

    def leave(self, chosen: Sequence[Any], values: Sequence[object], messages: Sequence[int]) -> None:
        """Let values leave, each of one message."""
        if self._merging is not None:
            self._merging.add_all(chosen, values, messages)
        elif isinstance(self._chooser, Many) or type(self._lanes[0]) is not Lane:
            for each, value, message in zip(chosen, values, messages, strict=True):
                for lane in self.lanes_of(each):
                    lane.make_ready(value, None, (message,), 1)
        else:
            for lane, value, message in zip(chosen, values, messages, strict=True):
                ready = lane.ready
                ready.values.append(value)
                ready.roots.append(message)


def merging_of(lanes: Sequence[Lane]) -> Merging | None:
    """Return what all these lanes share, if each key has one of them."""
    found = {id(lane.merging): lane.merging for lane in lanes if isinstance(lane, CombiningLane)}
    return next(iter(found.values())) if len(found) == 1 else None
