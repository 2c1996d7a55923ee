"""The source of a spout task, as the task sees it; for the sources there are, see :mod:`stormlet.runtime.feeds`."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from stormlet.core.components import TaskContext
from stormlet.runtime.tracker import Settle


class Feed(Protocol):
    """Where a spout task gets its tuples from."""

    @property
    def ended(self) -> bool:
        """Whether there will be no more."""
        ...

    @property
    def passive(self) -> bool:
        """Whether nothing comes by itself: the host feeds the spout."""
        ...

    @property
    def restartable(self) -> bool:
        """Whether its task may go on after an exception, with the feed that :meth:`renewed` gives."""
        ...

    @property
    def way_out(self) -> str:
        """Why it is not restartable, and what would make it so, in words; empty if there is nothing to say."""
        ...

    @property
    def survives_kills(self) -> bool:
        """Whether it still can be asked for more after it was cancelled while the task awaited it."""
        ...

    @property
    def dies(self) -> bool:
        """Whether it is an instance of user code that dies with its task, and must be closed."""
        ...

    @property
    def unsent(self) -> int:
        """How many values the source has given that could not be emitted yet."""
        ...

    @property
    def resumes(self) -> bool:
        """Whether another run goes on from what :meth:`close` has noted."""
        ...

    def renewed(self) -> Feed:
        """What the restarted task goes on with: itself, or another one, which must be opened."""
        ...

    def open(self, context: TaskContext) -> Awaitable[None] | None:
        """Before anything else."""
        ...

    def switch(self, active: bool) -> Awaitable[None] | None:
        """The topology was activated or deactivated."""
        ...

    def ask(self, most: int) -> Awaitable[None] | None:
        """Emit at most so many tuples, or fewer; an awaitable must be awaited before the next call."""
        ...

    @property
    def settle(self) -> Settle | None:
        """Tells the outcome of a message of a ``Spout`` class, if that wants to know."""
        ...

    def end(self) -> Awaitable[None] | None:
        """There shall be no more tuples: the topology drains."""
        ...

    def close(self) -> Awaitable[None] | None:
        """After everything else."""
        ...
