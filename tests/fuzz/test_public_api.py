"""Anything that a host may do to a running topology, in any order, beside a model that knows what must come of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stormlet import Running, RunState, Stream, Topology, TopologyStopping, Tree, TupleFailed, TupleTimedOut
from stormlet.testing import SimulatedLoop

PATIENCE = 1000.0
"""Simulated seconds in which everything must have its outcome."""
OUTCOMES = {"good": "acked", "bad": "failed", "late": "timed out"}


async def work(value: str) -> str:
    """Does what the value says."""
    if value == "bad":
        raise ValueError(value)
    await asyncio.sleep(500.0 if value == "late" else 0.1)
    return value


def fed_topology(ackers: int, capacity: int) -> tuple[Topology, Stream[str]]:
    """With slow messages that hold up no others."""
    topology = Topology(
        "api", ackers=ackers, queue_capacity=capacity, message_timeout=10.0, drain_timeout=None
    )
    fed: Stream[str] = topology.spout("fed")
    worked = topology.bolt("work", work, fed.shuffle(), parallelism=2, concurrency=1000)
    topology.bolt("show", str.upper, worked.fields())
    return topology, fed


async def outcome_of(emitting: asyncio.Task[Tree[Any]]) -> str:
    """What became of one message, which stays so."""
    try:
        tree = await emitting
    except TopologyStopping:
        return "refused"
    outcomes = [await told(tree), await told(tree)]
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


async def told(tree: Tree[Any]) -> str:
    try:
        await tree
    except TupleTimedOut:
        return "timed out"
    except TupleFailed:
        return "failed"
    return "acked"


class Host(RuleBasedStateMachine):
    """Holds a topology in its hands."""

    @initialize(seed=st.integers(0, 2**32), ackers=st.integers(1, 3), capacity=st.integers(1, 4))
    def enter(self, seed: int, ackers: int, capacity: int) -> None:
        self.runner = asyncio.Runner(loop_factory=partial(SimulatedLoop, seed))
        self.topology, self.fed = fed_topology(ackers, capacity)
        self.emits: list[tuple[str, asyncio.Task[Tree[Any]]]] = []
        self.killed = self.is_stopping = False
        self.is_active = True
        self.runner.run(self.begin())

    async def begin(self) -> None:
        entered: asyncio.Future[Running] = asyncio.get_running_loop().create_future()
        self.leave = asyncio.Event()
        self.block = asyncio.create_task(self.stay(entered))
        self.running = await entered

    async def stay(self, entered: asyncio.Future[Running]) -> None:
        async with self.topology.run() as running:
            entered.set_result(running)
            await self.leave.wait()

    async def call(self, method: str, *arguments: object) -> None:
        getattr(self.running, method)(*arguments)

    # What a host does.

    @rule(kind=st.sampled_from([*OUTCOMES]), attempts=st.integers(1, 3), times=st.integers(1, 8))
    def emit(self, kind: str, attempts: int, times: int) -> None:
        for _ in range(times):
            emitting = self.running.emit(self.fed, kind, attempts=attempts)
            self.emits.append((kind, self.runner.get_loop().create_task(emitting)))

    @rule(active=st.booleans())
    def switch(self, active: bool) -> None:
        self.runner.run(self.call("activate" if active else "deactivate"))
        self.is_active = active

    @rule(task=st.sampled_from([("work", 0), ("work", 1), ("show", 0), ("fed", 0), ("__acker", 0)]))
    def kill(self, task: tuple[str, int]) -> None:
        self.runner.run(self.call("kill", *task))
        self.killed = True

    @rule(seconds=st.sampled_from([0.0, 0.05, 1.0, 30.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.runner.run(asyncio.sleep(seconds))

    @precondition(lambda self: not self.is_stopping)
    @rule()
    def stop(self) -> None:
        self.runner.run(self.call("stop"))
        self.is_stopping = True

    # What must hold.

    @invariant()
    def its_state_is_known(self) -> None:
        running = RunState.RUNNING if self.is_active else RunState.INACTIVE
        health = self.running.health()
        assert health.state is (RunState.DRAINING if self.is_stopping else running)
        assert 0 <= health.pending <= len(self.emits)

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            with self.runner:
                self.runner.run(asyncio.wait_for(self.end(), PATIENCE))

    async def end(self) -> None:
        self.leave.set()
        await self.block
        outcomes = [(kind, await outcome_of(emitting)) for kind, emitting in self.emits]
        for kind, outcome in outcomes:
            expected = {OUTCOMES[kind]} | ({"failed"} if self.killed else set())
            assert outcome in expected | {"refused"}
        self.check_counts(Counter(outcome for _, outcome in outcomes))

    def check_counts(self, outcomes: Counter[str]) -> None:
        counts = self.running.statistics().components["fed"]
        assert counts.acked == outcomes["acked"]
        assert counts.failed >= outcomes["failed"] + outcomes["timed out"]
        assert (counts.pending, counts.left_over, counts.dead_letters) == (0, 0, 0)
        assert self.running.health().state is RunState.STOPPED


class TestHost(Host.TestCase):
    """Whatever the host does, every message that was taken has one outcome, which is the right one."""

    settings = settings(max_examples=settings.default.max_examples // 4, stateful_step_count=20)
