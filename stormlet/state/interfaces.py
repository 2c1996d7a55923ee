"""Interfaces of stores that have a place: of whoever looks into it, and of whoever owns it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from stormlet.core.state.commits import StateId, Store, Stored


class Rewound(NamedTuple):
    """The end of a state that was rewound, and what it has lost."""

    epoch: int
    """The last epoch now."""
    lost: int
    """The number of epochs that are gone."""
    undelivered: int = 0
    """Rows of these epochs that no committer has had."""
    letters: int = 0
    """Dead letters of these epochs that their sink has not had."""
    tables: Sequence[str] = ()
    """Tables of users, which stay as they are."""


class PlacedReader(Protocol):
    """A state that exists, beside a run that may write it. It sees whole epochs only. Methods block, and raise
    :class:`~stormlet.errors.StateUnusable`."""

    @property
    def path(self) -> Path:
        """The place."""
        ...

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        ...

    def load(self) -> Stored:
        """All that is durable."""
        ...

    def at(self, epoch: int) -> Stored:
        """All that was durable after this epoch, without what was delivered since."""
        ...

    def first_epoch(self) -> int:
        """The first one that can be read."""
        ...

    def topology(self) -> str:
        """The name of the topology that it belongs to."""
        ...

    def check_topology(self, topology: str) -> None:
        """Raise :class:`~stormlet.errors.StateUnusable` for the state of another topology."""
        ...

    def backup(self, path: str) -> None:
        """Write a copy to a new place."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class PlacedStore(Store, Protocol):
    """A store that is changed by hand, too, while no run has it."""

    def rewind(self, epoch: int) -> Rewound:
        """Forget all epochs after this one, and begin another line of epochs."""
        ...

    def epoch_at(self, moment: float) -> int:
        """The last epoch that was durable at a moment, in seconds since 1970."""
        ...

    def drop(self, component: str) -> None:
        """Forget all that is kept under a component's id."""
        ...

    def drop_state(self, state: StateId) -> None:
        """Forget one state of a component."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Have all that is kept under a component's id go by another one."""
        ...
