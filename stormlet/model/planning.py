"""The plan of a run: a description turned into numbered tasks and the links between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from stormlet.core.groupings import Grouping
from stormlet.errors import InvalidTopology
from stormlet.model.configuration import Configuration
from stormlet.model.description import Description
from stormlet.model.plan import ACKER, TaskPlan
from stormlet.model.streams import StreamId

LEAST_HIGH_WATER = 1000
"""The smallest default of ``acker_high_water``: a guard against overflow must not throttle small topologies."""
MOST_TASKS = 1_000_000
"""More would not fit into the memory of any machine: the number is a mistake."""


class Link(msgspec.Struct, frozen=True):
    """One subscription: the consumer of a stream, and the grouping that distributes the tuples over its tasks."""

    consumer: str
    grouping: Grouping
    targets: Sequence[int]
    """The task ids of the consumer, ascending."""
    waits: bool
    """True if a producer waits for room: not inside a cycle, where waiting could last for ever (law B6)."""


class Plan(msgspec.Struct, frozen=True):
    """All tasks of a run, and the links between them."""

    description: Description
    ackers: Sequence[TaskPlan]
    tasks: Mapping[str, Sequence[TaskPlan]]
    """The tasks of each component."""
    links: Mapping[StreamId, Sequence[Link]]
    order: Sequence[Sequence[str]]
    """Components upstream first; those that form a cycle stand together (law C2)."""
    high_water: int | None
    """Half of how many trees one acker may hold (law L13); None where a spout's pending is unlimited."""


def plan(
    description: Description, spouts: Mapping[str, Configuration], *, state_survives: bool = False
) -> Plan:
    """Number the tasks and resolve the links. ``spouts`` has each spout's effective configuration; ``state_survives``
    is true where the state of bolts outlives the process.

    Ids go to the ackers first, then to spouts and bolts as declared, so that the lowest task of ``global_``
    is the first.
    """
    description.validate(state_survives=state_survives)
    configuration = description.configuration
    _check_number(description)
    ackers = _number(ACKER, configuration.ackers, 1)
    tasks: dict[str, Sequence[TaskPlan]] = {}
    following = len(ackers) + 1
    for component in description.components.values():
        tasks[component.id] = _number(component.id, component.parallelism, following)
        following += component.parallelism
    order = description.in_order()
    return Plan(
        description, ackers, tasks, _links(description, tasks, order), order, _high_water(description, spouts)
    )


def _check_number(description: Description) -> None:
    total = description.configuration.ackers + sum(
        each.parallelism for each in description.components.values()
    )
    if total > MOST_TASKS:
        raise InvalidTopology(
            f"topology {description.name!r} would have {total:,} tasks, which is more than {MOST_TASKS:,}; "
            f"lower ackers or the parallelism of its components"
        )


def _number(component: str, parallelism: int, first: int) -> Sequence[TaskPlan]:
    return tuple(TaskPlan(component, first + index, index, parallelism) for index in range(parallelism))


def _links(
    description: Description, tasks: Mapping[str, Sequence[TaskPlan]], order: Sequence[Sequence[str]]
) -> Mapping[StreamId, Sequence[Link]]:
    group_of = {component: number for number, group in enumerate(order) for component in group}
    links: dict[StreamId, list[Link]] = {
        StreamId(component.id, stream): []
        for component in description.components.values()
        for stream in component.outputs
    }
    for bolt in description.bolts.values():
        targets = tuple(each.task for each in tasks[bolt.id])
        for subscription in bolt.inputs:
            waits = group_of[subscription.source.component] != group_of[bolt.id]
            links[subscription.source].append(Link(bolt.id, subscription.grouping, targets, waits))
    return links


def _high_water(description: Description, spouts: Mapping[str, Configuration]) -> int | None:
    configuration = description.configuration
    if configuration.acker_high_water is not None:
        return configuration.acker_high_water
    total = 0
    for spout in description.spouts.values():
        pending = spouts[spout.id].max_spout_pending
        if pending is None:
            return None
        total += pending * spout.parallelism
    return max(LEAST_HIGH_WATER, -(-total // max(1, configuration.ackers)))
