"""The complete latency of the messages of one spout task: the time from an emit to the ack of its tree."""

from __future__ import annotations

from collections.abc import Callable

from stormlet.core.histogram import Histogram
from stormlet.core.trees import OpenTree

OLDEST = 60.0
"""Seconds after which another message is measured, if statistics are asked for meanwhile."""


class CompleteLatency:
    """Measures one message at a time."""

    __slots__ = ("_began", "_clock", "times", "tree")

    def __init__(self, clock: Callable[[], float]) -> None:
        self.tree: OpenTree | None = None
        """The message that is being measured."""
        self.times = Histogram()
        """The complete latencies measured, of messages that were acked."""
        self._clock = clock
        self._began = 0.0

    def begin(self, tree: OpenTree) -> None:
        """Measure this message, which was emitted now."""
        self.tree = tree
        self._began = self._clock()

    def end(self) -> None:
        """Note that it has its outcome."""
        if self.tree is not None and self.tree.failure is None:
            self.times.add(self._clock() - self._began)
        self.tree = None

    def forget_old(self) -> None:
        """Let another one be measured in place of an old one: one that is never settled would be the last."""
        if self.tree is not None and self._clock() - self._began > OLDEST:
            self.tree = None
