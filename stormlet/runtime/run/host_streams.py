"""The streams that the host may emit on, and those that it may collect (law C4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from stormlet.errors import InvalidTopology
from stormlet.model.checks.numbers import is_int
from stormlet.model.streams import Stream, StreamId
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.context import Engine
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.outlets import TappedOutlet


class HostStreams:
    """Checks the streams that the host names and leads to their tasks."""

    def __init__(self, engine: Engine, tasks: Tasks, topology: object) -> None:
        self._name = engine.plan.description.name
        self._spouts = engine.plan.description.spouts
        self._collected = engine.collected
        self._tasks = tasks
        self._topology = topology
        self._turns = {component: cycle(each) for component, each in tasks.spouts.items()}

    def named(self, spout: str, name: str) -> Stream[Any]:
        """Return a stream of a spout by its names; raise :class:`~stormlet.errors.InvalidTopology` if there is none."""
        if spout not in self._spouts or name not in self._spouts[spout].outputs:
            known = ", ".join(f"{id!r}" for id in self._spouts)
            raise InvalidTopology(
                f"topology {self._name!r} has no stream {name!r} of a spout {spout!r}; its spouts: {known}"
            )
        outputs = self._spouts[spout].outputs
        return Stream(StreamId(spout, name), outputs[name], outputs, self._topology)

    def spout_for(self, stream: Stream[Any], attempts: int) -> SpoutTask:
        """The task that emits the next message on this stream: each in its turn.

        Raises :class:`~stormlet.errors.InvalidTopology` for a stream that the host cannot emit on, and for
        ``attempts`` below 1.
        """
        _check_stream("emit", stream)
        if stream.topology is not self._topology or stream.component not in self._turns:
            spouts = ", ".join(map(repr, self._tasks.spouts))
            raise InvalidTopology(
                f"{stream.id} is no spout's stream of topology {self._name!r}; emit on one of {spouts}"
            )
        if stream.output.direct:
            raise InvalidTopology(
                f"{stream.id} is declared direct, and the host cannot name a receiver; emit on another"
            )
        if not is_int(attempts, 1):
            raise InvalidTopology(f"emit on {stream.id}: attempts must be an int from 1, not {attempts!r}")
        # In turn and not by load: with one seed a message goes to the same task in every run.
        return next(self._turns[stream.component])

    def tap(self, stream: Stream[Any]) -> dict[int, list[object]]:
        """Have the values of this stream collected; return where, by root.

        Raises :class:`~stormlet.errors.InvalidTopology` for a stream of another topology.
        """
        _check_stream("collect", stream)
        if stream.topology is not self._topology:
            raise InvalidTopology(
                f"{stream.id} cannot be collected: it belongs to another topology than {self._name!r}"
            )
        tasks: Sequence[SpoutTask | BoltTask] = (
            self._tasks.spouts.get(stream.component) or self._tasks.bolts[stream.component]
        )
        # By the run and not by the call, as all trees of a stream share one tap.
        collected = self._collected.setdefault(stream.id, {})
        for task in tasks:
            outlet = task.outlets[stream.name]
            # It stays tapped, as the next message is most often collected from the same stream.
            if not isinstance(outlet, TappedOutlet):
                task.outlets[stream.name] = TappedOutlet(outlet, collected)
        return collected


def _check_stream(what: str, stream: object) -> None:
    if not isinstance(stream, Stream):
        raise InvalidTopology(
            f"{what} needs a stream, as topology.spout(...) and topology.bolt(...) return it, not {stream!r}"
        )
