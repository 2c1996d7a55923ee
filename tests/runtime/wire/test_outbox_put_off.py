"""A flush is put off while one call after another comes back at once, and not for long (law F1)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from stormlet.runtime.wire.outbox import CALLS_BETWEEN_TRIES, LONGEST_PUT_OFF, Control, Outbox

pytestmark = pytest.mark.simulated_time


class Iterations:
    """A loop's iterations, one at a time, and a clock beside them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sent = 0
        self._due: list[Callable[[], None]] = []
        loop: Any = SimpleNamespace(call_soon=self._due.append, get_debug=lambda: False)
        self.outbox = Outbox(loop, self._due.append, [self._post], lambda: self.now, pytest.fail)
        self.outbox.enter()
        self.outbox.ack(1, 2)

    def _post(self, control: Control) -> None:
        self.sent += control.acks.count

    def pass_one(self) -> None:
        """Have everything called that is due in the next one."""
        due, self._due[:] = list(self._due), []
        for callback in due:
            callback()

    @property
    def is_armed(self) -> bool:
        """True if anything is due."""
        return bool(self._due)


async def test_what_a_suspended_task_has_not_sent_leaves_in_the_next_iteration() -> None:
    """Where no other call waits behind it."""
    loop = Iterations()
    loop.outbox.suspend()
    loop.pass_one()
    assert loop.sent == 1
    assert not loop.is_armed


async def test_a_call_that_does_not_come_back_at_once_hides_nothing() -> None:
    """What is unsent leaves in the iteration after the next one."""
    loop = Iterations()
    loop.outbox.suspend_call()
    loop.pass_one()
    assert not loop.sent
    loop.pass_one()
    assert loop.sent == 1
    assert not loop.outbox.come_back()


async def test_calls_that_come_back_at_once_put_the_flush_off() -> None:
    """Until the longest time is over, in which each of them is told that nothing was flushed."""
    loop = Iterations()
    loop.outbox.suspend_call()
    for _ in range(50):
        loop.pass_one()
        assert loop.outbox.come_back()
        loop.outbox.suspend_call()
        loop.now += LONGEST_PUT_OFF / 100
    assert not loop.sent
    loop.now = LONGEST_PUT_OFF
    loop.pass_one()
    assert loop.sent == 1
    assert not loop.outbox.come_back()


async def test_the_end_of_a_slice_sends_what_was_put_off() -> None:
    """And the flush that is still scheduled comes, once."""
    loop = Iterations()
    loop.outbox.suspend_call()
    loop.pass_one()
    assert loop.outbox.come_back()
    loop.outbox.leave()
    assert loop.sent == 1
    loop.outbox.ack(3, 4)
    loop.pass_one()
    assert loop.sent == 2
    assert not loop.is_armed


@pytest.mark.parametrize("away", [True, False])
async def test_a_call_that_was_away_is_known_by_what_was_sent_meanwhile(away: bool) -> None:
    """Also if its user code has acked something since, which armed another flush."""
    loop = Iterations()
    loop.outbox.suspend_call()
    for _ in range(2 * away):
        loop.pass_one()
    loop.outbox.ack(3, 4)
    if not loop.outbox.armed:
        loop.outbox.arm()
    assert loop.outbox.come_back() is not away


async def test_a_flush_that_was_put_off_in_vain_is_not_put_off_soon_again() -> None:
    """The next calls probably take as long, and their flushes would come no later than these."""
    loop = Iterations()
    loop.outbox.suspend_call()
    loop.pass_one()
    loop.pass_one()
    assert not loop.outbox.come_back()
    put_off = 0
    for number in range(CALLS_BETWEEN_TRIES + 1):
        loop.outbox.leave()
        loop.outbox.enter()
        loop.outbox.ack(3 + number, 4)
        before = loop.sent
        loop.outbox.suspend_call()
        loop.pass_one()
        put_off += loop.sent == before
        loop.outbox.come_back()
    assert put_off == 1
