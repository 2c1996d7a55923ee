"""Whole topologies, partition by partition, as Spark would run them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from stormlet import Topology
from stormlet.model.configuration import Configuration
from stormlet.spark.engine.partition.account import Line, differences
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.partition.keyed.partition import partition_at
from stormlet.spark.engine.partition.rows import Row
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place, number
from stormlet.spark.engine.planning.refusals import check_batch


@dataclass
class Ran:
    """What has come of it."""

    cluster: ClusterPlan
    rows: list[Row] = field(default_factory=list[Row])
    lines: list[Line] = field(default_factory=list[Line])
    given_up: list[GivenUp] = field(default_factory=list[GivenUp])
    replayed: dict[int, int] = field(default_factory=dict[int, int])

    def differences(self) -> Sequence[str]:
        return differences(self.lines, self.cluster.partitions)


def run(topology: Topology, partitions: int = 1) -> Ran:
    """Run it; each spout has so many partitions, and gives each the values of its source."""
    description = topology.describe()
    check_batch(description)
    configuration = dict.fromkeys(description.components, Configuration(replay_delay=0.0))
    cluster = number(description, configuration, dict.fromkeys(description.spouts, partitions))
    ran = Ran(cluster)
    asyncio.run(_run(ran))
    return ran


async def _run(ran: Ran) -> None:
    for stage, partitions in enumerate(ran.cluster.partitions):
        for each in range(partitions):
            await _run_partition(ran, Place(stage, each))


async def _run_partition(ran: Ran, place: Place) -> None:
    partition = partition_at(ran.cluster, place, 7)
    await partition.start()
    spouts = ran.cluster.plan.description.spouts
    for task in ran.cluster.tasks_at(place):
        if task.component in spouts:
            values = list(cast("Iterable[object]", spouts[task.component].source))
            ran.rows += await partition.emit(task.task, values, 1)
    arrived = [row for row in ran.rows if row.place == place]
    for row in sorted(arrived, key=lambda row: (row.producer, row.number)):
        ran.rows += await partition.execute(row)
    ran.rows += await partition.finish()
    await partition.close()
    ran.lines.append(partition.line)
    ran.given_up += partition.given_up
    ran.replayed.update(partition.replayed)
