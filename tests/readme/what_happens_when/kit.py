"""The components that several of these tests use."""

from __future__ import annotations

from stormlet import (
    BasicBolt,
    Collector,
    EndOfStream,
    Failure,
    FailureKind,
    Spout,
    SpoutCollector,
    TaskContext,
    Tuple,
)
from tests.helpers import now


class FailsAtFirst(BasicBolt[object, None]):
    """Raises at the first attempts of each message."""

    attempts = 2

    def __init__(self) -> None:
        self.seen: list[tuple[float, object, int]] = []

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Note the call, and raise at the first attempts at "odd"."""
        self.seen.append((round(now(), 1), tup.value, tup.attempt))
        if tup.value == "odd" and tup.attempt <= self.attempts:
            raise ConnectionError("not yet")


class EmitsOnce(Spout[int]):
    """Emits 1, and notes what it hears of it."""

    heard: list[tuple[object, FailureKind | None]]

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.heard = []
        self.left = [1]

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.left:
            raise EndOfStream
        out.emit(self.left.pop(), message_id="one")

    def ack(self, message_id: object) -> None:
        self.heard.append((message_id, None))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.heard.append((message_id, failure.kind))
