"""A spout in the hands of a test (Storm's ``FeederSpout`` and ``AckTracker``)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Generic, TypeVar

from stormlet.core.components import DEFAULT_STREAM, ReliableSpout, Spout, SpoutCollector, TaskContext
from stormlet.core.outcomes import Failure
from stormlet.errors import EndOfStream

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fed(Generic[T]):
    """One message of a :class:`Feeder`."""

    value: T
    message_id: object
    stream: str = DEFAULT_STREAM
    origin: object = None


@dataclass(frozen=True, slots=True)
class Settled(Generic[T]):
    """What a :class:`Feeder` was told of a message."""

    value: T
    message_id: object
    failure: Failure | None
    """Why it failed; None if it was acked."""
    at: float
    """When, by the clock of the loop, in seconds."""


class Feeder(Generic[T]):
    """The source of a spout: ``topology.spout("lines", feeder)`` emits what the test feeds it, when it is asked
    for it, and notes every ack and fail.

    With ``replays`` the engine replays what fails (law S6), and the feeder hears the final outcome only.
    ``outputs`` is what the streams carry, as for :meth:`Topology.spout <stormlet.topology.Topology.spout>`. It serves
    one task.
    """

    single_task: ClassVar[bool] = True

    def __init__(self, *, replays: bool = False, outputs: object = None) -> None:
        self.outputs = outputs
        self.outcomes: list[Settled[T]] = []
        """Every outcome, in the order in which they were told."""
        self._replays = replays
        self._ids = count()
        self._waiting: deque[Fed[T]] = deque()
        self._emitted: dict[object, T] = {}
        self._ended = False
        self._out: SpoutCollector[T] | None = None

    def __call__(self) -> Spout[T]:
        """The spout."""
        return _ReplayedSpout(self) if self._replays else _FedSpout(self)

    def feed(
        self, value: T, *, message_id: object = None, stream: str = DEFAULT_STREAM, origin: object = None
    ) -> object:
        """Have this emitted and tracked as soon as there is room; return its message id, by default a number. May be
        called before the topology runs.

        Raises :class:`ValueError` after :meth:`end`.
        """
        id = next(self._ids) if message_id is None else message_id
        self._feed(Fed(value, id, stream, origin))
        return id

    def feed_untracked(self, value: T, *, stream: str = DEFAULT_STREAM) -> None:
        """Have this emitted without a message id: nobody is told what becomes of it (law L10).

        Raises :class:`ValueError` after :meth:`end`.
        """
        self._feed(Fed(value, None, stream))

    def end(self) -> None:
        """Nothing more comes: the spout ends when all this was emitted."""
        self._ended = True
        self._wake()

    @property
    def acked(self) -> list[T]:
        """The values of the messages that were acked, in this order."""
        return [each.value for each in self.outcomes if each.failure is None]

    @property
    def failed(self) -> list[T]:
        """The values of the messages that failed, in this order."""
        return [each.value for each in self.outcomes if each.failure is not None]

    @property
    def pending(self) -> Sequence[T]:
        """The values of the messages that were emitted and have no outcome yet."""
        return list(self._emitted.values())

    def _feed(self, fed: Fed[T]) -> None:
        if self._ended:
            raise ValueError(f"{fed.value!r} was fed to a feeder that has ended")
        self._waiting.append(fed)
        self._wake()

    def _wake(self) -> None:
        if self._out is not None:
            self._out.wake()

    def emit_next(self, out: SpoutCollector[T]) -> None:
        """The spout's ``next_tuple``."""
        if self._waiting:
            fed = self._waiting.popleft()
            if fed.message_id is not None:
                self._emitted[fed.message_id] = fed.value
            out.emit(fed.value, message_id=fed.message_id, stream=fed.stream, origin=fed.origin)
        elif self._ended:
            raise EndOfStream

    def serve(self, out: SpoutCollector[T] | None) -> None:
        """The spout's ``open`` and ``close``."""
        self._out = out

    def note(self, message_id: object, failure: Failure | None) -> None:
        """The spout's ``ack`` and ``fail``."""
        now = asyncio.get_running_loop().time()
        self.outcomes.append(Settled(self._emitted.pop(message_id), message_id, failure, now))


class _FedSpout(Spout[T]):
    def __init__(self, feeder: Feeder[T]) -> None:
        self._feeder = feeder

    def open(self, context: TaskContext, out: SpoutCollector[T]) -> None:
        self._feeder.serve(out)

    def next_tuple(self, out: SpoutCollector[T]) -> None:
        self._feeder.emit_next(out)

    def ack(self, message_id: object) -> None:
        self._feeder.note(message_id, None)

    def fail(self, message_id: object, failure: Failure) -> None:
        self._feeder.note(message_id, failure)

    def close(self) -> None:
        self._feeder.serve(None)


class _ReplayedSpout(_FedSpout[T], ReliableSpout[T]):
    """What fails is emitted again by the engine."""
