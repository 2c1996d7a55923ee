"""Routes that tuples take through each grouping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stormlet import BasicBolt, Collector, Stream, Subscription, TaskContext, Topology, Tuple
from tests.engines import Engine

Routes = Mapping[int, list[object]]


Grouped = Callable[[Stream[Any]], Subscription[Any]]


def noting(routes: dict[int, list[object]]) -> type[BasicBolt[object, object]]:
    """A bolt that notes its values, by task id."""

    class Note(BasicBolt[object, object]):
        def prepare(self, context: TaskContext) -> None:
            self.task = context.task
            routes[self.task] = []

        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            routes[self.task].append(tup.value)

    return Note


async def routes_of(
    engine: Engine,
    values: Sequence[object],
    grouped: Grouped,
    *,
    tasks: int = 4,
    seed: int = 0,
    outputs: object = None,
) -> Routes:
    """Which task got which values of one spout."""
    routes: dict[int, list[object]] = {}
    topology = Topology("routes")
    stream = topology.spout("values", values, outputs=outputs)
    topology.bolt("note", noting(routes), grouped(stream), parallelism=tasks)
    running = await engine.run_to_end(topology, seed=seed)
    assert running.statistics().components["values"].acked == len(values)
    return routes


def tasks_of(routes: Routes, value: object) -> list[int]:
    """The tasks that got a value."""
    return [task for task, values in routes.items() if value in values]
