"""Outlets to other stages. They make no tuples, only entries in a
:class:`~stormlet.spark.engine.partition.lanes.Lane`, and draw no edges: an edge would be XORed into the tree here, and
then out of it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stormlet.core.groupings import Chooser, Many, One, PartialKey
from stormlet.core.tuples import PLAIN, Lineage, Source
from stormlet.model.checks.keyed import key_by
from stormlet.model.plan import TaskPlan
from stormlet.model.planning import Link
from stormlet.model.streams import StreamId
from stormlet.runtime.context import Engine
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.run.wiring import Producer
from stormlet.runtime.wire.outlets import Anchors, CheckedOutlet, Outlet
from stormlet.spark.engine.partition.exits import Exits
from stormlet.spark.engine.partition.keyed.execution import Execution
from stormlet.spark.engine.partition.lanes import Lane
from stormlet.spark.engine.planning.combiners import Combiner, combiner_of, folds


class OutletsToStages:
    """Makes the outlets that lead to other stages."""

    def __init__(
        self,
        engine: Engine,
        kit: Kit,
        links: Mapping[StreamId, Sequence[Link]],
        exits: Exits,
        now: float = 0.0,
    ) -> None:
        """``now`` is the time for bolts with keyed state."""
        self._engine = engine
        self._kit = kit
        self._links = links
        self._exits = exits
        self._now = now

    def lay(self, producer: Producer) -> None:
        """Put an outlet in the place of each that has consumers in other stages."""
        for stream, outlet in list(producer.outlets.items()):
            links = self._links[StreamId(producer.plan.component, stream)]
            if not links:
                continue
            if isinstance(outlet, CheckedOutlet):
                outlet = CheckedOutlet(self._outlet(producer.plan, outlet.inner, links))
            else:
                outlet = self._outlet(producer.plan, outlet, links)
            producer.outlets[stream] = outlet

    def _outlet(self, plan: TaskPlan, inner: Outlet, links: Sequence[Link]) -> Outlet:
        ways = [(self._chooser(plan, link), self._lanes(plan, link)) for link in links]
        if type(inner) is not Outlet:  # it has consumers here
            return Exit(inner.source, inner, ways)
        plain = [
            (each, lanes) for each, lanes in ways if isinstance(each, One) and len(lanes[0].streams) == 1
        ]
        if len(plain) < len(ways):
            return Exit(inner.source, None, ways)
        return SingleExit(inner.source, *plain[0]) if len(plain) == 1 else FanExit(inner.source, plain)

    def _chooser(self, plan: TaskPlan, link: Link) -> Chooser:
        grouping = self._kit.grouping(plan, link.grouping)
        random = self._engine.random(plan, f"to {link.consumer}")
        return grouping.chooser(link.targets, random, f"{plan.component!r} -> {link.consumer!r}")

    def _lanes(self, plan: TaskPlan, link: Link) -> Sequence[Lane]:
        ways = [
            stream.stream
            for stream, links in self._links.items()
            for each in links
            if stream.component == plan.component and each.consumer == link.consumer
        ]
        streams = tuple(dict.fromkeys(ways))
        bolts = self._engine.plan.description.bolts
        bolt = bolts.get(plan.component)
        sorts = bolt is not None and bolt.concurrency > 1
        # The keys of two streams need not mean the same, nor those of two subscriptions to one.
        combiner = self._combiner(plan, streams[0], link) if len(ways) == 1 else None
        merging = None if combiner is None else self._exits.merging(combiner, plan.task)
        lanes: list[Lane] = []
        for target in link.targets:
            lanes.append(self._exits.lane(plan.task, target, streams, merging, sorts=sorts))
            if combiner is not None and isinstance(link.grouping, PartialKey):  # a key has two lanes
                merging = self._exits.merging(combiner, plan.task)
        return lanes

    def _combiner(self, plan: TaskPlan, stream: str, link: Link) -> Combiner | Execution | None:
        description = self._engine.plan.description
        bolt = description.bolts[link.consumer]
        if not folds(bolt, description):
            return combiner_of(bolt, link.grouping)
        schema = description.components[plan.component].outputs[stream].schema
        source = Source(plan.component, stream, plan.task, schema)
        return Execution(description.name, bolt, source, key_by(link.grouping), self._now)


class Exit(Outlet):
    """A stream with consumers in later stages, and with others in this one or none."""

    __slots__ = ("_inner", "_sent", "links")

    def __init__(
        self, source: Source, inner: Outlet | None, links: Sequence[tuple[Chooser, Sequence[Lane]]]
    ) -> None:
        """``inner`` leads to the consumers in this stage."""
        super().__init__(source)
        self._inner = inner
        self.links = links
        """The ways to other stages."""
        self._sent = 0

    @property
    def transferred(self) -> int:
        """The number of tuples it has delivered, here and to other stages."""
        return self._sent + (0 if self._inner is None else self._inner.transferred)

    def count(self, values: int, tuples: int) -> None:
        """Count values that went another way, as so many tuples."""
        super().count(values, tuples)
        self._sent += tuples

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        """Deliver here and to other stages; return the XOR of the edges here."""
        # All are chosen before any is reached, as everywhere.
        chosen = self._choose(value)
        edges = 0 if self._inner is None else self._inner.deliver(value, root, lineage)
        self._append(chosen, value, (root,) if root else (), lineage)
        return edges

    def deliver_joined(self, value: object, anchors: Anchors, lineage: Lineage) -> None:
        """Deliver as a member of several trees."""
        chosen = self._choose(value)
        if self._inner is not None:
            self._inner.deliver_joined(value, anchors, lineage)
        roots = tuple(dict.fromkeys(root for anchor in anchors for root in anchor.roots))
        self._append(chosen, value, roots, lineage)

    def _choose(self, value: object) -> Sequence[Lane]:
        chosen: list[Lane] = []
        for chooser, lanes in self.links:
            if isinstance(chooser, Many):
                chosen.extend(lanes[index] for index in chooser.choose(value))
            else:
                chosen.append(lanes[chooser.pick(value)])
        return chosen

    def _append(
        self, chosen: Sequence[Lane], value: object, roots: tuple[int, ...], lineage: Lineage
    ) -> None:
        self._emitted += 1
        self._sent += len(chosen)
        inner = () if self._inner is None else self._inner.reached
        self.reached = (*inner, *(lane.target for lane in chosen))
        for lane in chosen:
            lane.append(value, self.source.stream, roots, lineage)


class SingleExit(Exit):
    """The only stream on its lanes, with one consumer, whose grouping sends each value to one task."""

    __slots__ = ("_chooser", "_lanes")

    def __init__(self, source: Source, chooser: One, lanes: Sequence[Lane]) -> None:
        super().__init__(source, None, [(chooser, lanes)])
        self._chooser = chooser
        self._lanes = lanes

    @property
    def transferred(self) -> int:
        """The number of tuples it has delivered."""
        return self._emitted

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        """Deliver to another stage; return 0."""
        lane = self._lanes[self._chooser.pick(value)]
        self._emitted += 1
        self.reached = lane.ids
        waiting = lane.waiting
        if lineage is not PLAIN and lineage.attempt > 1:
            waiting.attempts[len(waiting.values)] = lineage.attempt
        waiting.roots.append(root)
        waiting.values.append(value)
        return 0


class FanExit(Exit):
    """The only stream on its lanes, with several consumers, each of whose groupings sends a value to one task."""

    __slots__ = ("_ways",)

    def __init__(self, source: Source, ways: Sequence[tuple[One, Sequence[Lane]]]) -> None:
        super().__init__(source, None, ways)
        self._ways = ways

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        """Deliver to other stages; return 0."""
        if lineage is not PLAIN:
            return super().deliver(value, root, lineage)
        chosen = [lanes[chooser.pick(value)] for chooser, lanes in self._ways]
        self._emitted += 1
        self._sent += len(chosen)
        self.reached = tuple([lane.target for lane in chosen])
        for lane in chosen:
            waiting = lane.waiting
            waiting.roots.append(root)
            waiting.values.append(value)
        return 0
