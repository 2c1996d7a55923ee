"""The search for the components that hold tuples of trees that have timed out (law L14)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice

from stormlet.core.tuples import HELD
from stormlet.runtime.wire.collector import AnyTuple

Unsettled = Callable[[], Iterable[tuple[str, AnyTuple]]]
"""Iterates over the tuples that are queued, in hand or held anywhere, each with its component."""

# One dict of 100,000 trees took 3 ms when it grew for the last time. Its parts take that one after another.
SHARDS = 64


class FoundHolders:
    """The components that hold tuples of a tree, by root.

    They are in many dicts, from which each root is taken when its tree fails: a large one holds the loop for
    milliseconds when it grows and when it is dropped (law F2). The dicts have numbers of what most roots have in
    common, so that the garbage collector does not look into them (before Python 3.14).
    """

    def __init__(self) -> None:
        self._shards: tuple[dict[int, int], ...] = tuple({} for _ in range(SHARDS))
        self._numbers: dict[tuple[str, ...], int] = {}
        self._holders: list[tuple[str, ...]] = []

    def pop(self, root: int, default: tuple[str, ...]) -> tuple[str, ...]:
        """Remove and return the components of this root; ``default`` if none was found."""
        number = self._shards[root % SHARDS].pop(root, None)
        return default if number is None else self._holders[number]

    def add(self, root: int, component: str) -> None:
        """Note that a component holds one more tuple of the tree."""
        shard = self._shards[root % SHARDS]
        # In the order in which they are found, which is that of the plan: two runs of one seed name them alike.
        known = self._holders[shard[root]] if root in shard else ()
        if component not in known:
            shard[root] = self._number((*known, component))

    def _number(self, holders: tuple[str, ...]) -> int:
        number = self._numbers.get(holders)
        if number is None:
            number = self._numbers[holders] = len(self._holders)
            self._holders.append(holders)
        return number


class HolderScan:
    """One pass over all unsettled tuples, a few at a time, so that it never holds the loop for long. A tuple that moves
    on meanwhile is found where it has come to, or not at all."""

    def __init__(self, unsettled: Iterable[tuple[str, AnyTuple]], roots: Container[int]) -> None:
        self.found = FoundHolders()
        # No method of this object, which would make it a cycle that keeps all that it has found.
        self._looks = _look(self.found, unsettled, roots)

    def advance(self, most: int) -> int:
        """Look at so many more tuples; return the number looked at, which is smaller when there are no more."""
        return sum(islice(self._looks, most))


def _look(
    found: FoundHolders, unsettled: Iterable[tuple[str, AnyTuple]], roots: Container[int]
) -> Iterator[int]:
    for component, tup in unsettled:
        if tup.state <= HELD:  # else it was settled since the scan came to its task
            # Of most tuples the one root is at hand; roots would make a tuple of it.
            for root in (tup.root,) if tup.root else tup.roots:
                if root in roots:
                    found.add(root, component)
        yield 1
