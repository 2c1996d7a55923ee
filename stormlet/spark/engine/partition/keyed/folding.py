"""Inputs of a keyed bolt that become a state where they are emitted, and are merged as that (law K10).

Theory of operation
-------------------
A bolt with ``merge`` whose outputs nobody takes need not see its inputs one by one. So each task that emits to it
*folds* them: they are executed before the exchange (:mod:`~stormlet.spark.engine.partition.keyed.execution`), and when
they leave, one tuple for each key has what the inputs of that key have made of an empty state. It belongs to the
messages of all (:mod:`~stormlet.spark.engine.partition.merging`). Behind the exchange ``merge`` is called with it, in
the place of ``execute``, in an attempt like any other.

An input that cannot be executed there goes by itself, and so does the only one of its key. Where most keys have only
one there is no use in it, and all inputs that come later go by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from stormlet.model.state.folding import fold
from stormlet.model.state.keyed import KeyedBolt
from stormlet.runtime.bolt.task_state import KeyReader, TaskState
from stormlet.spark.engine.partition.keyed.execution import Execution, Folded, States
from stormlet.spark.engine.partition.merging import CombiningLane, Merging
from stormlet.spark.engine.planning.combiners import Combiner

LEAST_USE: Final = 2
"""Inputs for each key below which there is no use in folding them."""


class Folding(Merging):
    """The inputs of a link, or of one lane, that are folded before they leave."""

    def __init__(self, execution: Execution, producer: int, numbers: Iterator[int]) -> None:
        """See :class:`Merging`."""
        self._execution = execution
        super().__init__(Combiner(execution.key, _never), producer, numbers)

    def _begin(self) -> None:
        super()._begin()
        self._execution.begin()
        self._keys: list[Hashable] = []
        self._folded: list[int] = []
        """The number of inputs that were folded, by place."""

    def learn(self, key: Hashable, lane: CombiningLane) -> int:
        """See :meth:`Merging.learn`."""
        place = super().learn(key, lane)
        if place == len(self._keys):
            self._keys.append(key)
            self._folded.append(0)
        return place

    def places_on(self, lane: CombiningLane, values: Sequence[Any]) -> Sequence[int] | None:
        """See :meth:`Merging.places_on`."""
        return None if self.rests else super().places_on(lane, values)

    def add(self, lane: CombiningLane, value: Any, messages: tuple[int, ...], attempt: int) -> None:
        """See :meth:`Merging.add`."""
        if self.rests:
            lane.ready.append(value, None, messages, attempt)
        else:
            super().add(lane, value, messages, attempt)

    def add_all(self, places: Sequence[int], values: Sequence[Any], messages: Sequence[int]) -> None:
        """See :meth:`Merging.add_all`."""
        left = {*self._fold(places, values)}
        for at in sorted(left):
            self.lane_at(places[at]).ready.append(values[at], None, (messages[at],), 1)
        if left:
            places = [place for at, place in enumerate(places) if at not in left]
            messages = [message for at, message in enumerate(messages) if at not in left]
        self._note_all(places, messages)
        for place in self._without.intersection(places):
            self._has_message(place, messages[places.index(place)])

    def leave(self) -> None:
        """See :meth:`Merging.leave`."""
        self.rests |= sum(self._folded) < LEAST_USE * len(self._folded)
        super().leave()

    def _takes(self, place: int, value: Any, attempt: int) -> bool:
        return attempt == 1 and not self._fold([place], [value])  # a later attempt is to be seen as such

    def _leaving(self, place: int, merged: Any) -> Any:
        return merged if self._folded[place] == 1 else self._execution.leaving(self._keys[place])

    def _fold(self, places: Sequence[int], values: Sequence[Any]) -> Sequence[int]:
        """Fold inputs; return the positions of those that go by themselves."""
        keys, folded = self._keys, self._folded
        left = self._execution.add_all([keys[place] for place in places], values)
        for at, place in enumerate(places):
            if not left or at not in left:
                if not folded[place]:
                    self._values[place] = values[at]
                folded[place] += 1
        return left


def _never(one: object, other: object) -> object:
    raise AssertionError("inputs are folded, and not merged")


class FoldingState(TaskState):
    """The state of a task that is given what was folded on the way to it, beside inputs."""

    others: States
    """The tables for that."""

    def execute_of(self, bolt: Any) -> Callable[..., Any]:
        """Return what is called with each input: ``execute``, or ``merge``."""
        return partial(self._execute, bolt)

    def _execute(self, bolt: KeyedBolt[Any, Any, Any], tup: Any, out: Any) -> object:
        if type(tup.value) is not Folded:
            return bolt.execute(tup, out)
        states: Mapping[str, bytes] = tup.value.states
        for name, state in self.others.items():
            state.tables[0].roll_back()
            state.tables[0].live = {}
            if name in states:
                state.tables[0].take(state.read([states[name]]))
        fold(bolt, {name: state.tables[0] for name, state in self.others.items()})
        return None


def reader_of(read: KeyReader) -> KeyReader:
    """Return a reader of the key of an input, or of what was folded."""

    def reading(value: Any) -> Any:
        return value.key if type(value) is Folded else read(value)

    return reading
