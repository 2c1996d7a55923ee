"""A spout in the hands of a test (Storm's ``FeederSpout`` and ``AckTracker``)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Generic, TypeVar

from stormlet.core.outcomes import Failure
from stormlet.errors import EndOfStream
from stormlet.model.components import DEFAULT_STREAM, ReliableSpout, Spout, SpoutCollector, TaskContext

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Fed(Generic[T]):
    """One message that waits in a :class:`Feeder`."""

    value: T
    message_id: object
    stream: str = DEFAULT_STREAM
    origin: object = None


@dataclass(frozen=True, slots=True)
class Settled(Generic[T]):
    """The outcome of a message that a :class:`Feeder` got."""

    value: T
    message_id: object
    failure: Failure | None
    """The failure; None if it was acked."""
    at: float
    """The moment, by the clock of the loop, in seconds."""


class Feeder(Generic[T]):
    """The source of a spout: ``topology.spout("lines", feeder)`` emits what the test feeds it, when it is asked
    for it, and notes every ack and fail.

    With ``replays`` the engine replays what fails (law S6), and the feeder gets the final outcome only. It serves
    one task.
    """

    single_task: ClassVar[bool] = True

    def __init__(self, *, replays: bool = False) -> None:
        self._replays = replays
        self._ids = count()
        self._account = _Account[T]()

    def __call__(self) -> Spout[T]:
        """The spout."""
        return _ReplayedSpout(self._account) if self._replays else _FedSpout(self._account)

    def feed(
        self, value: T, *, message_id: object = None, stream: str = DEFAULT_STREAM, origin: object = None
    ) -> object:
        """Have this emitted and tracked as soon as there is room; return its message id, by default a number. May be
        called before the topology runs.

        Raises :class:`ValueError` after :meth:`end`.
        """
        id = next(self._ids) if message_id is None else message_id
        self._account.add(Fed(value, id, stream, origin))
        return id

    def feed_untracked(self, value: T, *, stream: str = DEFAULT_STREAM) -> None:
        """Have this emitted without a message id: nobody learns its outcome (law L10).

        Raises :class:`ValueError` after :meth:`end`.
        """
        self._account.add(Fed(value, None, stream))

    def end(self) -> None:
        """Nothing more comes: the spout ends when all this was emitted."""
        self._account.end()

    @property
    def outcomes(self) -> Sequence[Settled[T]]:
        """Every outcome, in the order in which they came."""
        return tuple(self._account.outcomes)

    @property
    def acked(self) -> list[T]:
        """The values of the messages that were acked, in this order."""
        return [each.value for each in self.outcomes if each.failure is None]

    @property
    def failed(self) -> list[T]:
        """The values of the messages that failed, in this order."""
        return [each.value for each in self.outcomes if each.failure is not None]

    @property
    def pending(self) -> list[T]:
        """The values of the messages that were emitted and have no outcome yet."""
        return [each.value for each in self._account.emitted]


class _Account(Generic[T]):
    """The state that a feeder and its spout share."""

    def __init__(self) -> None:
        self.outcomes: list[Settled[T]] = []
        self.emitted: list[Fed[T]] = []
        self.out: SpoutCollector[T] | None = None
        self._waiting: deque[Fed[T]] = deque()
        self._ended = False

    def add(self, fed: Fed[T]) -> None:
        if self._ended:
            raise ValueError(f"{fed.value!r} was fed to a feeder that has ended")
        self._waiting.append(fed)
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self.out is not None:
            self.out.wake()

    def emit_next(self, out: SpoutCollector[T]) -> None:
        if self._waiting:
            fed = self._waiting.popleft()
            out.emit(fed.value, message_id=fed.message_id, stream=fed.stream, origin=fed.origin)
            if fed.message_id is not None:  # its outcome comes later, and a refused one never (law L17)
                self.emitted.append(fed)
        elif self._ended:
            raise EndOfStream

    def settle(self, message_id: object, failure: Failure | None) -> None:
        fed = next(each for each in self.emitted if each.message_id == message_id)
        self.emitted.remove(fed)
        now = asyncio.get_running_loop().time()
        self.outcomes.append(Settled(fed.value, message_id, failure, now))


class _FedSpout(Spout[T]):
    def __init__(self, account: _Account[T]) -> None:
        self._account = account

    def open(self, context: TaskContext, out: SpoutCollector[T]) -> None:
        self._account.out = out

    def next_tuple(self, out: SpoutCollector[T]) -> None:
        self._account.emit_next(out)

    def ack(self, message_id: object) -> None:
        self._account.settle(message_id, None)

    def fail(self, message_id: object, failure: Failure) -> None:
        self._account.settle(message_id, failure)

    def close(self) -> None:
        self._account.out = None


class _ReplayedSpout(_FedSpout[T], ReliableSpout[T]):
    """Nothing: the engine replays what has failed."""
