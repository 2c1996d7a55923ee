"""The durable state of a topology in one run: the store, what it has, and the states of bolts (law X1, K4, K5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from stormlet.core.commits import Store, Stored
from stormlet.core.epochs import EpochAccount
from stormlet.core.states import State
from stormlet.runtime.epoch import OpenEpoch


class KeptState:
    """The store of a run, and what it has when the run begins."""

    def __init__(self, store: Store, stored: Stored) -> None:
        self.store = store
        self._stored = stored
        self.states: Sequence[State] = ()

    @property
    def positions(self) -> Mapping[str, bytes]:
        """The positions of the sources, by task."""
        return self._stored.positions

    def open_epoch(self, most: int) -> OpenEpoch:
        """The first epoch of the run, of at most so many messages."""
        return OpenEpoch(EpochAccount(most, self._stored.epoch + 1))


async def opened_state(open_store: Callable[[], Store]) -> KeptState:
    """Open a store and read it; raises :class:`~stormlet.errors.StateUnusable`."""
    # In a thread, as a large state takes seconds; simulated time knows no threads (law X14).
    if getattr(asyncio.get_running_loop(), "simulated_time", False):
        return _read(open_store())
    return await asyncio.to_thread(lambda: _read(open_store()))


def _read(store: Store) -> KeptState:
    try:
        return KeptState(store, store.load())
    except BaseException:
        store.close()
        raise
