"""Topologies in a line each, and their layouts as a line of text.

A bolt is written as its inputs, and the number of its tasks if that is not one: ``count="split.fields *4"``,
``join="orders.fields, payments.fields"``. What is no bolt is a spout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from stormlet import Topology
from stormlet.model.configuration import Configuration
from stormlet.model.description import Description
from stormlet.model.planning import Plan, plan
from stormlet.spark.engine.planning.layout import Layout, lay_out
from stormlet.spark.engine.planning.numbering import ClusterPlan, number
from tests.cast import same


class EveryOther:
    """A grouping of a user's own."""

    def prepare(self, targets: Sequence[int]) -> None:
        self.targets = targets[::2]

    def choose(self, value: object) -> Sequence[int]:
        return self.targets


def sketch(**bolts: str) -> Topology:
    """The topology of these bolts, each after those that it takes from."""
    topology = Topology("sketch")
    streams: dict[str, Any] = {}
    for id, text in bolts.items():
        inputs, _, parallelism = text.partition(" *")
        subscriptions: list[Any] = []
        for each in inputs.split(", "):
            producer, _, grouping = each.partition(".")
            if producer not in streams:
                streams[producer] = topology.spout(producer, range(3))
            arguments = [EveryOther()] if grouping == "custom" else []
            subscriptions.append(getattr(streams[producer], grouping)(*arguments))
        streams[id] = topology.bolt(id, same, *subscriptions, parallelism=int(parallelism or 1))
    return topology


def laid_out(topology: Topology) -> str:
    """Its stages as text: ``"lines + split > count > driver: report"``; ``+`` is before what is fused."""
    return drawn(lay_out(topology.describe()))


def drawn(layout: Layout) -> str:
    stages = [" + ".join([", ".join(each.heads), *each.fused]) for each in layout.stages]
    return " > ".join([*stages, *([f"driver: {', '.join(layout.driver)}"] if layout.driver else [])])


def numbered(topology: Topology | Description, **spouts: int) -> ClusterPlan:
    """Its plan on Spark, with so many partitions for these spouts."""
    description = topology if isinstance(topology, Description) else topology.describe()
    return number(description, dict.fromkeys(description.components, Configuration()), spouts)


def planned(description: Description) -> Plan:
    """Its plan in process."""
    return plan(description, dict.fromkeys(description.components, Configuration()))


ANY = ("shuffle", "local_or_shuffle", "none", "fields", "partial_key", "all", "global_", "custom")


@st.composite
def acyclic(draw: st.DrawFn, groupings: Sequence[str] = ANY) -> Description:
    """Any topology without cycles, its bolts declared in any order."""
    spouts = [f"spout{each}" for each in range(draw(st.integers(1, 3)))]
    texts = {f"after_{id}": f"{id}.{draw(st.sampled_from(groupings))}" for id in spouts}
    for each in range(draw(st.integers(0, 12))):
        known = st.sampled_from([*spouts, *texts])
        producers = draw(st.lists(known, min_size=1, max_size=3))
        taken = [f"{id}.{draw(st.sampled_from(groupings))}" for id in producers]
        texts[f"bolt{each}"] = f"{', '.join(taken)} *{draw(st.integers(1, 3))}"
    description = sketch(**texts).describe()
    order = draw(st.permutations(list(description.bolts)))
    return replace(description, bolts={id: description.bolts[id] for id in order})
