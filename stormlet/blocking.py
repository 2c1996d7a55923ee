"""Run a topology where there is no event loop yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Unpack

from stormlet.model.builder_types import TopologyOptions
from stormlet.report.statistics import Statistics
from stormlet.runtime.dead_letters import DeadLetterTarget
from stormlet.runtime.hooks.run import HookFactory
from stormlet.runtime.run.entry import Run
from stormlet.runtime.tracing import Traces
from stormlet.topology import Sources, StateTarget, Topology


def run(
    topology: Topology,
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    seed: int | None = None,
    dead_letters: DeadLetterTarget | None = None,
    sources: Sources | None = None,
    state: StateTarget | None = None,
    hooks: Sequence[HookFactory] = (),
    traces: Traces | None = None,
    **configuration: Unpack[TopologyOptions],
) -> Statistics:
    """Run until all spouts have ended and everything is settled; return the statistics.

    ``loop_factory`` makes the event loop, such as ``uvloop.new_event_loop``; by default it is asyncio's. The other
    arguments are those of :meth:`Topology.run <stormlet.topology.Topology.run>`. Ctrl-C cancels the topology and
    raises :class:`KeyboardInterrupt`, as ``asyncio.run`` does.

    Raises the errors of :meth:`Topology.run <stormlet.topology.Topology.run>` and of its block, and
    :class:`RuntimeError` inside a running loop.
    """
    if _in_a_loop():
        raise RuntimeError(
            "stormlet.run starts an event loop of its own, and one is running here already: "
            "write 'async with topology.run() as running: await running.finished()' instead"
        )
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(
            _finished(
                lambda: topology.run(
                    seed=seed,
                    dead_letters=dead_letters,
                    sources=sources,
                    state=state,
                    hooks=hooks,
                    traces=traces,
                    **configuration,
                )
            )
        )


async def _finished(run: Callable[[], Run]) -> Statistics:
    async with run() as running:
        await running.finished()
    return running.statistics()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
