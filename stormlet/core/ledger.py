"""One acker shard: which trees are open, and when one is settled (law L2 to L5, L12).

Theory of operation. A tree's checksum is the XOR of the ids of all edges that were created and not yet acked;
each id enters it twice, so it is zero exactly when every tuple of the tree was acked (seed 000). Three
messages change it:

=========  ================================  ==========================================================
message    sent by                           says
=========  ================================  ==========================================================
*init*     a spout's tracked emit            root, XOR of the edges it created, who waits for the verdict
*ack*      a bolt's ack of an input          root, the input's edge XOR the edges anchored to it
*fail*     a bolt's fail, or an exception    root, why
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

What FsShelter calls ``Complete`` is a verdict that is handed out and forgotten: nothing else is kept of a
settled tree.

Rules. Messages of one root may arrive in any order; the ones before *init* are kept as an *orphan*, and no
verdict is given before *init* is known (L3). When it is, a recorded fail wins at once, else zero acks at once
(L4). A message for a tree that is not open makes an orphan, which nobody sees and which rotates away (L5).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Protocol

from stormlet.core.directives import is_extension
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.rotating import RotatingMap

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython


class AckerLoad:
    """The trees of one acker."""

    __slots__ = ("limit", "trees")

    def __init__(self, high_water: int | None) -> None:
        self.trees = 0
        """Open trees, and inits that are on their way."""
        self.limit = sys.maxsize if high_water is None else min(2 * high_water, sys.maxsize)
        """How many there may be."""


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
class OpenTree:
    """One tracked message: its checksum, who waits for the verdict, and the verdict in the end.

    Compiled, the garbage collector does not look into it: open trees were most of what it looked at. A cycle through
    one is broken by its verdict, and every end of a run gives all of them (law C3); only a loop that is closed in the
    middle of a run gives none, and leaks it. User code never gets hold of one.
    """

    __slots__ = ("checksum", "failure", "message_id", "spout")

    def __init__(
        self,
        *,
        message_id: object = None,
        checksum: int = 0,
        spout: int = 0,
        failure: Failure | None = None,
    ) -> None:
        self.checksum = checksum
        self.spout = spout
        """The index of the spout task that gets the verdict."""
        self.message_id = message_id
        """How that task knows the message."""
        self.failure: Failure | None = failure
        """Why it failed, once it has."""


def new_tree(message_id: object) -> OpenTree:
    """The tree of a message that is emitted now. The same as calling the class, at a fraction of the price."""
    tree = OpenTree.__new__(OpenTree)
    tree.checksum = 0
    tree.spout = 0
    tree.message_id = message_id
    tree.failure = None
    return tree


CHOSEN = 8192
"""How many of the trees that time out are chosen at a time, in the order of their emits. A dict finds its first key by
going past all that were taken out before, and so is not asked for each."""


@lru_cache(maxsize=256)
def timed_out(holders: tuple[str, ...]) -> Failure:
    """The failure of a tree whose tuples these components held: one object for all of them (law L14)."""
    return Failure(FailureKind.TIMEOUT, holders=holders)


class Holders(Protocol):
    """Who holds tuples of trees that have timed out."""

    def pop(self, root: int, default: tuple[str, ...], /) -> tuple[str, ...]:
        """Take out the components that hold tuples of this root; ``default`` if none does."""
        ...


class Orphan:
    """What was heard of a root whose *init* has not arrived."""

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
        self._trees: RotatingMap[int, OpenTree] = RotatingMap(buckets)
        self._orphans: RotatingMap[int, Orphan] = RotatingMap(buckets)
        self._activity = restarts_on_activity
        self._expiring: list[dict[int, OpenTree]] = []
        self._chosen: list[int] = []
        self.acked: list[OpenTree] = []
        """Trees acked since the owner last took them."""
        self.failed: list[OpenTree] = []
        """Trees failed since the owner last took them; each says why."""
        self.settled = 0
        """How many verdicts were ever given."""

    def __len__(self) -> int:
        """The number of open trees; orphans are not counted (law L13)."""
        return len(self._trees) + self.expiring

    @property
    def orphans(self) -> int:
        """The number of roots that something was heard of before, or without, their *init*."""
        return len(self._orphans)

    @property
    def expiring(self) -> int:
        """How many trees have timed out and wait for :meth:`expire`."""
        return sum(map(len, self._expiring))

    @property
    def next_to_expire(self) -> dict[int, OpenTree] | None:
        """The trees that timed out first of those that wait for :meth:`expire`; None if none waits."""
        while self._expiring and not self._expiring[0]:
            del self._expiring[0]
        return self._expiring[0] if self._expiring else None

    def open_tree(self, root: int) -> OpenTree | None:
        """The open tree of this root; None if there is none, or its *init* has not arrived."""
        place = self._place(root)
        return None if place is None else place.get(root)

    def oldest(self) -> Iterator[tuple[int, OpenTree]]:
        """The open trees by root, those that time out first at the head."""
        return ((root, tree) for place in self._places() for root, tree in place.items())

    def init(self, inits: Mapping[int, OpenTree]) -> None:
        """Open trees, by root. Takes the place of any orphan; the tree enters the newest bucket."""
        orphans = self._orphans
        has_orphans = bool(orphans)
        newest = self._trees.buckets[0]
        for root, tree in inits.items():
            if has_orphans and (orphan := orphans.pop(root)) is not None:
                tree.checksum ^= orphan.checksum
                if orphan.failure is not None:
                    self._fail(tree, orphan.failure)
                    continue
            if tree.checksum:
                newest[root] = tree
            else:
                self._ack(tree)

    def ack(self, deltas: Mapping[int, int]) -> None:
        """XOR these values, by root, into the checksums."""
        newest = self._trees.buckets[0]
        activity = self._activity
        for root, delta in deltas.items():
            tree = newest.get(root)
            if tree is None:
                tree = self.open_tree(root)
                if tree is None:
                    orphan = self._orphan(root)
                    orphan.checksum ^= delta
                    continue
                if activity:
                    self.reset_timeout(root)
            tree.checksum ^= delta
            if not tree.checksum:
                if newest.pop(root, None) is None:
                    self._leave(root)
                self._ack(tree)

    def fail(self, root: int, failure: Failure) -> None:
        """Fail the tree of this root. The first failure of a root is the one that is told."""
        tree = self._leave(root)
        if tree is not None:
            self._fail(tree, failure)
            return
        orphan = self._orphan(root)
        if orphan.failure is None:
            orphan.failure = failure

    def reset_timeout(self, root: int) -> None:
        """Give the tree of this root its full timeout again; a root that is not open is left alone (law
        L12)."""
        tree = self._leave(root)
        if tree is not None:
            self._trees.buckets[0][root] = tree

    def rotate(self) -> None:
        """One step of the clock: trees put ``buckets`` rotations ago become *expiring*, such orphans are forgotten. It
        takes the same time whatever is pending."""
        self._expiring.append(self._trees.rotate())
        self.forget_orphans()

    def forget_orphans(self) -> None:
        """One step of the clock for orphans alone: the clock of their own when timeouts are off (law L5)."""
        self._orphans.rotate()

    def expired_roots(self) -> Iterable[int]:
        """The roots of the trees that have timed out and wait for :meth:`expire`."""
        return chain.from_iterable(self._expiring)

    def expire(self, most: int, holders: Holders) -> None:
        """Fail at most ``most`` of the trees that are next to expire with TIMEOUT, the oldest first. An expiry is
        spread like this so that it never holds the loop for long; a tree that is acked while it waits is acked (law
        L12)."""
        for _ in range(most):
            cohort = self.next_to_expire
            if cohort is None:
                return
            root = self._choose(cohort)
            self._fail(cohort.pop(root), timed_out(holders.pop(root, ())))

    def _choose(self, cohort: dict[int, OpenTree]) -> int:
        """The root of its oldest tree."""
        while True:
            if not self._chosen:
                self._chosen = [*islice(cohort, CHOSEN)]
                self._chosen.reverse()
            root = self._chosen.pop()
            if root in cohort:  # else it was settled after it was chosen
                return root

    def fail_all(self, failure: Failure) -> None:
        """Fail every open tree, as a shutdown does (law C3)."""
        for place in self._places():
            for tree in place.values():
                self._fail(tree, failure)
            place.clear()

    def fail_of(self, spout: int, failure: Failure) -> None:
        """Fail the open trees of one spout task that it knows by their message ids alone."""
        for place in self._places():
            roots = [root for root, tree in place.items() if tree.spout == spout and type(tree) is OpenTree]
            for root in roots:
                self._fail(place.pop(root), failure)

    def lose(self, failure: Failure) -> None:
        """The acker has died: fail every tree that it knew of, as soon as its *init* is here (law L4)."""
        self.fail_all(failure)
        for bucket in self._orphans.buckets:
            for orphan in bucket.values():
                orphan.failure = orphan.failure or failure

    def take_verdicts(self) -> tuple[list[OpenTree], list[OpenTree]]:
        """The trees acked and the trees failed since the last call."""
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
        """Wherever open trees are, those that time out first at the head."""
        return (*self._expiring, *reversed(self._trees.buckets))

    def _place(self, root: int) -> dict[int, OpenTree] | None:
        for place in chain(self._trees.buckets, self._expiring):
            if root in place:
                return place
        return None

    def _leave(self, root: int) -> OpenTree | None:
        """Take the tree of this root out of where it is, if it is open."""
        place = self._place(root)
        return None if place is None else place.pop(root)

    def _orphan(self, root: int) -> Orphan:
        orphan = self._orphans.get(root)
        if orphan is None:
            orphan = Orphan()
            self._orphans.put(root, orphan)
        return orphan
