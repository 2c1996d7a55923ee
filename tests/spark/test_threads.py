"""Threads for calls that block."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from stormlet.spark.threads import CallThread, in_thread, post, resolve


def test_a_post_to_a_closed_loop_does_nothing() -> None:
    """A thread that ends after its run has no loop to report to."""
    loop = asyncio.new_event_loop()
    loop.close()
    post(loop, pytest.fail, "called back")


@pytest.mark.asyncio
async def test_a_future_that_is_done_keeps_its_result() -> None:
    """A late outcome changes nothing, and raises nothing in the loop."""
    future = asyncio.get_running_loop().create_future()
    resolve(future, 1, None)
    resolve(future, 2, ValueError("late"))
    assert await future == 1


@pytest.mark.asyncio
async def test_an_exception_of_the_thread_is_raised() -> None:
    """The caller gets the exception of a blocking call."""
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0, "divide")


@pytest.mark.asyncio
async def test_close_waits_for_a_call_whose_wait_was_cancelled() -> None:
    """A call goes on when its wait is cancelled, and the thread ends after it."""
    thread, go_on, ended = CallThread("t"), threading.Event(), list[int]()
    call = asyncio.create_task(thread.call(lambda: go_on.wait() and ended.append(1)))
    await asyncio.sleep(0)
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    asyncio.get_running_loop().call_later(0.01, go_on.set)
    await thread.close()
    assert ended == [1]
