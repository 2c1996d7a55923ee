"""Merging: values on the way to another stage whose keys are equal become one.

Theory of operation
-------------------
The one value belongs to the messages of all. It may have come of a million of them, and nobody asks which, unless it is
given up, or acked after several attempts. So it does not carry them along. It names the first, whose options decide how
often it is replayed, and a *group*: a number in the place of all, which the stages to come take for a message like any
other. The members of the groups leave in a row of their own for the driver: for each value that was merged the place of
its key, a byte or two, and its message, of which those that follow one another cost nothing. The driver puts the
messages back in the place of the groups (:func:`~stormlet.spark.engine.passage.reports.opened`). Groups may be members
of others, where what was merged is merged once more.

Where keys have few messages each, groups would cost more than they save. There each value names its messages itself, as
all other tuples do.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from stormlet.spark.engine.partition.lanes import Lane, Tuples
from stormlet.spark.engine.partition.rows import Row
from stormlet.spark.engine.planning.combiners import Combiner

MOST_KEYS: Final = 10_000
"""Keys whose values are merged before all leave."""
MOST_MERGED: Final = 200_000
"""Values that are merged before all leave: of each its message is noted."""
FEW: Final = 4
"""Values for each key up to which they name their messages themselves."""
GROUP: Final = 1 << 62
"""The bit that tells a group from a message."""
TASK_BITS: Final = 40
"""A group is the task that has merged it, shifted by so many bits, plus its number there."""

NOTHING: Final[Any] = object()
"""Stands for the value of a key that has none by now."""


class MergeFailed(Exception):
    """The ``merge`` of the bolt with this task has raised; ``__cause__`` is its exception."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.target = target


class Members(msgspec.Struct, frozen=True):
    """The members of groups whose numbers follow one another."""

    first: int
    """The first of the groups."""
    noted: Sequence[tuple[Sequence[int], Sequence[int]]]
    """Places of groups, counted from the first, and the message of each."""

    @property
    def size(self) -> int:
        """The number of values that were merged."""
        return sum(len(places) for places, _ in self.noted)

    def packed(self) -> bytes:
        """Return all of it."""
        return pickle.dumps((self.first, self.noted), pickle.HIGHEST_PROTOCOL)


def is_group(root: int) -> bool:
    """True for a group, false for a message."""
    return root >= GROUP


def members_in(row: Row, groups: Collection[int]) -> Mapping[int, Sequence[int]]:
    """Return the members of those of these groups that a row names, each once."""
    members = Members(*pickle.loads(row.payload))
    found = dict[int, dict[int, None]]()
    for places, messages in members.noted:
        for place, message in zip(places, messages, strict=True):
            if members.first + place in groups:
                found.setdefault(members.first + place, {})[message] = None
    return {group: tuple(each) for group, each in found.items()}


