"""Where suspended coroutines and threads are."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextvars import ContextVar, copy_context

import pytest

from stormlet.runtime.slow_code import frames_of, thread_frames, users_of
from stormlet.runtime.usercode import Within


async def leaf() -> None:
    await asyncio.Event().wait()


async def values() -> AsyncIterator[int]:
    await leaf()
    yield 1


async def by_async_for() -> None:
    async for _ in values():
        pass


async def by_anext_with_default() -> None:
    await anext(values(), None)


async def by_task() -> None:
    await asyncio.create_task(leaf())


async def by_gather() -> None:
    await asyncio.gather(asyncio.sleep(0), leaf())


async def by_wait_for() -> None:
    await asyncio.wait_for(leaf(), 1000)


async def in_a_context() -> None:
    await Within(copy_context(), leaf())


WAYS: list[tuple[Callable[[], Coroutine[object, object, None]], list[str]]] = [
    (leaf, []),
    (by_async_for, ["values", "leaf"]),
    (by_anext_with_default, ["values", "leaf"]),
    (by_task, ["leaf"]),
    (by_gather, ["leaf"]),
    (by_wait_for, ["wait_for", "leaf"] if sys.version_info >= (3, 12) else ["wait_for"]),
    (in_a_context, ["leaf"]),
]


@pytest.mark.simulated_time
@pytest.mark.parametrize(("way", "calls"), WAYS, ids=lambda each: getattr(each, "__name__", ""))
async def test_a_stack_leads_to_what_is_awaited_in_the_end(
    way: Callable[[], Coroutine[object, object, None]], calls: list[str]
) -> None:
    """Through coroutines, async generators, tasks and contexts."""
    task = asyncio.create_task(way())
    await asyncio.sleep(1)
    stack = users_of(frames_of(task))
    task.cancel()
    innermost = [] if calls == ["wait_for"] else ["Event.wait"]  # which it runs in a task of its own
    assert [each.function for each in stack] == [way.__name__, *calls, *innermost]


@pytest.mark.simulated_time
async def test_what_runs_in_a_context_is_ended_in_it() -> None:
    """A cancellation arrives there like every other step (law B10)."""
    variable, ended = ContextVar("variable", default=""), list[str]()

    async def note_the_end() -> None:
        variable.set("inside")
        try:
            await leaf()
        finally:
            ended.append(variable.get())

    task = asyncio.create_task(awaited(Within(copy_context(), note_the_end())))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert (ended, variable.get(), task.cancelled()) == (["inside"], "", True)


async def awaited(awaitable: Awaitable[None]) -> None:
    await awaitable


@pytest.mark.simulated_time
async def test_a_very_deep_stack_has_an_end() -> None:
    """Fifty frames are told, however deep a recursion is."""

    async def deeper(depth: int) -> None:
        await (deeper(depth - 1) if depth else leaf())

    task = asyncio.create_task(deeper(200))
    await asyncio.sleep(1)
    frames = frames_of(task)
    task.cancel()
    assert len(frames) == 50


def test_a_thread_shows_its_own_frames() -> None:
    """What leads there in the standard library is left out."""
    here, on = threading.Event(), threading.Event()

    def work() -> None:
        here.set()
        on.wait()

    thread = threading.Thread(target=work)
    thread.start()
    here.wait()
    frames = thread_frames(thread.ident or 0)
    stack = users_of(frames)
    on.set()
    thread.join()
    assert stack[0].function == "test_a_thread_shows_its_own_frames.work".rpartition(".")[2]
    assert thread_frames(thread.ident or 0) == []
