"""The complete latency of the messages of one spout task: the time from an emit to the ack of its tree."""

from __future__ import annotations

from collections.abc import Callable

from stormlet.core.histogram import Histogram
from stormlet.core.trees import OpenTree

OLDEST = 60.0
"""Seconds after which another message is measured, if statistics are asked for meanwhile."""

GOLDEN = 0.618033988749895
"""The golden ratio without its whole part: the fractions of its multiples lie evenly between 0 and 1."""


class CompleteLatency:
    """Measures one message at a time."""

    __slots__ = ("_began", "_clock", "_passes", "_share", "times", "tree")

    def __init__(self, clock: Callable[[], float]) -> None:
        self.tree: OpenTree | None = None
        """The message that is being measured."""
        self.times = Histogram()
        """The complete latencies measured, of messages that were acked."""
        self._clock = clock
        self._began = 0.0
        self._passes = 0
        self._share = 0.0

    def begin(self, tree: OpenTree) -> None:
        """Measure this message, which was emitted now, unless it is to be passed over."""
        if self._passes:
            self._passes -= 1
            return
        self.tree = tree
        self._began = self._clock()

    def end(self) -> None:
        """Note that it has its outcome."""
        if self.tree is not None and self.tree.failure is None:
            self.times.add(self._clock() - self._began)
        self.tree = None

    def pass_over(self, most: int) -> None:
        """Pass over some of the next messages, fewer than ``most``, before another one is measured. Their number is
        another one each time, so that messages from all places of an epoch are measured alike."""
        self._share = (self._share + GOLDEN) % 1.0
        self._passes = int(self._share * most)

    def forget(self, tree: OpenTree) -> None:
        """This message has no outcome that is measured."""
        if tree is self.tree:
            self.tree = None

    def forget_old(self) -> None:
        """Let another one be measured in place of an old one: one that is never settled would be the last."""
        if self.tree is not None and self._clock() - self._began > OLDEST:
            self.tree = None
