"""The hands of a test on simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from stormlet.model.number_checks import check_finite
from stormlet.testing.loop import SimulatedLoop


class Simulation:
    """Simulated time, seen from the test that runs on it; the fixture ``sim`` is one.

    Raises :class:`RuntimeError` outside a :class:`~stormlet.testing.SimulatedLoop`.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, SimulatedLoop):
            raise RuntimeError(
                "this event loop has no simulated time: mark the test with @pytest.mark.simulated_time, "
                "or start it with stormlet.testing.run_simulated(...)"
            )
        self._loop = loop

    @property
    def now(self) -> float:
        """Simulated seconds since the test began, its fixtures included."""
        return self._loop.time()

    @property
    def seed(self) -> int:
        """Where the topologies of this test take their randomness from (law L16)."""
        return self._loop.seed

    @contextmanager
    def held(self) -> Generator[None]:
        """Time stands still in this block, for as long as it takes: ``with sim.held(): await service.answer()``."""
        with self._loop.held():
            yield

    async def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Let so much time pass, and everything happen that is due by then, as :meth:`settled` says.

        Raises :class:`ValueError` for a negative time and for what is no finite number, and :class:`RuntimeError` in
        :meth:`held`.
        """
        for name, given in (("days", days), ("hours", hours), ("minutes", minutes), ("seconds", seconds)):
            check_finite("sim.advance", name, given)
        by = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        if by < 0:
            raise ValueError(f"time does not go back: {by:g} s")
        self._check_not_held("advance")
        await self._until(self.now + by)
        await self.settled()

    async def settled(self) -> None:
        """Let everything happen that takes no time: return when each topology is quiescent, or waits for the
        clock or for this test. Raises :class:`RuntimeError` in :meth:`held`."""
        self._check_not_held("settled")
        await self._loop.idle()

    def _check_not_held(self, method: str) -> None:
        if self._loop.is_held_by(asyncio.current_task()):
            raise RuntimeError(
                f"sim.{method} waits for time to pass, which it does not in the block of sim.held()"
            )

    async def _until(self, moment: float) -> None:
        there: asyncio.Future[None] = self._loop.create_future()
        alarm = self._loop.call_at(moment, there.set_result, None)
        try:
            await there
        finally:
            alarm.cancel()
