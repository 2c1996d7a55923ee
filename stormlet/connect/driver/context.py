"""The contexts that connectors are given when they connect."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from random import Random

import msgspec

from stormlet.core.settlement.prefix import Front, Prefix
from stormlet.model.components import TaskContext

Fronts = Sequence[tuple[Prefix, Front]]


class TaskOf(msgspec.Struct, frozen=True):
    """The task that connects; see :class:`~stormlet.connect.session.ConnectContext`."""

    topology: str
    component: str
    task_index: int
    parallelism: int
    consumer: str
    connection: int
    random: Random


class SinkTask(TaskOf, frozen=True):
    """The bolt task that connects; see :class:`~stormlet.connect.session.SinkContext`."""

    tell: Callable[[str | None], None]

    def away(self, error: str) -> None:
        """The broker takes nothing."""
        self.tell(error)

    def back(self) -> None:
        """The broker takes values again."""
        self.tell(None)


class SourceTask(TaskOf, frozen=True):
    """The spout task that connects; see :class:`~stormlet.connect.session.SourceContext`."""

    credit: int
    take: Callable[[str, int], Prefix]
    revoke: Callable[[Collection[Prefix]], Awaitable[Fronts]]
    lose: Callable[[Collection[Prefix]], None]
    resume: Mapping[str, str] | None = None

    def assigned(self, name: str, most_uncommitted: int = 10_000) -> Prefix:
        """A partition belongs to this session from now on."""
        return self.take(name, most_uncommitted)

    def revoking(self, places: Collection[Prefix]) -> Awaitable[Fronts]:
        """Partitions are about to be given to somebody else."""
        return self.revoke(places)

    def lost(self, places: Collection[Prefix]) -> None:
        """Partitions belong to somebody else already."""
        self.lose(places)


def consumer_name(context: TaskContext) -> str:
    """Return the same name for this task in each run on this host."""
    return f"{socket.gethostname()}-{context.component}-{context.task_index}"


def random_of(context: TaskContext) -> Random:
    """Return the randomness of a task's connections."""
    return Random(f"{context.topology}/{context.component}/{context.task_index}/connections")
