"""One acker shard: its open trees, and the rule by which each is settled (law L2 to L5, L12).

Theory of operation. A tree's checksum is the XOR of the ids of all edges that were created and not yet acked;
each id enters it twice, so it is zero exactly when every tuple of the tree was acked (seed 000). Three
messages change it:

=========  ================================  ==========================================================
message    sent by                           says
=========  ================================  ==========================================================
*init*     a spout's tracked emit            root, XOR of the edges it created, the spout task
*ack*      a bolt's ack of an input          root, the input's edge XOR the edges anchored to it
*fail*     a bolt's fail, or an exception    root, the failure
=========  ================================  ==========================================================

FsShelter (seed 004) says the same with four messages, which map onto these exactly:

==========================================  =================================================
FsShelter                                   here
==========================================  =================================================
``Track`` + every ``Anchor`` of that emit   one *init* with the XOR of the anchors' ids
every ``Anchor`` of a bolt's emits + ``Ok`` one *ack* with the XOR of those ids and the input's
``Fail``                                    *fail*
``Tick``                                    :meth:`Ledger.rotate`
==========================================  =================================================

FsShelter's ``Complete`` is a verdict that is handed out and forgotten: nothing else is kept of a settled tree.

Rules. Messages of one root may arrive in any order; the ones before *init* are kept as an *orphan*, and no
verdict is given before *init* is known (L3). When it is, a recorded fail wins at once, else zero acks at once
(L4). A message for a tree that is not open makes an orphan, which has no effect and rotates away (L5).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol

from stormlet.core.acks import Acks
from stormlet.core.directives import is_extension
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.rotating import RotatingMap
from stormlet.core.trees import OpenTree, tree_table

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython

if TYPE_CHECKING:  # functions of C: the declarations of trees.py have them
    prefetch_for_put: Callable[[Any, list[OpenTree], int], None]
    prefetch_for_get: Callable[[Any, Any, int, int], None]


class AckerLoad:
    """Number of trees that one acker has, and the most that it may have (law L13)."""

    __slots__ = ("limit", "trees")

    def __init__(self, high_water: int | None) -> None:
        self.trees = 0
        """Open trees, and inits that are on their way."""
        # Bounded, as the number is an integer of C where the module is compiled.
        self.limit = sys.maxsize if high_water is None else min(2 * high_water, sys.maxsize)
        """The most trees there may be."""


CHOSEN = 8192
"""Trees that time out are chosen in portions of this size, in the order of their emits. A dict finds its first key by
going past all entries that were taken out before it, so asking it for one key at a time would be quadratic."""


@lru_cache(maxsize=256)
def timed_out(holders: tuple[str, ...]) -> Failure:
    """Return the failure of trees whose tuples these components held: one object for all of them (law L14)."""
    return Failure(FailureKind.TIMEOUT, holders=holders)


class Holders(Protocol):
    """The components that hold tuples of trees which have timed out, by root."""

    def pop(self, root: int, default: tuple[str, ...], /) -> tuple[str, ...]:
        """Remove and return the components that hold tuples of this root; ``default`` if none does."""
        ...


class Orphan:
    """Acks and fails of a root whose *init* has not arrived."""

    __slots__ = ("checksum", "failure")

    def __init__(self) -> None:
        self.checksum = 0
        self.failure: Failure | None = None


class Ledger:
    """The open trees of one shard.

    Input methods change it; verdicts collect in ``acked`` and ``failed`` until the owner takes them.
    """

    __slots__ = ("_activity", "_chosen", "_expiring", "_orphans", "_trees", "acked", "failed", "settled")

    def __init__(self, buckets: int = 3, restarts_on_activity: bool = False) -> None:
        self._trees: RotatingMap[int, OpenTree] = RotatingMap(buckets, make_bucket=tree_table)
        # In buckets of their own, as they rotate away where timeouts are off, too (law L5).
        self._orphans: RotatingMap[int, Orphan] = RotatingMap(buckets)
        self._activity = restarts_on_activity
        # Cohorts that have timed out, the oldest first. Their trees stay open until their turn comes: an ack that is
        # faster wins (law L12).
        self._expiring: list[dict[int, OpenTree]] = []
        self._chosen: list[int] = []
        self.acked: list[OpenTree] = []
        """Trees acked since the owner last took them."""
        self.failed: list[OpenTree] = []
        """Trees failed since the owner last took them, each with its failure."""
        self.settled = 0
        """Verdicts that were ever given."""

    def __len__(self) -> int:
        """The number of open trees; orphans are not counted (law L13)."""
        return len(self._trees) + self.expiring

    @property
    def orphans(self) -> int:
        """The number of roots with messages that came before, or without, their *init*."""
        return len(self._orphans)

    @property
    def expiring(self) -> int:
        """The number of trees that have timed out and wait for :meth:`expire`."""
        return sum(map(len, self._expiring))

    @property
    def next_to_expire(self) -> dict[int, OpenTree] | None:
        """The trees that timed out first of those that wait for :meth:`expire`; None if none waits."""
        while self._expiring and not self._expiring[0]:
            del self._expiring[0]
        return self._expiring[0] if self._expiring else None

    def open_tree(self, root: int) -> OpenTree | None:
        """Return the open tree of this root; None if there is none, or its *init* has not arrived."""
        place = self._place(root)
        return None if place is None else place.get(root)

    def oldest(self) -> Iterator[tuple[int, OpenTree]]:
        """Iterate over the open trees with their roots, those that time out first at the head."""
        return ((root, tree) for place in self._places() for root, tree in place.items())

    @property
    def cohorts(self) -> Sequence[int]:
        """The numbers of open trees by the rotations that they have seen, from none on; the last number is of those
        that wait for :meth:`expire`."""
        # Of a copy, as another thread than the loop's may ask for statistics, and the ledger may rotate meanwhile.
        return [*map(len, tuple(self._trees.buckets)), self.expiring]

    def init(self, trees: list[OpenTree]) -> None:
        """Open these trees. Each enters the newest bucket and takes the place of its orphan, if there is one."""
        orphans = self._orphans
        has_orphans = bool(orphans)  # rarely, so that the search in their buckets is saved for each tree
        newest = self._trees.buckets[0]
        for place, tree in enumerate(trees):
            if cython.compiled:
                prefetch_for_put(newest, trees, place)  # noqa: F821
            if has_orphans and (orphan := orphans.pop(tree.root)) is not None:
                # A recorded fail wins over a checksum of zero; Storm has it the other way round (law L4).
                tree.checksum ^= orphan.checksum
                if orphan.failure is not None:
                    self._fail(tree, orphan.failure)
                    continue
            if not tree.checksum:  # all of its acks were faster than its init
                self._ack(tree)
            elif cython.compiled:
                newest.put(tree)  # type: ignore[attr-defined]
            else:
                newest[tree.root] = tree

    def ack(self, acks: Acks) -> None:
        """XOR these values into the checksums; a tree whose checksum becomes zero is acked."""
        # Most trees are acked long before the first rotation, so the newest bucket is tried before the others.
        newest = self._trees.buckets[0]
        activity = self._activity
        for place in range(acks.count):
            if cython.compiled:
                prefetch_for_get(newest, acks.roots, acks.count, place)  # noqa: F821
            root = acks.roots[place]
            tree = newest.get(root)
            if tree is None:
                tree = self.open_tree(root)
                if tree is None:  # its init is on its way, or it was settled: nobody can know which (law L5)
                    orphan = self._orphan(root)
                    orphan.checksum ^= acks.values[place]
                    continue
                if activity:
                    self.reset_timeout(root)
            tree.checksum ^= acks.values[place]
            if not tree.checksum:
                if newest.pop(root, None) is None:  # it is older
                    self._leave(root)
                self._ack(tree)

    def fail(self, root: int, failure: Failure) -> None:
        """Fail the tree of this root. Of several failures the first is the one that is reported."""
        tree = self._leave(root)
        if tree is not None:
            self._fail(tree, failure)
            return
        orphan = self._orphan(root)
        if orphan.failure is None:
            orphan.failure = failure

    def reset_timeout(self, root: int) -> None:
        """Give the tree of this root its full timeout again; a root that is not open is ignored (law L12)."""
        newest = self._trees.buckets[0]
        tree = newest.pop(root, None) or self._leave(root)
        if tree is not None:
            newest[root] = tree

    def rotate(self) -> None:
        """Advance the clock by one step: trees that were put ``buckets`` rotations ago become *expiring*, and orphans
        of that age are forgotten. The cost does not depend on the number of pending trees."""
        self._expiring.append(self._trees.rotate())
        self.forget_orphans()

    def forget_orphans(self) -> None:
        """Advance the clock of orphans by one step; they have a clock of their own when timeouts are off (law L5)."""
        self._orphans.rotate()

    def expired_roots(self) -> Iterable[int]:
        """The roots of the trees that have timed out and wait for :meth:`expire`."""
        return chain.from_iterable(self._expiring)

    def expire(self, most: int, holders: Holders) -> None:
        """Fail at most ``most`` of the expiring trees with TIMEOUT, the oldest first.

        An expiry is spread over several calls so that it never holds the loop for long. A tree that is acked while it
        waits is acked (law L12).
        """
        for _ in range(most):
            cohort = self.next_to_expire
            if cohort is None:
                return
            root = self._choose(cohort)
            self._fail(cohort.pop(root), timed_out(holders.pop(root, ())))

    def _choose(self, cohort: dict[int, OpenTree]) -> int:
        """Return the root of the oldest tree of a cohort."""
        while True:
            if not self._chosen:
                self._chosen = [*islice(cohort, CHOSEN)]
                self._chosen.reverse()
            root = self._chosen.pop()  # from the end, where a list gives its items up at no cost
            if root in cohort:  # else it was settled after it was chosen
                return root

    def fail_all(self, failure: Failure) -> None:
        """Fail every open tree, as a shutdown does (law C3)."""
        for place in self._places():
            for tree in place.values():
                self._fail(tree, failure)
            place.clear()

    def fail_of(self, spout: int, failure: Failure) -> None:
        """Fail those open trees of one spout task that are known to it by their message ids alone.

        Its reliable messages are instances of subclasses. They outlive the task's death and stay open.
        """
        for place in self._places():
            roots = [root for root, tree in place.items() if tree.spout == spout and type(tree) is OpenTree]
            for root in roots:
                self._fail(place.pop(root), failure)

    def lose(self, failure: Failure) -> None:
        """Fail every tree that was known when the acker died, as soon as its *init* is here (law L4)."""
        self.fail_all(failure)
        # The inits of orphans are on their way to the next instance of the acker, which goes on with this ledger.
        for bucket in self._orphans.buckets:
            for orphan in bucket.values():
                orphan.failure = orphan.failure or failure

    def take_verdicts(self) -> tuple[list[OpenTree], list[OpenTree]]:
        """Return the trees acked and the trees failed since the last call."""
        verdicts = self.acked, self.failed
        self.acked, self.failed = [], []
        return verdicts

    def _ack(self, tree: OpenTree) -> None:
        self.settled += 1
        self.acked.append(tree)

    def _fail(self, tree: OpenTree, failure: Failure) -> None:
        self.settled += 1
        tree.failure = failure
        self.failed.append(tree)

    def _places(self) -> Sequence[dict[int, OpenTree]]:
        """The maps that hold open trees, those that time out first at the head."""
        return (*self._expiring, *reversed(self._trees.buckets))

    def _place(self, root: int) -> dict[int, OpenTree] | None:
        for place in chain(self._trees.buckets, self._expiring):
            if root in place:
                return place
        return None

    def _leave(self, root: int) -> OpenTree | None:
        """Remove and return the tree of this root, if it is open."""
        place = self._place(root)
        return None if place is None else place.pop(root)

    def _orphan(self, root: int) -> Orphan:
        orphan = self._orphans.get(root)
        if orphan is None:
            orphan = Orphan()
            self._orphans.put(root, orphan)
        return orphan
