"""A source of numbers that cuts epochs itself, and committers that note what they get."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from stormlet import Committer, EndOfStream, Epoch, SpoutCollector, TaskContext
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.model.components import EpochSpout, SourceEpoch


class Source:
    """What outlives the runs: it gives numbers in epochs of so many, from the first one that was not done on, and makes
    the spouts."""

    cuts_epochs = True
    resumes = True
    resumable = True

    def __init__(
        self, total: int, size: int, *, buries: bool = True, at_once: int = 7, drains: bool = True
    ) -> None:
        self.total = total
        self.size = size
        self.buries = buries
        self.at_once = at_once
        self.drains = drains
        self.done = 0
        """Epochs that were told to be durable."""
        self.events: list[Any] = []
        self.skipped: list[int] = []
        self.given_back: list[tuple[int, Failure, object]] = []

    def numbers(self, epoch: int) -> Sequence[int]:
        return range(epoch * self.size, min((epoch + 1) * self.size, self.total))

    def __call__(self) -> Numbers:
        return Numbers(self)


class Numbers(EpochSpout[int]):
    """Emits each epoch until it is told that it is durable."""

    restartable = False

    def __init__(self, source: Source) -> None:
        self.source = source
        self.buries = source.buries
        self.epoch: SourceEpoch | None = None
        self.left: list[int] = []

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        position = cast("tuple[str, int] | None", context.resume.get(None))
        self.durable = -1 if position is None else position[1]

    def next_tuple(self, out: SpoutCollector[int]) -> Awaitable[None] | None:
        source = self.source
        if self.epoch is not None and (self.epoch.ended or self.epoch.is_told):
            return self.conclude(self.epoch, out)
        if self.epoch is None:
            while source.done <= self.durable:
                source.skipped.append(source.done)
                source.done += 1
            if not source.numbers(source.done):
                raise EndOfStream
            self.left = list(source.numbers(source.done))
            self.epoch = out.begin_epoch(source.done, "numbers")
        now, self.left = self.left[: source.at_once], self.left[source.at_once :]
        out.emit_many(now, message_ids=now)
        if not self.left:
            self.epoch.end()
        return None

    async def conclude(self, epoch: SourceEpoch, out: SpoutCollector[int]) -> None:
        failure = await epoch.told()
        if out.pending:
            out.pause_until_own_settled()
            return
        self.epoch = None
        if failure is None:
            self.source.events.append(("done", self.source.done))
            self.source.done += 1
        else:
            self.source.given_back.append((self.source.done, failure, epoch.blamed))
        out.wake()

    def drain(self) -> None:
        if self.source.drains and self.epoch is not None and not self.epoch.ended:
            self.epoch.give_back(Failure(FailureKind.SHUTDOWN))

    async def close(self) -> None:
        if self.epoch is not None and self.epoch.is_told and await self.epoch.told() is None:
            self.source.done += 1


class Notes(Committer[int]):
    """Notes the rows of epochs."""

    def __init__(self, note: Callable[[Epoch, Sequence[int]], object]) -> None:
        self.note = note

    def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
        self.note(epoch, rows)
