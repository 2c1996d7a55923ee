"""Storm's own performance topologies of constant tuples: ``ConstSpoutOnlyTopo``, ``ConstSpoutNullBoltTopo`` and
``ConstSpoutIdBoltNullBoltTopo``."""

from __future__ import annotations

import time
from functools import partial

from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.core.tuples import Tuple
from stormlet.errors import EndOfStream
from stormlet.model.components import Bolt, Collector, Spout, SpoutCollector
from stormlet.topology import Topology

ACKED = {True: "acked", False: "ackers=0"}


class ConstSpout(Spout[str]):
    """Emits the same text so often, under a counter as message id, without ackers too."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._emitted = 0

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        """Emit it once."""
        if self._emitted == self._count:
            raise EndOfStream
        self._emitted += 1
        out.emit("some data", message_id=self._emitted)


class IdBolt(Bolt[str, str]):
    """Hands its input on."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        """Emit it again, anchored, and ack it."""
        out.emit(tup.value, anchors=tup)
        out.ack(tup)


class NullBolt(Bolt[str, None]):
    """Acks its input."""

    def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        """Nothing else."""
        out.ack(tup)


def spout_only(size: int, *, acked: bool) -> Figures:
    """Messages that reach nobody, and so are acked at once."""
    return {"messages_per_s": size / run(_seconds(size, 0, acked))}


def null_bolt(size: int, *, acked: bool) -> Figures:
    """One delivery a message."""
    return {"tuples_per_s": size / run(_seconds(size, 1, acked))}


def id_bolt(size: int, *, acked: bool) -> Figures:
    """Two deliveries a message."""
    return {"tuples_per_s": 2 * size / run(_seconds(size, 2, acked))}


async def _seconds(size: int, bolts: int, acked: bool) -> float:
    topology = Topology("bench", ackers=int(acked))
    stream = topology.spout("const", partial(ConstSpout, size))
    if bolts == 2:
        stream = topology.bolt("id", IdBolt, stream.local_or_shuffle())
    if bolts:
        topology.bolt("null", NullBolt, stream.local_or_shuffle())
    began = time.perf_counter()
    async with topology.run() as running:
        await running.finished()
        seconds = time.perf_counter() - began
        components = running.statistics().components
    expect(components["const"].acked, size, "messages acked")
    for bolt in ("id", "null")[2 - bolts :]:
        expect(components[bolt].executed, size, f"tuples executed by {bolt}")
    return seconds


WORKLOADS = tuple(
    Workload(
        name if acked else f"{name}-unacked", f"{label}, {ACKED[acked]}", partial(measure, acked=acked), size
    )
    for name, label, measure, size in (
        ("spout-only", "Storm's ConstSpout alone", spout_only, 300_000),
        ("null-bolt", "Storm's ConstSpout to NullBolt", null_bolt, 300_000),
        ("id-bolt", "Storm's ConstSpout to IdBolt to NullBolt", id_bolt, 200_000),
    )
    for acked in (True, False)
)
