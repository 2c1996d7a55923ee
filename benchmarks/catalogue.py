"""Every workload, in the order of the reports: what is compared stands together, and so runs soon after each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from benchmarks.peers import bytewax_peer, bytewax_state, pathway_peer, queues, streamz_peer
from benchmarks.workloads import (
    calls,
    counting,
    expiry,
    from_spark,
    half_load,
    idle,
    limits,
    loop_time,
    many_pending,
    memory_use,
    shapes,
    start_up,
    state,
    storm,
    text_file,
    throttled,
    watching,
)
from stormlet.bench.word_count import WORKLOADS as OWN
from stormlet.bench.workload import Workload

WORKLOADS: Mapping[str, Workload] = {
    each.name: each
    for each in chain(
        limits.WORKLOADS,
        counting.WORKLOADS,
        queues.WORKLOADS,
        bytewax_peer.WORKLOADS,
        streamz_peer.WORKLOADS,
        pathway_peer.WORKLOADS,
        text_file.WORKLOADS,
        storm.WORKLOADS,
        throttled.WORKLOADS,
        shapes.WORKLOADS,
        calls.WORKLOADS,
        (OWN["latency"],),
        half_load.WORKLOADS,
        loop_time.WORKLOADS,
        many_pending.WORKLOADS,
        memory_use.WORKLOADS,
        expiry.WORKLOADS,
        idle.WORKLOADS,
        start_up.WORKLOADS,
        watching.WORKLOADS,
        state.WORKLOADS,
        bytewax_state.WORKLOADS,
        from_spark.WORKLOADS,
    )
}

GROUPS: Mapping[str, Sequence[str]] = {
    kind: [each.name for each in WORKLOADS.values() if each.kind == kind and each.available]
    for kind in ("state", "watched")
}
"""A name for several workloads, which run only when they are named."""

PEERS: Mapping[str, str] = {
    "queues": "",
    "bytewax": "bytewax",
    "streamz": "streamz",
    "pathway": "pathway",
}
"""Peer that ``--against`` may name -> the package that must be installed."""

NOBODY = "none"
"""The word for no peer."""


def usual_names() -> Sequence[str]:
    """The workloads that run where none is named: all that can run here but the peers, and those that need Spark
    or are of a group."""
    return [each.name for each in WORKLOADS.values() if each.kind in ("limit", "own") and each.available]


def names_of_peer(peer: str) -> Sequence[str]:
    """The workloads of one of :data:`PEERS`."""
    of_peers = (each.name for each in WORKLOADS.values() if each.kind == "peer")
    return [name for name in of_peers if name.partition("-")[0] == peer]


def in_order(names: Sequence[str]) -> Sequence[str]:
    """The same names as the catalogue has them, once each, and those of groups."""
    wanted = [each for name in names for each in GROUPS.get(name, [name])]
    return [name for name in WORKLOADS if name in wanted]
