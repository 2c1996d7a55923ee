"""The search for a bottleneck, judged as one judges a classifier: by topologies whose bottleneck is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from stormlet import Bottleneck
from stormlet.testing import run_simulated
from tests.runtime.run.bottlenecks import IN_THREADS, LIMITED, WELL, Built, awaits, chain, endless, one


async def found(build: Callable[[], Built], seconds: float = 90.0) -> Bottleneck | None:
    """The bottleneck of the last minute of so many seconds."""
    asyncio.get_running_loop().probes_lag = True  # type: ignore[attr-defined]
    built = build()
    async with built.topology.run(**built.options) as running:
        beside = None if built.beside is None else asyncio.ensure_future(built.beside(running))
        await asyncio.sleep(seconds)
        result = running.bottleneck()
        if beside is not None:
            beside.cancel()
            with suppress(asyncio.CancelledError):
                await beside
        running.stop()
        running.stop()
    return result


def judged(name: str, build: Callable[[], Built]) -> Bottleneck | None:
    if name in IN_THREADS:
        return asyncio.run(found(build, 1.0))
    return run_simulated(found(build))


@pytest.mark.parametrize("name", LIMITED)
def test_the_bottleneck_is_named(name: str) -> None:
    """The kind and the component by which the topology was built."""
    kind, component, build = LIMITED[name]
    result = judged(name, build)
    assert result is not None
    assert (result.kind, result.component) == (kind, component), result


def test_calls_that_never_come_back_need_a_time_limit() -> None:
    """Each replay of a message takes one more place, until there are none: then more places do not help."""
    result = judged("", lambda: chain(endless(), one("ask", awaits(1e9), concurrency=8)))
    assert result is not None
    assert "'ask' awaits 100 % of its time" in result.sentence
    assert "none of its calls has come back in 60 s: give what they wait for a time limit" in result.sentence


@pytest.mark.parametrize("name", WELL)
def test_none_is_named_where_all_is_well(name: str) -> None:
    """A source that is not held up is served, however busy the bolts are."""
    assert judged(name, WELL[name]) is None
