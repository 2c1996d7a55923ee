"""The ledger by itself: FsShelter's worked examples (FS-L, FS-A), the unit cases of Storm (A13), laws L2 to L5, L12.

FsShelter's four messages are written here as the law translates them (L2): ``Track`` and the ``Anchor`` of that
emit are one *init*, the ``Anchor`` of a bolt's emits and its ``Ok`` are one *ack*.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from stormlet.core.acks import Acks
from stormlet.core.ledger import Ledger, timed_out
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.trees import OpenTree

A, B, C = 11, 12, 13
"""Roots."""

FAILED = Failure(FailureKind.FAILED, "bolt", 1)
LATER = Failure(FailureKind.FAILED, "other", 2)
TIMEOUT = Failure(FailureKind.TIMEOUT)
SHUTDOWN = Failure(FailureKind.SHUTDOWN)


def xor(*edges: int) -> int:
    total = 0
    for edge in edges:
        total ^= edge
    return total


def track(ledger: Ledger, root: int, *edges: int) -> OpenTree:
    """A spout emits to so many tasks at once; the message is called after its root."""
    tree = OpenTree(root=root, checksum=xor(*edges), spout=7, message_id=f"m{root}")
    ledger.init([tree])
    return tree


def ok(ledger: Ledger, root: int, own: int, *children: int) -> None:
    """A bolt acks an input to which it has anchored these edges."""
    ledger.ack(Acks([(root, xor(own, *children))]))


def verdicts(ledger: Ledger) -> list[tuple[object, Failure | None]]:
    """What was decided since the last look: message, and the failure or None."""
    acked, failed = ledger.take_verdicts()
    return [(tree.message_id, tree.failure) for tree in (*acked, *failed)]


def expire(ledger: Ledger, most: int = 1000) -> list[tuple[object, Failure | None]]:
    """One rotation, and the verdicts that it brings."""
    ledger.rotate()
    ledger.expire(most, {})
    return verdicts(ledger)


# FsShelter's worked examples.


def test_fs_l1_a_chain() -> None:
    """Spout, bolt A, bolt B: 100, then 200, then zero, and the spout that emitted the message is told."""
    ledger = Ledger()
    tree = track(ledger, A, 100)
    assert tree.checksum == 100
    ok(ledger, A, 100, 200)
    assert tree.checksum == 200
    assert verdicts(ledger) == []
    ok(ledger, A, 200)
    assert ledger.acked == [tree]
    assert (tree.spout, tree.message_id) == (7, "m11")
    assert len(ledger) == ledger.orphans == 0


def test_fs_l1_every_step_as_a_message_of_its_own() -> None:
    """The table of the seed: 100, 100 ^ 200 == 172, 200, 0, if anchors are told before the ack."""
    ledger = Ledger()
    tree = track(ledger, A, 100)
    checksums = [tree.checksum]
    for step in (200, 100, 200):
        ledger.ack(Acks([(A, step)]))
        checksums.append(tree.checksum)
    assert checksums == [100, 172, 200, 0]
    assert verdicts(ledger) == [("m11", None)]


def test_fs_l2_a_fan_out() -> None:
    """Bolt A to B and C: the table of the seed, step by step, and ack on the last one only."""
    ledger = Ledger()
    tree = track(ledger, A, 100)
    seen = []
    for step in (200, 300, 100, 200, 300):
        assert verdicts(ledger) == []
        ledger.ack(Acks([(A, step)]))
        seen.append(tree.checksum)
    assert seen == [172, 384, 200 ^ 300, 300, 0]
    assert verdicts(ledger) == [("m11", None)]


@pytest.mark.parametrize("order", list(permutations([(100, 200, 300), (200,), (300,)])))
def test_fs_l3_acks_commute(order: tuple[tuple[int, ...], ...]) -> None:
    """The fan-out with its acks in all six orders: the tree is acked by the last one, whichever it is."""
    ledger = Ledger()
    track(ledger, A, 100)
    for own, *children in order:
        assert verdicts(ledger) == []
        ok(ledger, A, own, *children)
    assert verdicts(ledger) == [("m11", None)]
    assert len(ledger) == 0


def test_fs_l4_an_ack_after_a_fail() -> None:
    """One failure; the ack that comes after it changes nothing the user can see."""
    ledger = Ledger()
    track(ledger, A, 100)
    ledger.fail(A, FAILED)
    assert verdicts(ledger) == [("m11", FAILED)]
    ok(ledger, A, 100)
    assert verdicts(ledger) == []
    assert len(ledger) == 0


def test_fs_l5_two_fails() -> None:
    """One failure, and it is the first one that is told."""
    ledger = Ledger()
    track(ledger, A, 100)
    ledger.fail(A, FAILED)
    ledger.fail(A, LATER)
    assert verdicts(ledger) == [("m11", FAILED)]
    assert ledger.settled == 1


def test_fs_l6_messages_of_an_unknown_root() -> None:
    """No verdict and no open tree; what was heard is forgotten by the third rotation (law L5)."""
    ledger = Ledger()
    ok(ledger, A, 100, 200)
    ledger.fail(B, FAILED)
    ledger.reset_timeout(C)
    assert (len(ledger), ledger.orphans) == (0, 2)
    assert [expire(ledger) for _ in range(3)] == [[], [], []]
    assert ledger.orphans == 0
    assert ledger.settled == 0


def test_fs_l7_three_rotations() -> None:
    """Nothing, nothing, TIMEOUT; the ack that comes later is ignored."""
    ledger = Ledger()
    track(ledger, A, 100)
    assert [expire(ledger) for _ in range(3)] == [[], [], [("m11", TIMEOUT)]]
    ok(ledger, A, 100)
    assert verdicts(ledger) == []
    assert len(ledger) == 0


def test_fs_l8_an_ack_on_death_row() -> None:
    """After two rotations the tree is still open in its bucket, and its last ack acks it."""
    ledger = Ledger()
    track(ledger, A, 100)
    assert expire(ledger) + expire(ledger) == []
    ok(ledger, A, 100)
    assert verdicts(ledger) == [("m11", None)]
    assert expire(ledger) == []


def test_fs_l9_each_tree_has_its_own_cohort() -> None:
    """The first of two trees, a rotation apart, times out a rotation before the second."""
    ledger = Ledger()
    track(ledger, A, 100)
    assert expire(ledger) == []
    track(ledger, B, 100)
    assert [expire(ledger) for _ in range(3)] == [[], [("m11", TIMEOUT)], [("m12", TIMEOUT)]]


def test_fs_l10_the_load_is_what_is_open() -> None:
    """The high-water mark counts open trees: not orphans, not settled ones, but those that wait to expire."""
    ledger = Ledger(2)
    for root in range(1, 6):
        track(ledger, root, 100 + root)
    ok(ledger, 1, 101)
    ledger.fail(2, FAILED)
    ok(ledger, 99, 5)
    assert (len(ledger), ledger.orphans) == (3, 1)
    ledger.rotate()
    ledger.rotate()
    assert (len(ledger), ledger.expiring) == (3, 3)
    ledger.expire(1, {})
    assert (len(ledger), ledger.expiring) == (2, 2)


def test_fs_l11_anchors_that_cancel_out() -> None:
    """Edges 1, 2 and 3 make zero before anything was acked: anchors travel with their ack, so nothing is acked
    early, and the tree does not get stuck as FsShelter's does."""
    ledger = Ledger()
    tree = track(ledger, A, 1)
    ok(ledger, A, 1, 2, 3)
    assert tree.checksum == 2 ^ 3
    ok(ledger, A, 2)
    assert verdicts(ledger) == []
    ok(ledger, A, 3)
    assert verdicts(ledger) == [("m11", None)]


