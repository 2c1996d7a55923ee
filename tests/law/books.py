"""The books that somebody keeps beside a run, who sees its user code alone (law N1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from stormlet import DeadLetter, FailureKind, Running, Topology, TopologyCrashed, Tree


class Forced(Exception):
    """What a call of the engine raises that is made to."""


@dataclass
class Books:
    """What went in and out of one run."""

    watched: Callable[[], AbstractContextManager[None]]
    taken: list[object] = field(default_factory=list[object])
    """What sources have given to the engine, and the host."""
    processed: list[object] = field(default_factory=list[object])
    """What the last bolt has processed."""
    letters: list[DeadLetter] = field(default_factory=list[DeadLetter])
    """What the sink has."""
    told: list[object] = field(default_factory=list[object])
    """What spouts heard of as failed."""
    trees: list[Tree[Any]] = field(default_factory=list[Tree[Any]])
    unheard: list[object] = field(default_factory=list[object])
    """What only the loop's handler of exceptions got."""
    crash: TopologyCrashed | None = None
    running: Running | None = None

    def source(self, count: int) -> Iterator[int]:
        """So many values."""
        for value in range(count):
            self.taken.append(value)
            yield value

    @asynccontextmanager
    async def run(self, topology: Topology, **options: Any) -> AsyncIterator[Running]:
        """Run it under watch; its crash is noted."""
        block = topology.run(**options)
        running = self.running = await block.__aenter__()
        try:
            with self.watched():
                try:
                    yield running
                except BaseException as error:
                    await block.__aexit__(type(error), error, error.__traceback__)
                    raise
                else:
                    await block.__aexit__(None, None, None)
        except TopologyCrashed as crash:
            self.crash = crash

    def faults(self) -> Iterator[str]:
        """What slipped."""
        assert self.running is not None
        spouts = [each for each in self.running.statistics().components.values() if each.messages]
        messages = sum(each.messages for each in spouts)
        acked = sum(each.acked for each in spouts)
        given_back = sum(each.given_back for each in spouts)
        dead = sum(each.dead_letters for each in spouts)
        left = sum(each.left_over for each in spouts)
        withdrawn = sum(each.withdrawn for each in spouts)
        if messages != acked + given_back + dead + withdrawn + left:
            yield f"{messages} messages, but {acked=} {given_back=} {dead=} {withdrawn=} {left=}"
        if any(each.pending for each in spouts):
            yield "some are pending after the end"
        if len(self.taken) > messages:
            yield f"{len(self.taken)} were taken, but only {messages} counted"
        if acked > len(self.processed):
            yield f"{acked} acked, but only {len(self.processed)} processed"
        buried = [each for each in self.letters if each.failure.kind is not FailureKind.SHUTDOWN]
        if not 0 <= len(buried) - dead <= left:
            yield f"{dead} dead letters are counted, but the sink has {len(buried)}"
        seen = {*self.processed, *self.told, *(each.value for each in self.letters)}
        lost = set(self.taken) - seen
        if len(lost) > left + given_back:
            yield f"{sorted(map(str, lost))} were lost, but only {left} are left over"
        if not all(tree.done for tree in self.trees):
            yield "a tree has no outcome"
