"""Finds who still holds tuples of the trees that have timed out (law L14)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import islice

from stormlet.runtime.bolts import BoltTask


class HolderScan:
    """One look at everything that is queued, in hand or held, a few tuples at a time, so that it never holds the loop
    for long. A tuple that moves on while it goes is found where it is looked for, or not at all."""

    def __init__(self, tasks: Iterable[BoltTask], roots: Container[int]) -> None:
        self.found: dict[int, tuple[str, ...]] = {}
        """By root, the components that hold tuples of its tree."""
        self._looks = self._look(tasks, roots)

    def advance(self, most: int) -> int:
        """Look at so many more tuples; returns at how many, which are fewer when there are no more."""
        return sum(islice(self._looks, most))

    def _look(self, tasks: Iterable[BoltTask], roots: Container[int]) -> Iterator[int]:
        for task in tasks:
            for tup in task.tuples():
                for root in (tup.root,) if tup.root else tup.roots:
                    if root in roots:
                        self._holds(root, task.plan.component)
                yield 1

    def _holds(self, root: int, component: str) -> None:
        known = self.found.get(root, ())
        if component not in known:
            self.found[root] = (*known, component)
