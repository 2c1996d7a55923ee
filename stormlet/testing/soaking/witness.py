"""The witness of a simulation, where time is real and a run has no end: what it remembers is bounded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, MutableSet
from typing import Any, TypeVar

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import ACKED, Tuple
from stormlet.model.plan import TaskPlan
from stormlet.runtime.spout.messages import Message
from stormlet.testing.chaos.journal import Journal, Tree
from stormlet.testing.chaos.oracle import StoredTree
from stormlet.testing.chaos.witness import Attempt, Death, Witness

REMEMBERED = 5_000
"""Trees whose outcome is known, in case that more comes of them."""
LINES = 2_000
"""Of the journal."""
LATENESS = 0.05
"""Seconds by which an outcome may seem early: the witness sees a tree at the end of the slice that emitted it."""


class LastLines(Journal):
    """A journal that remembers no trees, and calls each by its root id."""

    def __init__(self, time: Callable[[], float]) -> None:
        super().__init__(time, LINES)

    def tree(self, root: int) -> Tree:
        return Tree(root)


class SteadyWitness(Witness):
    """Judges as it does in a simulation, but for one thing: that a tree timed out although nobody had a tuple of it
    cannot be seen in real time, where its last ack may be on its way."""

    def __init__(self, time: Callable[[], float], journal: Journal) -> None:
        super().__init__(time, journal)
        self.tolerance = LATENESS
        self._begun = self._recently_begun = Recent[Message](REMEMBERED)
        self._acked = Recent[int](REMEMBERED)
        self._settled = Recent[OpenTree](REMEMBERED)
        self._failed = Recent[int](REMEMBERED)
        self.timeouts = 0
        self.lost = 0
        """Messages of whose outcome there is no hope."""
        self.timeouts_reset = False
        """True if a bolt has ever asked for more time for a tree."""
        self.executed_again = 0
        """Inputs that were executed in attempts that then failed."""

    def expect_again(self, messages: int) -> None:
        """So many messages may begin once more, as an epoch that is spoilt has them all (law X6)."""
        self._recently_begun.size = max(REMEMBERED, messages)

    def delivered(self, plan: TaskPlan, tup: Tuple[Any], queued: int) -> None:
        super().delivered(plan, tup, queued)
        for root in tup.roots:
            if root in self._failed:  # nothing will be judged by it any more
                self._tuples.pop(root, None)

    def excuses_request(self, death: Death, task: int, request: object) -> bool:
        """By the order of events: the clock goes on between a request and the call."""
        return death.asked.get(task) == request

    def excuses_end(self, death: Death) -> bool:
        """By the order of events, likewise."""
        return death.at_end

    def check_age(self, most: float) -> None:
        """No message waits for its outcome for longer than so many seconds, unless a bolt asks for more time."""
        if self.timeout is None or self.timeouts_reset:
            return
        earliest = self._time() - most
        self.lost = sum(attempt.began < earliest for attempt in self.open.values())
        if self.lost:
            self.violation("{} messages have had no outcome for {} s", self.lost, most)

    def _judge(self, plan: TaskPlan, attempt: Attempt, failure: Failure | None) -> None:
        if failure is not None:
            self.executed_again += sum(tup.state == ACKED for tup in self._tuples.get(attempt.root, ()))
            self._failed.add(attempt.root)
        super()._judge(plan, attempt, failure)

    def judge(
        self,
        tree: StoredTree[Any],
        failure: Failure | None,
        at: float | None,
        *,
        under_way: bool = False,
        extended: bool = False,
    ) -> None:
        self.timeouts += failure is not None and failure.kind is FailureKind.TIMEOUT
        super().judge(tree, failure, at, under_way=True, extended=extended)


T = TypeVar("T", bound=Hashable)


class Recent(MutableSet[T]):
    """At least the last ``size`` things that were added, and at most twice as many."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._newer = set[T]()
        self._older = set[T]()

    def add(self, value: T) -> None:
        """Remember it."""
        self._newer.add(value)
        if len(self._newer) > self.size:
            self._older, self._newer = self._newer, set[T]()

    def discard(self, value: T) -> None:
        """Forget it, if it is remembered."""
        self._newer.discard(value)
        self._older.discard(value)

    def clear(self) -> None:
        """Forget everything."""
        self._newer.clear()
        self._older.clear()

    def __contains__(self, thing: object) -> bool:
        return thing in self._newer or thing in self._older

    def __iter__(self) -> Iterator[T]:
        return iter(self._newer | self._older)

    def __len__(self) -> int:
        return len(self._newer | self._older)
