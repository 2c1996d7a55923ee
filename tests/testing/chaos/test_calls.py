"""Work of a call, told from its end and from pauses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stormlet.runtime.slow_code import suspended_frames
from stormlet.testing.chaos.calls import work_in

Function = Callable[[], Coroutine[Any, Any, None]]


async def moment() -> None:
    """Something to wait for."""
    await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def closing() -> AsyncIterator[None]:
    yield
    await moment()


# Each waits when it has acked, of which nothing is to be seen here.


async def works() -> None:
    await moment()


async def sleeps_first() -> None:
    await asyncio.sleep(0)
    print("and works then")


async def works_in_a_loop() -> None:
    for _ in range(2):
        await moment()


async def works_in_a_handler() -> None:
    try:
        raise OSError
    except OSError:
        await asyncio.sleep(1)
        print("and works then")


async def works_after_a_match() -> None:
    match 1:
        case 1:
            await asyncio.sleep(1)
        case _:
            pass
    print("and works then")


async def enters() -> None:
    async with asyncio.timeout(1):
        await moment()


async def ends_a_block() -> None:
    async with closing():
        pass


async def ends_in_finally() -> None:
    try:
        pass
    finally:
        await moment()


async def pauses() -> None:
    await asyncio.sleep(1)


async def pauses_and_returns() -> None:
    for _ in range(2):
        if _ == 0:
            await asyncio.sleep(1)
            return
    print("never")


async def pauses_in_a_loop() -> None:
    for _ in range(9):
        await asyncio.sleep(1)


async def pauses_in_the_last_branch() -> None:
    if moment:
        async with asyncio.timeout(10):
            await asyncio.sleep(1)
    else:
        print("never")


async def place_of(function: Function, acked_in: Function | None = None) -> str | None:
    """Where it works when it is first suspended."""
    task = asyncio.create_task(function())
    await asyncio.sleep(0)
    frames = list(suspended_frames(task.get_coro()))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    work = work_in(frames, (acked_in or function).__code__)  # type: ignore[attr-defined]
    return None if work is None else work.function


WORK = [works, sleeps_first, works_in_a_loop, works_in_a_handler, works_after_a_match, enters]
NO_WORK = [
    ends_a_block,
    ends_in_finally,
    pauses,
    pauses_and_returns,
    pauses_in_a_loop,
    pauses_in_the_last_branch,
]


@pytest.mark.simulated_time
@pytest.mark.parametrize("function", WORK, ids=lambda each: each.__name__)
async def test_work(function: Function) -> None:
    """Anything that is awaited, and a pause that something follows."""
    assert await place_of(function) == function.__name__


@pytest.mark.simulated_time
@pytest.mark.parametrize("function", NO_WORK, ids=lambda each: each.__name__)
async def test_no_work(function: Function) -> None:
    """The end of a block, what is in `finally`, and a pause that nothing follows or that is repeated."""
    assert await place_of(function) is None


@pytest.mark.simulated_time
async def test_the_frame_that_has_acked() -> None:
    """Code below it is what it waits for; if it has returned, that is the code of other files."""

    async def outer() -> None:
        await works()

    assert await place_of(outer, works) == "works"
    assert await place_of(outer, enters) == "moment"


@pytest.mark.simulated_time
async def test_code_without_source() -> None:
    """Nobody is accused of what cannot be read."""
    names: dict[str, Any] = {"moment": moment}
    exec("async def unseen():\n    await moment()\n    print()", names)
    assert await place_of(names["unseen"]) is None
    assert work_in([], works.__code__) is None
