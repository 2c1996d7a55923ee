"""Bolts that bring the rows of whole epochs to the outside (law X9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from stormlet.core.state.commits import Column, Table
from stormlet.core.state.outgoing import Epoch
from stormlet.core.tuples import Tuple
from stormlet.model.components import BatchBolt, BoltBase
from stormlet.model.state.type_arguments import first_argument

T = TypeVar("T")


class Committer(BoltBase[T, None], Generic[T]):
    """A bolt that gets its inputs epoch by epoch, once they are durable (law X9; Storm's ``ICommitter``).

    ::

        class ToPostgres(Committer[Entry]):
            async def commit(self, epoch, rows):
                async with self.pool.acquire() as db, db.transaction():
                    if await is_new(db, epoch):  # a row in a table of the sink's own
                        await db.executemany("INSERT ...", rows)

    The rows of an epoch are kept with it before :meth:`commit` is called, and brought again until it has returned, also
    by the next run: always the same ones under the same number. With :meth:`Epoch.follows`, which says if they are new,
    each row has its effect exactly once.

    Where ``commit`` raises, the instance is dead: another one is made and prepared, and gets the epoch again, at most
    ``max_restarts`` times in ``restart_window``. Then the topology crashes, and the next run begins with that epoch.

    A committer has one task, so that the epochs come one after another. While it has an epoch in hand, the next one
    runs, and waits for it before it ends.
    """

    needs_acks: ClassVar[bool] = True

    def commit(self, epoch: Epoch, rows: Sequence[T]) -> Awaitable[None] | None:
        """Bring the rows of one epoch to where they belong. Called in the order of the epochs, only for those that have
        rows."""
        raise NotImplementedError(f"{type(self).__name__} must define commit(self, epoch, rows)")


class RowSpec(msgspec.Struct, frozen=True):
    """The rows of one committer, as they are declared."""

    kind: Any
    """Their type; Any for plain data."""
    table: Table | None = None
    """The table of the state that the store writes them to, if there is one."""
    columns_of: Callable[[Any], Sequence[Column]] | None = None
    replaces: bool = False
    """True if an epoch that comes again takes the place of the rows that it has brought before."""
    has_tasks_elsewhere: bool = False
    """True if another engine has the rows written by any number of tasks, without epochs of this one."""


class CommitterFactory:
    """A factory of committers that says by itself what they keep."""

    file: Path | None = None
    """The database that they make, where it is a file of its own."""

    @property
    def rows_kept(self) -> RowSpec | None:
        """The rows; None if what it makes is no committer."""
        raise NotImplementedError


class TableFactory(CommitterFactory, Generic[T]):
    """A factory of committers whose rows are columns of a table."""

    kind: type[T]
    """The type of the rows."""
    table: Table
    in_state: bool
    """True if the table is part of the state, so that it is written by the commit of the epoch itself."""

    def columns_of(self, row: T) -> Sequence[Column]:
        """Return the columns of a row; raise :class:`TypeError` for one that has none."""
        raise NotImplementedError

    @property
    def rows_kept(self) -> RowSpec:
        """Rows of the table, where it is part of the state."""
        return RowSpec(self.kind, self.table, self.columns_of) if self.in_state else RowSpec(self.kind)


class RowKeeper(Protocol):
    """Keeps rows with the open epoch."""

    def dead_among(self, tups: Sequence[Tuple[Any]]) -> Sequence[Tuple[Any]]:
        """Return the inputs among these whose message has failed: nothing that comes of them may be kept (law X6)."""
        ...

    def keep(self, row: Any, of: Sequence[Tuple[Any]]) -> None:
        """Keep a row that comes of these inputs; with it they have reached a committer."""
        ...


class BatchCommitter(BatchBolt[Any, None], Committer[Any]):
    """A committer that makes its rows by itself, of batches of inputs: it may reject some of them, and keep what comes
    of many as one row. It is made by a :class:`CommitterFactory`."""

    keeper: RowKeeper
    """The keeper that its rows go to; there before ``prepare`` is called."""


def row_type(kind: type[Committer[Any]]) -> Any:
    """Return the declared type of the rows of a committer: the type argument of ``Committer``; Any without."""
    return first_argument(kind, Committer)
