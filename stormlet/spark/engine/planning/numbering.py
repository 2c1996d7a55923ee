"""The tasks of a topology on Spark: their ids, and the stage and partition of each.

Tasks are numbered as those of a run in process are (:mod:`stormlet.model.planning`), with the parallelism that the
layout gives them. So ``fields`` chooses the same task, by its index, on both engines, unless the bolt is fused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum

import msgspec

from stormlet.core.schema import Schema
from stormlet.model.configuration import Configuration
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.plan import TaskPlan
from stormlet.model.planning import Link, Plan, plan
from stormlet.model.streams import Output, StreamId
from stormlet.spark.engine.planning.layout import Layout, lay_out


class Place(msgspec.Struct, frozen=True):
    """One partition of one stage; the driver is the only partition of the stage after the last."""

    stage: int
    partition: int


class Span(Enum):
    """The part of a run that one passage through the stages is."""

    WHOLE = "whole"
    """All of a batch: bolts begin without state, and finish."""
    EPOCH = "epoch"
    """Neither the beginning nor the end: bolts are given the state that they had, and leave theirs."""
    LAST = "last"
    """As an epoch, and bolts finish."""


class StatePlan(msgspec.Struct, frozen=True):
    """The part of one passage in keyed state (:mod:`stormlet.spark.engine.partition.keyed.groups`)."""

    now: float = 0.0
    """The time for its bolts, in seconds since 1970: a run, or an epoch, is a moment to them (law K6)."""
    epoch: int = 0
    """The number of the epoch, by which its groups are told from those of others."""
    rewritten: frozenset[int] = frozenset()
    """The epochs whose groups are written again though nothing changes in them."""
    opens_all: bool = True
    """True if all of it is decoded, and not only what is needed: what cannot be shows in the first passage of a run
    then (law K5)."""


class ClusterPlan(msgspec.Struct, frozen=True):
    """The plan of a run on Spark."""

    plan: Plan
    """All tasks, and links to all of them."""
    layout: Layout
    configurations: Mapping[str, Configuration]
    """By component."""
    partitions: Sequence[int]
    """The number of partitions of each stage, the driver included."""
    places: Mapping[int, Place]
    """By task id."""
    span: Span = Span.WHOLE
    replays_in_stage: bool = True
    """False if an input that fails is given up at once, as its message is replayed from its source."""
    state: StatePlan = StatePlan()

    @property
    def end(self) -> str:
        """The end of a passage for its bolts, in words."""
        if self.span is not Span.EPOCH:
            return "its bolt had finished"
        return "its epoch had ended" if self.replays_in_stage else "its pass over all stages had ended"

    @property
    def keeps_groups(self) -> bool:
        """True if its key groups are read by later epochs."""
        return self.span is Span.EPOCH and any(each.keyed for each in self.plan.description.bolts.values())

    @property
    def driver(self) -> Place:
        """The place of what runs in the driver."""
        return Place(len(self.layout.stages), 0)

    def tasks_at(self, place: Place) -> Sequence[TaskPlan]:
        """Return the tasks of one partition, the producers before their consumers."""
        here = [
            task for tasks in self.plan.tasks.values() for task in tasks if self.places[task.task] == place
        ]
        order = [id for group in self.plan.order for id in group]
        return sorted(here, key=lambda task: order.index(task.component))

    def places_after(self, place: Place) -> Mapping[int, Place]:
        """Return the places of the tasks in later stages, by task id."""
        return {task: at for task, at in self.places.items() if at.stage > place.stage}

    def partitions_of(self, components: Iterable[str]) -> Collection[Place]:
        """Return the places of all tasks of these components."""
        return {self.places[task.task] for id in components for task in self.plan.tasks[id]}

    def component_of(self, task: int) -> str:
        """Return the component of a task."""
        return next(id for id, tasks in self.plan.tasks.items() if tasks[0].task <= task <= tasks[-1].task)

    def outputs_of(self, component: str) -> Mapping[str, Output]:
        """Return the streams that a component declares."""
        return self.plan.description.components[component].outputs

    def schema(self, stream: StreamId) -> Schema:
        """Return the schema of a stream."""
        return self.outputs_of(stream.component)[stream.stream].schema

    def links_from(self, place: Place) -> Mapping[StreamId, Sequence[Link]]:
        """Return the links of the components at one place, by stream: to all tasks of a consumer that begins in a later
        stage, and to the task at the same place of one that is fused."""
        components = dict.fromkeys(task.component for task in self.tasks_at(place))
        return {
            stream: [self._at(link, place) for link in links]
            for stream, links in self.plan.links.items()
            if stream.component in components
        }

    def _at(self, link: Link, place: Place) -> Link:
        if self.layout.stage_of(link.consumer) != place.stage:
            return link
        return msgspec.structs.replace(
            link, targets=[task for task in link.targets if self.places[task] == place]
        )


def number(
    description: Description,
    configurations: Mapping[str, Configuration],
    spouts: Mapping[str, int],
    *,
    in_epochs: bool = False,
    replays_in_stage: bool = True,
    state: StatePlan | None = None,
) -> ClusterPlan:
    """Number the tasks of a topology whose ``spouts`` have so many partitions each; ``in_epochs`` is true where its
    messages come in several passages."""
    layout = lay_out(description, in_epochs=in_epochs)
    sized = _sized(description, layout, spouts)
    planned = plan(sized, configurations, state_survives=in_epochs)
    partitions, places = list[int](), dict[int, Place]()
    for stage in layout.stages:
        first = _first_partitions(stage.heads, sized)
        partitions.append(sum(sized.components[head].parallelism for head in stage.heads))
        for id in (*stage.heads, *stage.fused):
            here = [
                first[head] + index
                for head in layout.heads[id]
                for index in range(sized.components[head].parallelism)
            ]
            for task, partition in zip(planned.tasks[id], here, strict=True):
                places[task.task] = Place(stage.number, partition)
    for id in layout.driver:
        places[planned.tasks[id][0].task] = Place(len(layout.stages), 0)
    span = Span.EPOCH if in_epochs else Span.WHOLE
    return ClusterPlan(
        planned,
        layout,
        configurations,
        [*partitions, 1],
        places,
        span,
        replays_in_stage,
        state or StatePlan(),
    )


def _sized(description: Description, layout: Layout, spouts: Mapping[str, int]) -> Description:
    """Return the description with the parallelism that the layout gives to spouts and fused bolts."""
    parallelism = {id: spouts.get(id, each.parallelism) for id, each in description.components.items()}
    for stage in layout.stages:
        for id in stage.fused:
            parallelism[id] = sum(parallelism[head] for head in layout.heads[id])
    return msgspec.structs.replace(
        description,
        spouts={id: _with(each, parallelism[id]) for id, each in description.spouts.items()},
        bolts={id: _with_bolt(each, parallelism[id]) for id, each in description.bolts.items()},
    )


def _with(spout: SpoutSpec, parallelism: int) -> SpoutSpec:
    return msgspec.structs.replace(spout, parallelism=parallelism)


def _with_bolt(bolt: BoltSpec, parallelism: int) -> BoltSpec:
    return msgspec.structs.replace(bolt, parallelism=parallelism)


def _first_partitions(heads: Sequence[str], description: Description) -> Mapping[str, int]:
    first, following = dict[str, int](), 0
    # Keyed bolts come last: with another parallelism of theirs the tasks of others stay where they are.
    for head in sorted(heads, key=lambda id: id in description.bolts and description.bolts[id].keyed):
        first[head] = following
        following += description.components[head].parallelism
    return first
