"""What is no number where one is due: each argument of the public face that takes one refuses it, by its name."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from stormlet import (
    BatchBolt,
    Collector,
    EndOfStream,
    Failure,
    FailureKind,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.errors import StormletError
from stormlet.model.configuration import COMPONENT_OPTIONS, OPTIONS
from stormlet.testing import (
    Delay,
    Faults,
    Input,
    Simulation,
    complete,
    run_bolt,
    run_simulated,
    simulate,
    soak,
)
from tests.cast import Ticks, ignore
from tests.helpers import run_to_end

NO_NUMBERS = [None, math.nan, "3", []]
MAY_BE_NONE = {
    "acker_high_water",
    "drain_timeout",
    "explain_stuck",
    "max_spout_pending",
    "max_spout_pending of a spout",
    "message_timeout",
    "message_timeout of a run",
    "seconds of simulate",
    "seed of a run",
    "task",
    "tick",
    "tick of a bolt",
    "topology.acker.executors",
    "topology.max.spout.pending",
    "topology.tick.tuple.freq.secs",
}
"""Of these it says something: never, no bound, nobody."""

Call = Callable[[Any], object]


class Batches(BatchBolt[object, None]):
    """Takes what it gets."""

    def execute_batch(self, tups: Sequence[Tuple[object]], out: Collector[None]) -> None:
        """Nothing to do."""


def small(**options: Any) -> Topology:
    """One message, through one bolt."""
    topology = Topology("small", **options)
    topology.bolt("bolt", ignore, topology.spout("spout", [1]).shuffle())
    return topology


def spout(**options: Any) -> object:
    """Declare one."""
    return Topology("small").spout("spout", None, **options)


def bolt(**options: Any) -> object:
    """Declare one."""
    topology = Topology("small")
    return topology.bolt("bolt", Ticks, topology.spout("spout", [1]).shuffle(), **options)


def host(call: Callable[[Running, Stream[Any], Any], object]) -> Call:
    """What a host calls while a topology runs."""

    async def body(value: object) -> None:
        topology = Topology("small")
        fed = topology.spout("spout")
        topology.bolt("bolt", ignore, fed.shuffle())
        async with topology.run() as running:
            result = call(running, fed, value)
            if isinstance(result, Awaitable):
                await result

    return lambda value: run_simulated(body(value))


def source(call: Callable[[SpoutCollector[Any], Any], object]) -> Call:
    """What a spout calls; what that raises comes out of the crash."""

    def run(value: object) -> None:
        class Calls(Spout[Any]):
            async def next_tuple(self, out: SpoutCollector[Any]) -> None:
                result = call(out, value)
                if isinstance(result, Awaitable):
                    await result
                raise EndOfStream

        topology = Topology("small", max_restarts=0)
        topology.bolt("bolt", ignore, topology.spout("spout", Calls).shuffle())
        try:
            run_simulated(run_to_end(topology))
        except TopologyCrashed as crash:
            raise crash.__cause__ or crash from None

    return run


def batch(name: str) -> Call:
    """A class of bolts with this attribute."""

    def run(value: object) -> None:
        topology = Topology("small")
        topology.bolt(
            "bolt", type("Named", (Batches,), {name: value}), topology.spout("spout", [1]).shuffle()
        )
        run_simulated(run_to_end(topology))

    return run


async def advance(**by: Any) -> None:
    """Let so much time pass."""
    await Simulation().advance(**by)


ARGUMENTS: dict[str, Call] = {
    **{name: lambda value, name=name: small(**{name: value}) for name in OPTIONS},
    **{
        name: lambda value, name=name: small(**{name: value})
        for name in (
            "topology.message.timeout.secs",
            "topology.acker.executors",
            "topology.max.spout.pending",
            "topology.executor.receive.buffer.size",
            "topology.sleep.spout.wait.strategy.time.ms",
            "topology.tick.tuple.freq.secs",
        )
    },
    **{
        f"{name} of a spout": lambda value, name=name: spout(**{name: value})
        for name in ("parallelism", *COMPONENT_OPTIONS["spout"])
    },
    **{
        f"{name} of a bolt": lambda value, name=name: bolt(**{name: value})
        for name in ("parallelism", "concurrency", *COMPONENT_OPTIONS["bolt"])
    },
    "seed of a run": lambda value: small().run(seed=value).close(),
    "message_timeout of a run": lambda value: small().run(message_timeout=value).close(),
    "attempts of running.emit": host(lambda running, fed, value: running.emit(fed, 1, attempts=value)),
    "task_index": host(lambda running, _, value: running.kill("bolt", value)),
    "root": host(lambda running, _, value: running.explain(value)),
    "most": host(lambda running, _, value: running.explain_oldest(value)),
    "record_edges of a run": host(lambda running, _, value: running.record_edges(value)),
    "attempt": source(lambda out, value: out.emit(1, message_id=1, attempt=value)),
    "attempt of emit_many": source(lambda out, value: out.emit_many([1], message_ids=[1], attempt=value)),
    "task": source(lambda out, value: out.emit(1, message_id=1, task=value)),
    "attempts of out.dead_letter": source(
        lambda out, value: out.dead_letter(1, Failure(FailureKind.FAILED), attempts=value)
    ),
    "size": batch("size"),
    "within": batch("within"),
    "time_limit": lambda value: complete(small(), time_limit=value),
    "seed of complete": lambda value: complete(small(), seed=value),
    "seconds": lambda value: run_bolt(ignore, [1], seconds=value),
    "seed of run_bolt": lambda value: run_bolt(ignore, [1], seed=value),
    "after": lambda value: Input(1, after=value),
    "seconds of simulate": lambda value: simulate(small(), seeds=[1], seconds=value),
    "seed of simulate": lambda value: simulate(small(), seeds=[value]),
    "seed of run_simulated": lambda value: run_simulated(asyncio.sleep(0), seed=value),
    **{
        f"{name} of sim.advance": lambda value, name=name: run_simulated(advance(**{name: value}))
        for name in ("days", "hours", "minutes", "seconds")
    },
    "seconds of a delay": lambda value: Delay(value),
    **{
        f"{name} of the faults": lambda value, name=name: Faults(**{name: value})
        for name in ("kill", "error", "slow", "delay", "duplicate", "drop", "jump", "crowd", "most")
    },
    **{
        f"{name} of a soak": lambda value, name=name: soak(small(), **{name: value})
        for name in ("minutes", "burst", "every", "growth")
    },
}
CASES = [
    pytest.param(argument, value, id=f"{argument}={value}")
    for argument in ARGUMENTS
    for value in NO_NUMBERS
    if not (value is None and argument in MAY_BE_NONE)
]


@pytest.mark.parametrize(("argument", "value"), CASES)
def test_what_is_no_number_is_refused_by_name(argument: str, value: object) -> None:
    """The message says which argument it is, and what was given for it."""
    with pytest.raises(StormletError) as refused:
        ARGUMENTS[argument](value)
    assert argument.split(" ")[0] in str(refused.value)
    assert str(value) in str(refused.value)


@pytest.mark.parametrize("argument", sorted(MAY_BE_NONE))
def test_none_is_taken_where_it_says_something(argument: str) -> None:
    """There it is no mistake."""
    ARGUMENTS[argument](None)


@pytest.mark.parametrize(
    "argument", ["replay_delay", "within", "time_limit", "seconds", "minutes of sim.advance"]
)
@pytest.mark.parametrize("value", [math.inf, -math.inf, 10**400, True])
def test_what_no_clock_can_count_is_refused_as_well(argument: str, value: object) -> None:
    """Nor is True a second."""
    with pytest.raises(StormletError, match=argument.split(" ")[0]):
        ARGUMENTS[argument](value)


def test_seeds_are_more_than_a_number() -> None:
    """Who writes how many is told what to write."""
    with pytest.raises(StormletError, match=r"simulate: seeds must be numbers such as range\(100\), not 100"):
        simulate(small(), seeds=100)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