def replicas(count: int, children: int) -> list[tuple[int, list[int]]]:
    """The edges of so many replicas, each with those of its children."""
    return [(1 << n, [1 << (20 + n * children + each) for each in range(children)]) for n in range(count)]


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("children", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_fs_l14_every_replica_counts(count: int, children: int, interleaved: bool) -> None:
    """An ``all`` grouping gives each replica an edge of its own, so the tree waits for every one of them and
    their children (law L1), whether each replica is finished at once or all of them take turns."""
    ledger = Ledger()
    edges = replicas(count, children)
    track(ledger, A, *(own for own, _ in edges))
    first = [(own, *of_own) for own, of_own in edges]
    leaves = [[(leaf,) for leaf in of_own] for _, of_own in edges]
    if interleaved:
        acks = first + [leaf for each in leaves for leaf in each]
    else:
        acks = [ack for n in range(count) for ack in (first[n], *leaves[n])]
    for ack in acks:
        assert verdicts(ledger) == []
        ok(ledger, A, *ack)
    assert verdicts(ledger) == [("m11", None)]


def test_fs_l15_the_first_of_two_destinations_acks_at_once() -> None:
    """One emit to two components is one init with both edges: the first ack cannot complete it (FsShelter
    3.0.1)."""
    ledger = Ledger()
    track(ledger, A, 100, 200)
    ok(ledger, A, 100)
    assert verdicts(ledger) == []
    ok(ledger, A, 200)
    assert verdicts(ledger) == [("m11", None)]


def test_fs_l15_the_first_ack_arrives_before_the_init() -> None:
    """Even an ack that overtakes the init completes nothing while the other destination is open."""
    ledger = Ledger()
    ok(ledger, A, 100)
    track(ledger, A, 100, 200)
    assert verdicts(ledger) == []
    ok(ledger, A, 200)
    assert verdicts(ledger) == [("m11", None)]


# FsShelter's acker tests, as far as they are about the ledger.


def test_fs_a1_a_single_tuple() -> None:
    """Tracked, executed, acked: one ack and no failure."""
    ledger = Ledger()
    track(ledger, A, 100)
    ok(ledger, A, 100)
    assert verdicts(ledger) == [("m11", None)]
    assert [expire(ledger) for _ in range(4)] == [[]] * 4


def test_fs_a2_many_multi_hop_trees() -> None:
    """A hundred trees of three hops each, in flight together: each is acked exactly once."""
    ledger = Ledger()
    roots = range(1, 101)
    for root in roots:
        track(ledger, root, root * 1000 + 1)
    for hop in (1, 2):
        ledger.ack(Acks((root, xor(root * 1000 + hop, root * 1000 + hop + 1)) for root in roots))
    assert verdicts(ledger) == []
    ledger.ack(Acks((root, root * 1000 + 3) for root in roots))
    assert verdicts(ledger) == [(f"m{root}", None) for root in roots]
    assert (len(ledger), ledger.settled) == (0, 100)


def test_fs_a3_a_failure_is_told_at_once() -> None:
    """No rotation is needed, the reason is FAILED, and it is told once."""
    ledger = Ledger()
    track(ledger, A, 100)
    ledger.fail(A, FAILED)
    assert verdicts(ledger) == [("m11", FAILED)]
    assert [expire(ledger) for _ in range(4)] == [[]] * 4


@pytest.mark.parametrize("buckets", [2, 3, 5])
def test_fs_a4_a_tree_that_nobody_finishes(buckets: int) -> None:
    """n - 1 rotations leave it open, the n-th fails it with TIMEOUT, once."""
    ledger = Ledger(buckets)
    track(ledger, A, 100)
    assert [expire(ledger) for _ in range(buckets - 1)] == [[]] * (buckets - 1)
    assert expire(ledger) == [("m11", TIMEOUT)]
    assert [expire(ledger) for _ in range(buckets)] == [[]] * buckets


# The unit cases of Storm's acker.


def test_storm_a13_acks_before_the_init() -> None:
    """All acks arrive first: no verdict until the init, which acks at once (law L3)."""
    ledger = Ledger()
    ok(ledger, A, 100, 200)
    ok(ledger, A, 200)
    assert verdicts(ledger) == []
    assert (len(ledger), ledger.orphans) == (0, 1)
    track(ledger, A, 100)
    assert verdicts(ledger) == [("m11", None)]
    assert (len(ledger), ledger.orphans) == (0, 0)


def test_storm_a13_a_fail_before_the_init() -> None:
    """It is remembered, and told when the init arrives (law L4)."""
    ledger = Ledger()
    ledger.fail(A, FAILED)
    assert verdicts(ledger) == []
    track(ledger, A, 100)
    assert verdicts(ledger) == [("m11", FAILED)]
    assert (len(ledger), ledger.orphans) == (0, 0)


def test_storm_a13_a_fail_beats_zero() -> None:
    """All edges acked and a fail before the init: it fails. In Storm zero wins (law L4)."""
    ledger = Ledger()
    ok(ledger, A, 100)
    ledger.fail(A, FAILED)
    track(ledger, A, 100)
    assert verdicts(ledger) == [("m11", FAILED)]


def test_storm_a13_a_double_ack() -> None:
    """It cancels the first one out, so the tree can only time out, never be acked (law L5)."""
    ledger = Ledger()
    track(ledger, A, 100, 200)
    ok(ledger, A, 100)
    ok(ledger, A, 100)
    ok(ledger, A, 200)
    assert verdicts(ledger) == []
    assert [expire(ledger) for _ in range(3)] == [[], [], [("m11", TIMEOUT)]]


def test_storm_a13_a_lost_ack() -> None:
    """The tree times out (law L5)."""
    ledger = Ledger()
    track(ledger, A, 100, 200)
    ok(ledger, A, 200)
    assert [expire(ledger) for _ in range(3)] == [[], [], [("m11", TIMEOUT)]]


def test_storm_a13_a_late_ack() -> None:
    """After the verdict it makes an orphan, which nobody sees and which rotates away (law L5)."""
    ledger = Ledger()
    track(ledger, A, 100)
    ok(ledger, A, 100)
    verdicts(ledger)
    ok(ledger, A, 100)
    assert (len(ledger), ledger.orphans) == (0, 1)
    assert [expire(ledger) for _ in range(3)] == [[], [], []]
    assert (ledger.orphans, ledger.settled) == (0, 1)


def test_storm_a13_an_init_of_zero() -> None:
    """A tree without edges is acked at once."""
    ledger = Ledger()
    track(ledger, A)
    assert verdicts(ledger) == [("m11", None)]
    assert len(ledger) == 0


def test_storm_a13_a_reset_of_an_unknown_root() -> None:
    """It leaves no trace: not even an orphan that would outlive the message."""
    ledger = Ledger()
    ledger.reset_timeout(A)
    assert (len(ledger), ledger.orphans) == (0, 0)
    track(ledger, A, 100)
    assert [expire(ledger) for _ in range(3)] == [[], [], [("m11", TIMEOUT)]]


# Orphans.


def test_the_first_of_several_early_failures_is_told() -> None:
    """Before the init as after it (law L15)."""
    ledger = Ledger()
    ledger.fail(A, FAILED)
    ledger.fail(A, LATER)
    track(ledger, A, 100)
    assert verdicts(ledger) == [("m11", FAILED)]


def test_an_orphan_lives_as_long_as_a_tree() -> None:
    """Heard two rotations ago it still counts; three rotations ago it is forgotten (law L5)."""
    ledger = Ledger()
    ok(ledger, A, 100)
    ledger.rotate()
    ledger.rotate()
    track(ledger, A, 100)
    assert verdicts(ledger) == [("m11", None)]
    ok(ledger, B, 100)
    for _ in range(3):
        ledger.rotate()
    tree = track(ledger, B, 100)
    assert verdicts(ledger) == []
    assert tree.checksum == 100


def test_more_about_an_orphan_does_not_keep_it() -> None:
    """Acks and fails that go on arriving for a tree that never begins give it no new time (law L5)."""
    ledger = Ledger()
    for _ in range(3):
        ok(ledger, A, 100)
        ledger.fail(A, FAILED)
        ledger.rotate()
    assert ledger.orphans == 0


def test_the_init_of_an_orphan_enters_the_newest_bucket() -> None:
    """However long the orphan has waited, its tree gets its full time (law L5)."""
    ledger = Ledger()
    ok(ledger, A, 100, 200)
    ledger.rotate()
    ledger.rotate()
    track(ledger, A, 100)
    assert [expire(ledger) for _ in range(3)] == [[], [], [("m11", TIMEOUT)]]


def test_orphans_have_a_clock_of_their_own() -> None:
    """Where timeouts are off, orphans go and trees stay (law L5)."""
    ledger = Ledger()
    track(ledger, A, 100)
    ok(ledger, B, 5)
    for _ in range(3):
        ledger.forget_orphans()
    assert (len(ledger), ledger.orphans, ledger.expiring) == (1, 0, 0)
    ok(ledger, A, 100)
    assert verdicts(ledger) == [("m11", None)]


def test_inits_without_orphans_and_with_them_in_one_message() -> None:
    """Each tree of a message gets what was heard of it, and only that."""
    ledger = Ledger()
    ledger.fail(A, FAILED)
    ok(ledger, B, 100)
    ledger.init([OpenTree(root=root, checksum=100, spout=7, message_id=f"m{root}") for root in (A, B, C)])
    assert verdicts(ledger) == [("m12", None), ("m11", FAILED)]
    assert (len(ledger), ledger.orphans) == (1, 0)


# Timeouts.


def test_a_reset_gives_a_tree_its_full_time() -> None:
    """From any bucket, death row included (law L12)."""
    ledger = Ledger()
    track(ledger, A, 100)
    for rotations in range(3):
        for _ in range(rotations):
            assert expire(ledger) == []
        ledger.reset_timeout(A)
    assert [expire(ledger) for _ in range(3)] == [[], [], [("m11", TIMEOUT)]]


def test_an_ack_gives_no_time() -> None:
    """By default the time runs from the init, whatever else is heard of the tree (law L12)."""
    ledger = Ledger()
    track(ledger, A, 100)
    ledger.rotate()
    ok(ledger, A, 100, 200)
    assert [expire(ledger), expire(ledger)] == [[], [("m11", TIMEOUT)]]


def test_activity_gives_time_if_asked_for() -> None:
    """With ``restarts_on_activity`` every ack does, as the seeds' ``RotatingMap.put`` has it (law L12)."""
    ledger = Ledger(3, restarts_on_activity=True)
    track(ledger, A, 100)
    ok(ledger, A, 100, 200)
    ledger.rotate()
    ledger.rotate()
    ok(ledger, A, 200, 300)
    assert [expire(ledger), expire(ledger)] == [[], []]
    ok(ledger, A, 300)
    assert verdicts(ledger) == [("m11", None)]
    assert len(ledger) == 0


def test_activity_of_one_tree_gives_another_none() -> None:
    """Only the tree that an ack belongs to gets its time again."""
    ledger = Ledger(2, restarts_on_activity=True)
    track(ledger, A, 100)
    track(ledger, B, 100)
    ledger.rotate()
    ok(ledger, A, 100, 200)
    assert [expire(ledger), expire(ledger)] == [[("m12", TIMEOUT)], [("m11", TIMEOUT)]]


@pytest.mark.parametrize("activity", [False, True])
def test_an_ack_while_a_timeout_waits(activity: bool) -> None:
    """An expiry is spread; a tree that is acked before its turn is acked, not timed out (law L12)."""
    ledger = Ledger(2, activity)
    track(ledger, A, 100)
    track(ledger, B, 100)
    ledger.rotate()
    ledger.rotate()
    ok(ledger, A, 100)
    ledger.expire(1000, {})
    assert verdicts(ledger) == [("m11", None), ("m12", TIMEOUT)]


def test_activity_while_a_timeout_waits() -> None:
    """Where activity gives time, it does so until the very verdict."""
    ledger = Ledger(2, restarts_on_activity=True)
    track(ledger, A, 100)
    ledger.rotate()
    ledger.rotate()
    ok(ledger, A, 100, 200)
    ledger.expire(1000, {})
    assert verdicts(ledger) == []
    assert [expire(ledger), expire(ledger)] == [[], [("m11", TIMEOUT)]]


def test_a_fail_while_a_timeout_waits() -> None:
    """What happens first is told: the bolt's failure."""
    ledger = Ledger(2)
    track(ledger, A, 100)
    ledger.rotate()
    ledger.rotate()
    ledger.fail(A, FAILED)
    ledger.expire(1000, {})
    assert verdicts(ledger) == [("m11", FAILED)]


def test_a_reset_while_a_timeout_waits() -> None:
    """It rescues the tree, which then has its full time (law L12)."""
    ledger = Ledger(2)
    track(ledger, A, 100)
    ledger.rotate()
    ledger.rotate()
    ledger.reset_timeout(A)
    assert ledger.expiring == 0
    ledger.expire(1000, {})
    assert verdicts(ledger) == []
    assert [expire(ledger), expire(ledger)] == [[], [("m11", TIMEOUT)]]


def test_an_expiry_is_spread() -> None:
    """At most so many trees at a time, the oldest first, until none is left (law L12)."""
    ledger = Ledger(2)
    for root in range(1, 8):
        track(ledger, root, 100)
    ledger.rotate()
    ledger.rotate()
    told = []
    for left in (4, 1, 0):
        ledger.expire(3, {})
        told += verdicts(ledger)
        assert (ledger.expiring, len(ledger)) == (left, left)
    assert told == [(f"m{root}", TIMEOUT) for root in range(1, 8)]


def test_an_expiry_goes_on_past_what_is_settled_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees that are acked, or reset, after they were chosen are left out, and no other one is (law L12)."""
    monkeypatch.setattr("stormlet.core.ledger.CHOSEN", 4)
    ledger = Ledger(2)
    for root in range(1, 10):
        track(ledger, root, 100)
    ledger.rotate()
    ledger.rotate()
    ledger.expire(1, {})
    ledger.ack(Acks([(3, 100)]))
    ledger.reset_timeout(4)
    ledger.ack(Acks((root, 100) for root in (5, 6, 7, 8)))
    assert [name for name, failure in verdicts(ledger) if failure] == ["m1"]
    ledger.expire(2, {})
    assert verdicts(ledger) == [("m2", TIMEOUT), ("m9", TIMEOUT)]
    assert (ledger.expiring, ledger.next_to_expire) == (0, None)
    assert [expire(ledger), expire(ledger)] == [[], [("m4", TIMEOUT)]]


def test_a_rotation_while_an_expiry_is_spread() -> None:
    """Cohorts queue up: the older one goes first, and nothing is told twice."""
    ledger = Ledger(2)
    for root in (A, B):
        track(ledger, root, 100)
    ledger.rotate()
    track(ledger, C, 100)
    ledger.rotate()
    ledger.expire(1, {})
    ledger.rotate()
    assert list(ledger.expired_roots()) == [B, C]
    ledger.expire(1000, {})
    assert verdicts(ledger) == [("m11", TIMEOUT), ("m12", TIMEOUT), ("m13", TIMEOUT)]
    assert ledger.expiring == 0


def test_a_timeout_names_the_holders() -> None:
    """The components that still hold tuples of the tree, for each tree its own (law L14)."""
    ledger = Ledger(2)
    for root in (A, B):
        track(ledger, root, 100)
    ledger.rotate()
    ledger.rotate()
    assert list(ledger.expired_roots()) == [A, B]
    ledger.expire(1000, {A: ("split", "count")})
    assert verdicts(ledger) == [
        ("m11", Failure(FailureKind.TIMEOUT, holders=("split", "count"))),
        ("m12", TIMEOUT),
    ]


def test_the_ways_to_time_out_are_forgotten_again() -> None:
    """Of those who hold trees there may be any number of combinations: each is told, and few hundred are remembered."""
    told = [timed_out((f"bolt {number}",)) for number in range(1000)]
    assert [failure.holders for failure in told] == [(f"bolt {number}",) for number in range(1000)]
    assert timed_out.cache_info().currsize <= 256


def test_the_bucket_an_ack_finds_its_tree_in() -> None:
    """Trees of different ages are acked by one message, each where it is."""
    ledger = Ledger(3)
    for root in (A, B, C):
        track(ledger, root, 100 + root)
        ledger.rotate()
    ledger.ack(Acks((root, 100 + root) for root in (C, A, B)))
    assert verdicts(ledger) == [("m13", None), ("m11", None), ("m12", None)]
    assert len(ledger) == 0


# The end.


def test_fail_all_leaves_nothing_open() -> None:
    """At a deadline every tree fails, in whatever bucket it is, the oldest first; nothing is told again (law
    C3)."""
    ledger = Ledger(2)
    for root in (A, B, C):
        track(ledger, root, 100)
        ledger.rotate()
    ok(ledger, 99, 5)
    ledger.fail_all(SHUTDOWN)
    assert verdicts(ledger) == [("m11", SHUTDOWN), ("m12", SHUTDOWN), ("m13", SHUTDOWN)]
    assert (len(ledger), ledger.expiring, ledger.settled) == (0, 0, 3)
    ledger.expire(1000, {})
    ledger.fail_all(SHUTDOWN)
    assert expire(ledger) == []


LOST = Failure(FailureKind.TASK_LOST)


def test_an_acker_that_died_fails_what_it_knew_of() -> None:
    """Open trees fail at once; of roots that it only had acks or fails of, as soon as their init is here (law L4)."""
    ledger = Ledger()
    track(ledger, A, 100)
    ok(ledger, B, 5)
    ledger.fail(C, FAILED)
    ledger.lose(LOST)
    assert verdicts(ledger) == [("m11", LOST)]
    track(ledger, B, 5)
    track(ledger, C, 6)
    assert verdicts(ledger) == [("m12", LOST), ("m13", FAILED)]
    track(ledger, A, 7)
    ok(ledger, A, 7)
    assert verdicts(ledger) == [("m11", None)]


def test_trees_of_one_spout_can_be_failed() -> None:
    """Only its own, only those that the engine does not keep, wherever they are on their way to expiry."""

    class Kept(OpenTree):
        """A message that the engine keeps."""

    ledger = Ledger()
    for root in (11, 12):
        track(ledger, root, 100)
        ledger.rotate()
    ledger.init([OpenTree(root=13, checksum=1, spout=8), Kept(root=14, checksum=1, spout=7)])
    ledger.rotate()
    assert (len(ledger), ledger.expiring) == (4, 1)
    ledger.fail_of(7, LOST)
    assert verdicts(ledger) == [("m11", LOST), ("m12", LOST)]
    assert (len(ledger), ledger.settled) == (2, 2)


def test_verdicts_are_taken_once() -> None:
    """The owner that takes them has them; the next look finds what came since."""
    ledger = Ledger()
    track(ledger, A)
    first = ledger.take_verdicts()
    track(ledger, B)
    ledger.fail(C, FAILED)
    track(ledger, C, 100)
    assert [tree.message_id for tree in first[0]] == ["m11"]
    assert verdicts(ledger) == [("m12", None), ("m13", FAILED)]
    assert verdicts(ledger) == []
    assert ledger.settled == 3


def test_the_entry_does_not_grow_with_the_tree() -> None:
    """A tree of thousands of tuples is one entry with one number (law L6)."""
    ledger = Ledger()
    tree = track(ledger, A, 1)
    for edge in range(1, 3000):
        ok(ledger, A, edge, edge + 1)
    assert (len(ledger), ledger.orphans) == (1, 0)
    assert tree.checksum == 3000
    assert not hasattr(tree, "__dict__")


def test_too_few_buckets_are_refused() -> None:
    """As the rotating map refuses them."""
    with pytest.raises(ValueError, match="at least 2 buckets"):
        Ledger(1)
