"""The store of a run and its thread: one epoch is written at a time (law X4, X14)."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from stormlet.core.state.commits import Commit, Store
from stormlet.runtime.other_threads import make_way
from stormlet.runtime.slices import Activity


class EpochWriter:
    """Writes epochs, in a thread; or at once, under simulated time (law X14) and where nothing waits for a disk."""

    def __init__(
        self,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        activity: Activity,
        failed: Callable[[int, Exception], None],
        name: str,
        *,
        inline: bool,
    ) -> None:
        """``failed`` takes the number of an epoch that was not written, and the error; ``name`` is the thread's."""
        self._store = store
        self._loop = loop
        self._activity = activity
        self._failed = failed
        self._thread = None if inline else ThreadPoolExecutor(1, name)
        self._writing: asyncio.Future[None] | None = None
        self._in_thread: concurrent.futures.Future[None] | None = None
        """The write that was begun last."""

    def write(
        self, commit: Commit, then: Callable[[], None], first: Callable[[], None] | None = None
    ) -> None:
        """Write an epoch, after what is to be done ``first``; ``then`` is called when it is durable."""
        if self._thread is None:
            try:
                self._write(commit, first)
            except Exception as error:
                self._failed(commit.epoch, error)
            else:
                then()
            return
        self._activity.begin()
        self._in_thread = self._thread.submit(self._write, commit, first)
        self._writing = asyncio.wrap_future(self._in_thread, loop=self._loop)
        self._writing.add_done_callback(partial(self._written, commit.epoch, then))
        make_way(self._loop, self._writing, partial(concurrent.futures.wait, [self._in_thread]))

    def _write(self, commit: Commit, first: Callable[[], None] | None) -> None:
        if first is not None:
            first()
        self._store.commit(commit)

    def _written(self, epoch: int, then: Callable[[], None], writing: asyncio.Future[None]) -> None:
        self._writing = None
        try:
            if writing.cancelled():  # the loop is being closed
                return
            error = writing.exception()
            if error is None:
                then()
            elif isinstance(error, Exception):
                self._failed(epoch, error)
            else:
                raise error
        finally:
            self._activity.end()

    def block(self) -> None:
        """Hold up the loop until what is being written is durable; raises what the write has raised."""
        if self._in_thread is not None:
            self._in_thread.result()

    async def wait(self) -> None:
        """Wait until what is being written is durable, or has failed."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    async def close(self, last: Callable[[], None]) -> None:
        """Do this last thing with the store, and let go of it."""
        if self._thread is None:
            self._end(last)
        else:
            try:
                ending = self._loop.run_in_executor(self._thread, self._end, last)
                make_way(self._loop, ending)
                await ending
            finally:
                self._thread.shutdown(wait=False)

    def _end(self, last: Callable[[], None]) -> None:
        try:
            last()
        finally:
            self._store.close()
