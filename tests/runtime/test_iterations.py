"""What is to be called in the next iteration of the loop is called in it, whatever else is."""

from __future__ import annotations

import asyncio
import time

import pytest

from stormlet.runtime.slices import TimedSlices


class Ends(KeyboardInterrupt):
    """Comes out of the loop."""


def test_a_callback_that_ends_the_process_takes_no_other_with_it() -> None:
    """Outboxes of other tasks flush by theirs (law F1)."""
    loop = asyncio.new_event_loop()
    slices, called = TimedSlices(loop, 0.002, time.monotonic), list[str]()

    def end() -> None:
        raise Ends

    slices.call_next(lambda: called.append("first"))
    slices.call_next(end)
    slices.call_next(lambda: called.append("last"))
    try:
        with pytest.raises(Ends):
            loop.run_until_complete(asyncio.sleep(0.01))
        assert called == ["first"]
        loop.run_until_complete(asyncio.sleep(0))
        assert called == ["first", "last"]
    finally:
        loop.close()


def test_an_error_of_the_engine_hides_no_callback() -> None:
    """What has raised is called again, and the others once (law N2)."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: called.append(repr(context["exception"])))
    slices, called = TimedSlices(loop, 0.002, time.monotonic), list[str]()

    def fail_once() -> None:
        if "KeyError()" not in called:
            raise KeyError
        called.append("again")

    slices.call_next(lambda: called.append("first"))
    slices.call_next(fail_once)
    slices.call_next(lambda: called.append("last"))
    try:
        loop.run_until_complete(asyncio.sleep(0.01))
    finally:
        loop.close()
    assert called == ["first", "KeyError()", "again", "last"]


def test_who_begins_another_slice_overtakes_nobody() -> None:
    """Those that wait for their turn come first (law B3); a slice that goes on is none of them."""

    async def ask() -> tuple[bool, bool]:
        slices = TimedSlices(asyncio.get_running_loop(), 1.0, time.monotonic)
        assert slices.begin()
        waiting = asyncio.create_task(slices.turn())
        await asyncio.sleep(0)
        answers = slices.go_on(time.monotonic(), False), slices.go_on(time.monotonic(), True)
        await waiting
        return answers

    assert asyncio.run(ask()) == (False, True)
