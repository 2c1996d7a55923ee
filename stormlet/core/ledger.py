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

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.rotating import RotatingMap

TIMED_OUT = Failure(FailureKind.TIMEOUT)


class OpenTree(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """One tracked message: its checksum, who waits for the verdict, and the verdict in the end.

    The garbage collector does not look into it: open trees were most of what it looked at. A cycle through one
    is broken by its verdict, and every end of a run gives all of them (law C3); user code never gets hold of one.
    """

    checksum: int = 0
    spout: int = 0
    """The index of the spout task that gets the verdict."""
    message_id: object = None
    """How that task knows the message."""
    failure: Failure | None = None
    """Why it failed, once it has."""


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

    __slots__ = ("_activity", "_expired", "_expiring", "_orphans", "_trees", "acked", "failed", "settled")

    def __init__(self, buckets: int = 3, restarts_on_activity: bool = False) -> None:
        self._trees: RotatingMap[int, OpenTree] = RotatingMap(buckets)
        self._orphans: RotatingMap[int, Orphan] = RotatingMap(buckets)
        self._activity = restarts_on_activity
        self._expiring: dict[int, OpenTree] = {}
        self._expired: list[int] = []
        self.acked: list[OpenTree] = []
        """Trees acked since the owner last took them."""
        self.failed: list[OpenTree] = []
        """Trees failed since the owner last took them; each says why."""
        self.settled = 0
        """How many verdicts were ever given."""

    def __len__(self) -> int:
        """The number of open trees; orphans are not counted (law L13)."""
        return len(self._trees) + len(self._expiring)

    @property
    def orphans(self) -> int:
        """The number of roots that something was heard of before, or without, their *init*."""
        return len(self._orphans)

    @property
    def expiring(self) -> int:
        """How many trees have timed out and wait for :meth:`expire`."""
        return len(self._expiring)

    def open_tree(self, root: int) -> OpenTree | None:
        """The open tree of this root; None if there is none, or its *init* has not arrived."""
        return self._expiring.get(root) or self._trees.get(root)

    def oldest(self) -> Iterator[tuple[int, OpenTree]]:
        """The open trees by root, those that time out first at the head."""
        return ((root, tree) for bucket in self._open_buckets() for root, tree in bucket.items())

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
            bucket = newest
            if tree is None:
                found = self._find(root)
                if found is None:
                    self._orphan(root).checksum ^= delta
                    continue
                bucket, tree = found
            tree.checksum ^= delta
            if not tree.checksum:
                del bucket[root]
                self._ack(tree)
            elif activity and bucket is not newest:
                newest[root] = bucket.pop(root)

    def fail(self, root: int, failure: Failure) -> None:
        """Fail the tree of this root. The first failure of a root is the one that is told."""
        found = self._find(root)
        if found is not None:
            bucket, tree = found
            del bucket[root]
            self._fail(tree, failure)
            return
        orphan = self._orphan(root)
        if orphan.failure is None:
            orphan.failure = failure

    def reset_timeout(self, root: int) -> None:
        """Give the tree of this root its full timeout again; a root that is not open is left alone (law
        L12)."""
        found = self._find(root)
        if found is not None:
            bucket, tree = found
            del bucket[root]
            self._trees.buckets[0][root] = tree

    def rotate(self) -> None:
        """One step of the clock: trees put ``buckets`` rotations ago become *expiring*, such orphans are
        forgotten."""
        self._expiring.update(self._trees.rotate())
        self._expired = list(self._expiring)
        self._expired.reverse()
        self.forget_orphans()

    def forget_orphans(self) -> None:
        """One step of the clock for orphans alone: the clock of their own when timeouts are off (law L5)."""
        self._orphans.rotate()

    def expired_roots(self) -> Iterable[int]:
        """The roots of the trees that have timed out and wait for :meth:`expire`."""
        return self._expiring.keys()

    def expire(self, most: int, holders: Mapping[int, tuple[str, ...]]) -> None:
        """Fail at most ``most`` expired trees with TIMEOUT. An expiry is spread like this so that it never
        holds the loop for long; a tree that is acked while it waits is acked (law L12)."""
        for _ in range(min(most, len(self._expired))):
            root = self._expired.pop()
            tree = self._expiring.pop(root, None)
            if tree is not None:
                self._fail(tree, TIMED_OUT.held_by(holders.get(root, ())))

    def fail_all(self, failure: Failure) -> None:
        """Fail every open tree, as a shutdown does (law C3)."""
        for bucket in self._open_buckets():
            trees = list(bucket.values())
            bucket.clear()
            for tree in trees:
                self._fail(tree, failure)

    def fail_of(self, spout: int, failure: Failure) -> None:
        """Fail the open trees of one spout task that it knows by their message ids alone."""
        for bucket in self._open_buckets():
            trees = [(root, tree) for root, tree in bucket.items() if tree.spout == spout]
            for root, tree in trees:
                if type(tree) is OpenTree:
                    del bucket[root]
                    self._fail(tree, failure)

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

    def _open_buckets(self) -> Iterable[dict[int, OpenTree]]:
        yield self._expiring
        yield from reversed(self._trees.buckets)

    def _find(self, root: int) -> tuple[dict[int, OpenTree], OpenTree] | None:
        for bucket in self._trees.buckets:
            tree = bucket.get(root)
            if tree is not None:
                return bucket, tree
        tree = self._expiring.get(root)
        return None if tree is None else (self._expiring, tree)

    def _orphan(self, root: int) -> Orphan:
        orphan = self._orphans.get(root)
        if orphan is None:
            orphan = Orphan()
            self._orphans.put(root, orphan)
        return orphan
