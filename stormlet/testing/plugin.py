"""The pytest plugin: ``@pytest.mark.simulated_time`` runs an ``async def`` test on a loop with simulated time,
with its async fixtures in the same task.

It is loaded in every pytest run of everybody who has stormlet installed, so it imports nothing until a test is
ours. It stands beside pytest-asyncio and anyio: a test belongs to the plugin whose marker it carries, and so do its
async fixtures of function scope.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from stormlet.testing.claims import Claim
    from stormlet.testing.simulation import Simulation

MARKER: Final = "simulated_time"
LEAKS: Final = "simulated_time_allow_leaks"

_CLAIM: Final = pytest.StashKey["Claim"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for ``pytest.ini`` and its kind."""
    text = "run every `async def` test on simulated time, except those marked for another plugin"
    parser.addini(MARKER, text, type="bool", default=False)
    text = "what tests on simulated time may leave behind: inputs, trees, values, errors, tasks, threads"
    parser.addini(LEAKS, text, type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse options that cannot be obeyed."""
    text = "run this `async def` test on an event loop with simulated time (stormlet.testing.SimulatedLoop)"
    config.addinivalue_line("markers", f"{MARKER}(seed=0, allow_leaks=False): {text}")
    if config.getini(LEAKS):
        _check_leaks(config.getini(LEAKS))
    if config.getini(MARKER) and _asyncio_takes_all(config):
        raise pytest.UsageError(
            f"{MARKER} = true and asyncio_mode = auto both claim every async test: leave out one of them, "
            f"and mark the tests that are for the other"
        )


def _check_leaks(allowed: object) -> None:
    from stormlet.testing.claims import are_options

    if not are_options(allow_leaks=allowed):
        raise pytest.UsageError(
            f"{LEAKS} takes any of inputs, trees, values, errors, tasks, threads, not {allowed!r}"
        )


def _asyncio_takes_all(config: pytest.Config) -> bool:
    if not config.pluginmanager.hasplugin("asyncio"):
        return False
    mode: object = config.getoption("asyncio_mode") or config.getini("asyncio_mode")
    return mode == "auto"


@pytest.fixture
def sim(request: pytest.FixtureRequest) -> Simulation:
    """The simulated time of this test: ``sim.now``, ``await sim.advance(minutes=10)``, ``await
    sim.settled()``."""
    claimed: Claim | None = request.node.stash.get(_CLAIM, None)
    if claimed is None:
        pytest.fail(
            f"{request.node.nodeid} asks for the fixture sim, but does not run on simulated time: "
            f"mark it with @pytest.mark.{MARKER}",
            pytrace=False,
        )
    return claimed.simulation()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Claim the test before any fixture is set up."""
    if item.get_closest_marker(MARKER) is None and not item.config.getini(MARKER):
        return
    from stormlet.testing.claims import claim

    claimed = claim(item)
    if claimed is not None:
        item.stash[_CLAIM] = item.session.stash[_CLAIM] = claimed


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Run an async fixture in the task of our test, before other plugins see that it is async."""
    claimed: Claim | None = request.node.stash.get(_CLAIM, None)
    function = fixturedef.func
    if claimed is None or not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixturedef, "func", claimed.sync_form(function, request))
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test of ours."""
    claimed = pyfuncitem.stash.get(_CLAIM, None)
    if claimed is None:
        return None
    claimed.run(pyfuncitem.funcargs)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """After the fixtures of a test of ours, close its loop and look for what it has left behind."""
    claimed = item.stash.get(_CLAIM, None)
    if claimed is None:
        return (yield)
    del item.stash[_CLAIM], item.session.stash[_CLAIM]
    try:
        result = yield
    except BaseException:
        claimed.abandon()
        raise
    claimed.end()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Close the loop of a test that was interrupted, after its fixtures: there is no teardown of it."""
    try:
        return (yield)
    finally:
        claimed = session.stash.get(_CLAIM, None)
        if claimed is not None:
            claimed.abandon()
