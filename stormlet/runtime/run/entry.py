"""The block in which a topology runs."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING

from stormlet.errors import InvalidTopology
from stormlet.report.health import RunState
from stormlet.runtime.epochs.states import KeptState
from stormlet.runtime.run.handle import Running


class Run:
    """``async with topology.run() as running``: leaving the block drains, an exception cancels."""

    def __init__(
        self,
        name: str,
        make: Callable[[KeptState | None], Running],
        open_state: Callable[[], Awaitable[KeptState]] | None = None,
    ) -> None:
        """``name`` is the topology's; ``open_state`` opens the store and reads it, where messages belong to epochs."""
        self._name = name
        self._make = make
        self._open_state = open_state
        self._running: Running | None = None
        self._is_heard_of = False
        """True if it was entered or closed, or has raised an error."""

    def __del__(self) -> None:
        # As of a coroutine that nobody awaits: nothing else would say that nothing runs.
        if not self._is_heard_of:
            way_out = "write `async with topology.run() as running:`"
            text = f"the run of topology {self._name!r} was never entered: {way_out}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def close(self) -> None:
        """Leave it at the checks of ``topology.run()``, which are done, if it is not entered."""
        self._is_heard_of = True

    @property
    def crashed(self) -> bool:
        """Says if user code has crashed it, also while it starts."""
        return self._running is not None and self._running.health().state is RunState.CRASHED

    async def __aenter__(self) -> Running:
        self._is_heard_of = True
        # Its tasks, counts and sources are those of one run: entered twice, they would be mixed.
        if self._running is not None:
            raise InvalidTopology("this run was entered before; call topology.run() again")
        state = None if self._open_state is None else await self._open_state()
        try:
            self._running = self._make(state)
        except BaseException:
            if state is not None:
                state.store.close()
            raise
        await self._running.start()
        return self._running

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._running is not None, "the block was never entered"
        await self._running.leave(error)

    if not TYPE_CHECKING:  # a checker says it by itself, and would be misled

        def __getattr__(self, name: str) -> object:
            self._is_heard_of = self._is_heard_of or not name.startswith("_")
            if name.startswith("_") or not hasattr(Running, name):
                raise AttributeError(f"'Run' object has no attribute {name!r}", name=name, obj=self)
            raise AttributeError(
                f"{name} belongs to the running topology: write `async with topology.run() as "
                f"running:`, and use running.{name}",
                name=name,
                obj=self,
            )
