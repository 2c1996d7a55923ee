"""The pytest plugin: ``@pytest.mark.simulated_time`` runs an ``async def`` test on a loop with simulated
time.

It is loaded in every pytest run of everybody who has stormlet installed, so it imports nothing until a marked
test runs. It stands beside pytest-asyncio and anyio: a test belongs to the plugin whose marker it carries.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

MARKER: Final = "simulated_time"

_ROUNDS_TO_END: Final = 100
"""Rounds of the loop that tasks have to end in after the test, without time passing: cancelled ones need a
few."""


class _Simulation:
    """What a marked test asks for; kept from its set-up, because other plugins may wrap the function
    afterwards."""

    def __init__(self, name: str, test: Callable[..., Awaitable[object]], seed: int) -> None:
        self.name = name
        self.seed = seed
        self._test = test

    def run(self, fixtures: Mapping[str, object]) -> list[str]:
        """Run the test and give a line for each task that it left pending; raises what the test raises."""
        import asyncio
        from functools import partial

        from stormlet.testing.loop import SimulatedLoop

        wanted = inspect.signature(self._test).parameters
        arguments = {name: value for name, value in fixtures.items() if name in wanted}
        with asyncio.Runner(loop_factory=partial(SimulatedLoop, self.seed)) as runner:
            return runner.run(self._body(arguments))

    async def _body(self, arguments: Mapping[str, object]) -> list[str]:
        """The one task of the test, under its name."""
        import asyncio

        from stormlet.testing.loop import describe_task, pending_tasks

        own = asyncio.current_task()
        assert own is not None
        own.set_name(self.name)
        await self._test(**arguments)
        loop = asyncio.get_running_loop()
        for _ in range(_ROUNDS_TO_END):
            if len(pending_tasks(loop)) == 1:
                break
            await asyncio.sleep(0)
        return [describe_task(task) for task in pending_tasks(loop) if task is not own]


_SIMULATION: Final = pytest.StashKey[_Simulation]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    text = "run this `async def` test on an event loop with simulated time (stormlet.testing.SimulatedLoop)"
    config.addinivalue_line("markers", f"{MARKER}(seed=0): {text}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a marker that cannot be obeyed before any fixture is set up."""
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return
    seed = marker.kwargs.get("seed", 0)
    if marker.args or marker.kwargs.keys() - {"seed"} or type(seed) is not int:
        pytest.fail(
            f"{item.nodeid}: write @pytest.mark.{MARKER} or @pytest.mark.{MARKER}(seed=7)", pytrace=False
        )
    if not isinstance(item, pytest.Function) or not _is_ours_to_run(item):
        pytest.fail(
            f"{item.nodeid} is marked {MARKER}, but it is not an `async def` test function; "
            "a plain function can call stormlet.testing.run_simulated(coroutine) instead",
            pytrace=False,
        )
    item.stash[_SIMULATION] = _Simulation(item.name, item.obj, seed)


def _is_ours_to_run(item: pytest.Function) -> bool:
    """Whether it is a coroutine function that no class runs in its own way, as unittest's do."""
    from unittest import TestCase

    of_unittest = item.cls is not None and issubclass(item.cls, TestCase)
    return inspect.iscoroutinefunction(item.obj) and not of_unittest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked test; a task that outlives it fails it, which asyncio would only cancel in silence."""
    simulation = pyfuncitem.stash.get(_SIMULATION, None)
    if simulation is None:
        return None
    leaked = simulation.run(pyfuncitem.funcargs)
    if leaked:
        lines = "".join(f"\n  {line}" for line in leaked)
        pytest.fail(
            f"the test ended, but these tasks of it did not (await or cancel them):{lines}", pytrace=False
        )
    return True