class Merging:
    """The values of a link, or of one lane, that are merged before they leave. Each key has a *place* in lists of lanes
    and values."""

    rests = False
    """True if all values go by themselves from now on."""

    def __init__(self, combiner: Combiner, producer: int, numbers: Iterator[int]) -> None:
        """``numbers`` are those of new groups of the task ``producer``."""
        self.producer = producer
        self.left: list[Members] = []
        """The members of what has left, which are to leave as well."""
        self._combiner = combiner
        self._numbers = numbers
        self._begin()

    def _begin(self) -> None:
        self._places: dict[Hashable, int] = {}
        self._lanes: list[CombiningLane] = []
        self._values: list[Any] = []
        self._firsts: list[int] = []
        """The first message of each; 0 while it has none."""
        self._without: set[int] = set()
        """The places that have no message yet, and perhaps no value."""
        self._attempts: dict[int, int] = {}
        """The attempts that are not the first, by place."""
        self._noted: list[tuple[Sequence[int], Sequence[int]]] = []
        self._singles: tuple[list[int], list[int]] = ([], [])
        """Places and messages that were noted one by one."""
        self._count = 0

    @property
    def is_full(self) -> bool:
        """True if all should leave, though more may come."""
        return len(self._places) >= MOST_KEYS or self._count >= MOST_MERGED

    def keys_of(self, values: Sequence[Any]) -> Sequence[Hashable]:
        """Return the keys of values."""
        key = self._combiner.key
        return values if key is None else list(map(key, values))

    def places_of(self, keys: Iterable[Hashable]) -> Sequence[int]:
        """Return the places of keys. Raise :class:`KeyError` if one is unknown."""
        return list(map(self._places.__getitem__, keys))

    def places_on(self, lane: CombiningLane, values: Sequence[Any]) -> Sequence[int] | None:
        """Return the places of the keys of values that leave on this lane; None if one cannot be looked up."""
        try:
            return [self.learn(key, lane) for key in self.keys_of(values)]
        except TypeError:
            return None

    def knows(self, key: Hashable) -> bool:
        """True if a key has its place."""
        return key in self._places

    def learn(self, key: Hashable, lane: CombiningLane) -> int:
        """Return the place of a key; what is merged there leaves on this lane if the key is new."""
        place = self._places.setdefault(key, len(self._lanes))
        if place == len(self._lanes):
            self._lanes.append(lane)
            self._values.append(NOTHING)
            self._firsts.append(0)
            self._without.add(place)
        return place

    def lane_at(self, place: int) -> CombiningLane:
        """Return the lane on which the value of a place leaves."""
        return self._lanes[place]

    def add(self, lane: CombiningLane, value: Any, messages: tuple[int, ...], attempt: int) -> None:
        """Merge one value. Raise :class:`MergeFailed`."""
        try:
            place = self.learn(self._combiner.key_of(value), lane)
        except TypeError:  # such a key is sent as often as it comes
            lane.ready.append(value, None, messages, attempt)
            return
        if not self._takes(place, value, attempt):
            lane.ready.append(value, None, messages, attempt)
            return
        if messages:
            self._has_message(place, messages[0])
        self._singles[0].extend([place] * len(messages))
        self._singles[1].extend(messages)
        if attempt > self._attempts.get(place, 1):
            self._attempts[place] = attempt
        self._count += 1

    def add_all(self, places: Sequence[int], values: Sequence[Any], messages: Sequence[int]) -> None:
        """Merge values, each of one message, at these places. Raise :class:`MergeFailed`."""
        self._count += len(values)
        self._noted.append((self._short(places), _short_messages(messages)))
        if self._without and not self._without.isdisjoint(places):
            for place, value, message in zip(places, values, messages, strict=True):
                self._merge(place, value)
                self._has_message(place, message)
            return
        merged, merge, place = self._values, self._combiner.merge, 0
        try:
            for place, value in zip(places, values, strict=True):
                merged[place] = merge(merged[place], value)
        except Exception as error:
            raise MergeFailed(self._lanes[place].target) from error

    def _note_all(self, places: Sequence[int], messages: Sequence[int]) -> None:
        """Note the messages of values that were merged at these places."""
        self._count += len(places)
        self._noted.append((self._short(places), _short_messages(messages)))

    def _takes(self, place: int, value: Any, attempt: int) -> bool:
        """Merge a value; return False if it goes by itself."""
        self._merge(place, value)
        return True

    def _leaving(self, place: int, merged: Any) -> Any:
        """Return the value that leaves in the place of all of a key."""
        return merged

    def leave(self) -> None:
        """Have all leave."""
        self._noted.append(self._singles)
        few = self._count <= FEW * len(self._lanes)
        all_messages = self._listed() if few else self._grouped()
        for place, (lane, value) in enumerate(zip(self._lanes, self._values, strict=True)):
            if value is not NOTHING:
                lane.ready.append(
                    self._leaving(place, value), None, all_messages[place], self._attempts.get(place, 1)
                )
                lane.due = True
        self._begin()

    def _listed(self) -> Sequence[tuple[int, ...]]:
        """The messages of each place."""
        found = [dict[int, None]() for _ in self._lanes]
        for places, messages in self._noted:
            for place, message in zip(places, messages, strict=True):
                found[place][message] = None
        return [*map(tuple, found)]

    def _grouped(self) -> Sequence[tuple[int, ...]]:
        """The first message and the group of each place."""
        base = GROUP + (self.producer << TASK_BITS)
        groups = [base + number for number in islice(self._numbers, len(self._lanes))]
        self.left.append(Members(groups[0], self._noted))
        return [(first, group) if first else () for first, group in zip(self._firsts, groups, strict=True)]

    def _merge(self, place: int, value: Any) -> None:
        before = self._values[place]
        try:
            self._values[place] = value if before is NOTHING else self._combiner.merge(before, value)
        except Exception as error:
            raise MergeFailed(self._lanes[place].target) from error

    def _has_message(self, place: int, message: int) -> None:
        if place in self._without:
            self._without.remove(place)
            self._firsts[place] = message

    def _short(self, places: Sequence[int]) -> Sequence[int]:
        keys = len(self._lanes)
        return bytes(places) if keys <= 1 << 8 else array("H" if keys <= 1 << 16 else "I", places)


def _short_messages(messages: Sequence[int]) -> Sequence[int]:
    return messages if type(messages) is range else array("Q", messages)


class CombiningLane(Lane):
    """A lane on which values with equal keys become one. That one belongs to the messages of all."""

    __slots__ = ("due", "merging")

    def __init__(
        self, producer: int, target: int, streams: Sequence[str], merging: Merging, *, sorts: bool
    ) -> None:
        super().__init__(producer, target, streams, sorts=sorts)
        self.merging = merging
        self.due = False
        """True if what was merged must leave now, however little it is."""

    def make_ready(self, value: Any, stream: str | None, messages: tuple[int, ...], attempt: int) -> None:
        """See :meth:`Lane.make_ready`. Raise :class:`MergeFailed`."""
        self.merging.add(self, value, messages, attempt)

    def make_all_ready(self, tuples: Tuples, messages: Sequence[int]) -> None:
        """See :meth:`Lane.make_all_ready`."""
        values, attempts = tuples.values, tuples.attempts
        places = None if attempts or 0 in messages else self.merging.places_on(self, values)
        if places is not None:
            self.merging.add_all(places, values, messages)
            return
        for position, (value, message) in enumerate(zip(values, messages, strict=True)):
            self.make_ready(value, None, (message,) if message else (), attempts.get(position, 1))

    def chunks(self, least: int) -> Iterator[dict[str, Any]]:
        """As of any lane; what is merged leaves at the end, or when it is too much."""
        if least == 1 or self.merging.is_full:
            self.merging.leave()
        due, self.due = self.due, False
        yield from super().chunks(1 if due else least)
