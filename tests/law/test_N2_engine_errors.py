"""Errors of the engine itself (law N2)."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from functools import partial

import pytest

from stormlet import Failure, Spout, SpoutCollector, Topology, TopologyCrashed
from stormlet.errors import EndOfStream
from tests.cast import ignore, raise_value_error
from tests.engines import Engine
from tests.helpers import interpreted_only, run_to_end
from tests.law.cancelled import simulated
from tests.law.conserved import SCENARIOS
from tests.law.forced_errors import Scenario, run, strikes_of


@pytest.fixture
def collected() -> Iterator[None]:
    """Coroutines that were never awaited are reported here, and not in another test."""
    yield
    gc.collect()


@interpreted_only
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("collected")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_N2_no_message_slips_whatever_call_of_the_engine_raises(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of them, one after the other, as a traced run has found them."""
    caplog.set_level(logging.CRITICAL)
    logging.disable(logging.ERROR)
    try:
        strikes = strikes_of(scenario, turn=SCENARIOS.index(scenario))
        faults = {str(strike): list(run(scenario, strike)[1].faults()) for strike in strikes}
    finally:
        logging.disable(logging.NOTSET)
    assert len(strikes) > 200
    assert {strike: found for strike, found in faults.items() if found} == {}


@simulated
@interpreted_only
async def test_N2_an_error_of_the_engine_is_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would come again, and what it left half done would be trusted; the crash names the engine, not user code."""
    monkeypatch.setattr("stormlet.runtime.spout.tracker.Tracker._settle_failed", raise_value_error)
    topology = Topology("broken")
    topology.bolt("bolt", raise_value_error, topology.spout("spout", [1]).shuffle())
    with pytest.raises(TopologyCrashed, match=r"the engine's part of spout\[0\] raised") as caught:
        await run_to_end(topology)
    assert isinstance(caught.value.__cause__, TypeError)


class Stopping(Spout[int]):
    """Lets a StopIteration out of one of its methods, once."""

    def __init__(self, method: str, raised: list[str]) -> None:
        self._method = method
        self._raised = raised
        self._values = iter(range(3))

    def _raise_in(self, method: str) -> None:
        if method == self._method and not self._raised:
            self._raised.append(method)
            next(iter(()))

    def activate(self) -> None:
        self._raise_in("activate")

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        self._raise_in("next_tuple")
        value = next(self._values, None)
        if value is None:
            raise EndOfStream
        out.emit(value, message_id=value)

    def ack(self, message_id: object) -> None:
        self._raise_in("ack")

    def fail(self, message_id: object, failure: Failure) -> None:
        self._raise_in("fail")


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("method", ["activate", "next_tuple", "ack", "fail"])
async def test_N2_a_stop_iteration_of_a_spout_is_no_error_of_the_engine(method: str) -> None:
    """Though Python raises another error where one would leave a coroutine."""
    topology = Topology("t")
    spout = topology.spout("spout", partial(Stopping, method, raised := []))
    topology.bolt("bolt", raise_value_error if method == "fail" else ignore, spout.shuffle())
    running = await run_to_end(topology)
    assert (raised, running.statistics().components["spout"].restarts) == ([method], 1)


class EndingIn(Stopping):
    """Lets an EndOfStream out instead, where it means nothing."""

    def _raise_in(self, method: str) -> None:
        if method == self._method and not self._raised:
            self._raised.append(method)
            raise EndOfStream


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("method", ["activate", "ack", "fail"])
async def test_N2_an_end_of_stream_outside_of_next_tuple_is_the_users_error(method: str) -> None:
    """Its task is restarted, as by any other exception."""
    topology = Topology("t")
    spout = topology.spout("spout", partial(EndingIn, method, raised := []))
    topology.bolt("bolt", raise_value_error if method == "fail" else ignore, spout.shuffle())
    running = await run_to_end(topology)
    assert (raised, running.statistics().components["spout"].restarts) == ([method], 1)


@simulated
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_N2_a_stop_iteration_of_a_bolt_is_no_error_of_the_engine(
    engine: Engine, concurrency: int
) -> None:
    """A bolt that is to die of it does, and lives on."""
    raised: list[int] = []

    def bolt(value: int) -> None:
        if not raised:
            raised.append(value)
            next(iter(()))

    topology = Topology("t")
    spout = topology.spout("spout", range(3))
    topology.bolt("bolt", bolt, spout.shuffle(), on_error="restart", concurrency=concurrency)
    running = await engine.run_to_end(topology)
    assert running.statistics().components["bolt"].restarts == 1
    assert running.statistics().components["spout"].acked == 3
