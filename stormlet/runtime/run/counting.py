"""The statistics of a run, put together from those of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from stormlet.model.plan import ACKER
from stormlet.model.planning import Link, Plan
from stormlet.model.streams import StreamId
from stormlet.report.statistics import (
    AgedTrees,
    ComponentStatistics,
    EdgeStatistics,
    EpochStatistics,
    LoopStatistics,
    Statistics,
    StreamStatistics,
    of_component,
)
from stormlet.report.steps import Steps, each_of
from stormlet.runtime.acker.task import AckerTask
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.run.loop_probe import LoopProbe
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks

AnyTask = AckerTask | SpoutTask | BoltTask


class Counting:
    """Asks the tasks of one run."""

    def __init__(
        self,
        plan: Plan,
        tasks: Tasks,
        probe: LoopProbe,
        epochs: Callable[[], EpochStatistics] | None,
    ) -> None:
        self._plan = plan
        # Once: a description puts its components together whenever it is asked for them.
        self._outputs = {id: tuple(each.outputs) for id, each in plan.description.components.items()}
        self._tasks = tasks
        self._probe = probe
        self._epochs = epochs

    def statistics(self) -> Steps[Statistics]:
        """Counts since the start; those of one component are of one moment."""
        tasks = self._tasks
        all_tasks: Mapping[str, Sequence[AnyTask]] = {ACKER: tasks.ackers, **tasks.spouts, **tasks.bolts}
        components = yield from each_of(all_tasks.items(), lambda _, each: self._component(each))
        producers: Mapping[str, Sequence[SpoutTask | BoltTask]] = {**tasks.spouts, **tasks.bolts}
        edges: list[EdgeStatistics] = []
        for id, each in producers.items():
            for edge in self._edges(id, each):
                edges.append(edge)
                yield
        return Statistics(
            components,
            None if self._epochs is None else self._epochs(),
            edges=edges,
            loop=self._loop(),
            pending_by_age=self._ages(),
        )

    def _component(self, tasks: Sequence[AnyTask]) -> ComponentStatistics:
        told = self._tasks.connections
        connections = {task.plan.task: told[task.plan.task]() for task in tasks if task.plan.task in told}
        return of_component(
            {task.plan.task: task.statistics() for task in tasks},
            self._tasks.progress,
            connections,
            [_streams(task) for task in tasks],
        )

    def _edges(self, producer: str, tasks: Sequence[SpoutTask | BoltTask]) -> Iterator[EdgeStatistics]:
        for stream in self._outputs[producer]:
            links = self._plan.links[StreamId(producer, stream)]
            targets = [link.targets for link in links]
            delivered = [task.outlets[stream].delivered(targets) for task in tasks]
            for place, link in enumerate(links):
                yield self._edge(stream, link, tasks, sum(each[place] for each in delivered))

    def _edge(
        self, stream: str, link: Link, producers: Sequence[SpoutTask | BoltTask], transferred: int
    ) -> EdgeStatistics:
        inboxes = [task.inbox for task in self._tasks.bolts[link.consumer]]
        return EdgeStatistics(
            producers[0].plan.component,
            stream,
            link.consumer,
            link.grouping.name,
            transferred=transferred,
            queued=sum(len(inbox.items) for inbox in inboxes),
            capacity=sum(inbox.capacity for inbox in inboxes),
            fullest=max(len(inbox.items) / inbox.capacity for inbox in inboxes),
            # One count for all streams between the two, which the tasks of the producer share.
            waited_seconds=producers[0].outbox.waits[inboxes[0]].seconds,
        )

    def _loop(self) -> LoopStatistics | None:
        everyone = (*self._tasks.ackers, *self._tasks.all_spouts, *self._tasks.all_bolts)
        return self._probe.statistics(sum(task.occupation.on_loop for task in everyone))

    def _ages(self) -> Sequence[AgedTrees]:
        # All ackers are told to rotate at the same time; the one that came to it last says the least age.
        shards = zip(*(acker.ages for acker in self._tasks.ackers), strict=True)
        return [AgedTrees(min(age for age, _ in shard), sum(trees for _, trees in shard)) for shard in shards]


def _streams(task: AnyTask) -> Mapping[str, StreamStatistics]:
    if isinstance(task, AckerTask):
        return {}
    return {
        name: StreamStatistics(outlet.emitted, outlet.transferred) for name, outlet in task.outlets.items()
    }
