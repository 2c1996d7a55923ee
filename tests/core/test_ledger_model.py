"""The ledger against a naive model that stores whole trees.

The oracle knows every copy of every tuple and judges each verdict. The model (:class:`Heard`) knows which messages have
arrived, and by them when the ledger must speak; both know no XOR and no buckets. :class:`World` is what surrounds a
ledger: spouts and bolts that emit, anchor, ack and fail, and a network that delivers their messages in any order,
together, twice or never.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stormlet.core.acks import Acks
from stormlet.core.ids import IdSource
from stormlet.core.ledger import Ledger
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.schema import schema_of
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import PLAIN, Source, Tuple, joined_tuple
from stormlet.testing.chaos.oracle import Fate, Oracle, StoredTree
from tests.helpers import law_broken

SOURCE = Source("component", "default", 1, schema_of(None))
NEVER_MORE_THAN = 1 << 30
PICK = st.integers(0, 10_000)
"""Chooses one of the things there are at that moment."""


@dataclass(eq=False)
class Copy:
    """One tuple delivered to one task: the engine's own object, and what the model knows of it."""

    tup: Tuple[Any]
    fate: Fate = Fate.OPEN
    """What its bolt has said."""


@dataclass(eq=False, slots=True)
class ModelTree(StoredTree[Copy]):
    """A tree of copies; its name is its root, and nothing has a time."""

    disturbed: bool = False
    """A message about it was lost or forgotten, or comes twice."""

    def fate(self, copy: Copy) -> Fate:
        return copy.fate


@dataclass(frozen=True)
class Message:
    """One control message about one root."""

    kind: str
    root: int
    copy: Copy | None = None
    delta: int = 0
    failure: Failure | None = None


@dataclass
class Entry:
    """What was heard of one root, as long as the acker remembers it."""

    heard: set[Copy] = field(default_factory=set)
    """Copies whose ack has arrived; a second arrival takes the first one back."""
    failure: Failure | None = None
    age: int = 0
    """Rotations since it was new."""


class Heard:
    """What the acker must know, and when it must speak."""

    def __init__(self, trees: dict[int, ModelTree], buckets: int, activity: bool) -> None:
        self.trees = trees
        self.buckets = buckets
        self.activity = activity
        self.open: dict[int, Entry] = {}
        self.orphans: dict[int, Entry] = {}
        self.news: list[tuple[int, Failure | None]] = []

    @property
    def expiring(self) -> list[int]:
        return [root for root, entry in self.open.items() if entry.age >= self.buckets]

    def init(self, root: int) -> None:
        orphan = self.orphans.pop(root, Entry())
        self.open[root] = Entry(orphan.heard)
        if orphan.failure is not None:
            self.settle(root, orphan.failure)
        else:
            self.look(root)

    def ack(self, root: int, copy: Copy) -> None:
        entry = self.entry(root)
        entry.heard ^= {copy}
        if root in self.open:
            if self.activity:
                entry.age = 0
            self.look(root)

    def fail(self, root: int, failure: Failure) -> None:
        entry = self.entry(root)
        if root in self.open:
            self.settle(root, failure)
        elif entry.failure is None:
            entry.failure = failure

    def reset(self, root: int) -> None:
        if root in self.open:
            self.open[root].age = 0

    def rotate(self) -> None:
        for entry in (*self.open.values(), *self.orphans.values()):
            entry.age += 1
        for root in [root for root, entry in self.orphans.items() if entry.age >= self.buckets]:
            del self.orphans[root]
            self.trees[root].disturbed = True

    def entry(self, root: int) -> Entry:
        return self.open[root] if root in self.open else self.orphans.setdefault(root, Entry())

    def look(self, root: int) -> None:
        """A tree is complete when the ack of each of its tuples has arrived."""
        if self.open[root].heard == set(self.trees[root].copies):
            self.settle(root, None)

    def settle(self, root: int, failure: Failure | None) -> None:
        del self.open[root]
        self.news.append((root, failure))


class World:
    """Spouts, bolts and the network around one ledger, and the model beside it."""

    def __init__(self, seed: int, buckets: int = 3, activity: bool = False) -> None:
        self.ids = iter(IdSource(Random(seed)))
        self.ledger = Ledger(buckets, activity)
        self.oracle = Oracle(law_broken)
        self.trees: dict[int, ModelTree] = {}
        self.heard = Heard(self.trees, buckets, activity)
        self.inits: dict[int, int] = {}
        self.network: list[Message] = []
        self.copies: list[Copy] = []

    @property
    def unsettled(self) -> list[Copy]:
        return [copy for copy in self.copies if copy.fate is Fate.OPEN]

    # Spouts and bolts.

    def emit(self, targets: int) -> None:
        """A spout emits a message to so many tasks (L2)."""
        root, checksum = next(self.ids), 0
        self.trees[root] = ModelTree(root, 0.0)
        for _ in range(targets):
            edge = next(self.ids)
            checksum ^= edge
            self.born(Tuple("value", SOURCE, PLAIN, root, edge))
        self.inits[root] = checksum
        self.network.append(Message("init", root))

    def anchor(self, anchors: list[Copy], targets: int) -> None:
        """A bolt emits to so many tasks, anchored to these inputs (L1, L7)."""
        for _ in range(targets):
            edges: Counter[int] = Counter()
            for anchor in anchors:
                edge = next(self.ids)
                anchor.tup.edge ^= edge
                for root in anchor.tup.roots:
                    edges[root] ^= edge
            if len(edges) == 1:
                ((root, edge),) = edges.items()
                self.born(Tuple("value", SOURCE, PLAIN, root, edge))
            else:
                self.born(joined_tuple("value", SOURCE, PLAIN, dict(edges)))

    def born(self, tup: Tuple[Any]) -> None:
        copy = Copy(tup)
        self.copies.append(copy)
        for root in tup.roots:
            self.trees[root].copies.append(copy)

    def ack(self, copy: Copy) -> None:
        copy.fate = Fate.ACKED
        self.network += [Message("ack", root, copy, delta) for root, delta in copy.tup.edges().items()]

    def fail(self, copy: Copy) -> None:
        copy.fate = Fate.FAILED
        failure = Failure(FailureKind.FAILED, "bolt", self.copies.index(copy))
        self.network += [Message("fail", root, copy, failure=failure) for root in copy.tup.roots]

    def reset(self, copy: Copy) -> None:
        self.network += [Message("reset", root) for root in copy.tup.roots]

    # The network and the clock.

    def deliver(self, message: Message) -> None:
        match message:
            case Message("init", root):
                self.ledger.init([OpenTree(root=root, checksum=self.inits[root], spout=0, message_id=root)])
                self.heard.init(root)
            case Message("fail", root, failure=Failure() as failure):
                self.ledger.fail(root, failure)
                self.heard.fail(root, failure)
            case Message("reset", root):
                self.ledger.reset_timeout(root)
                self.heard.reset(root)
            case _:
                self.deliver_acks([message])
        self.compare()

    def deliver_acks(self, messages: list[Message]) -> None:
        """Several acks as one message, which may have a root several times (L2). One that was doubled takes back what
        the first of the two has said, or comes when its tree is settled: they count in their order."""
        acks = Acks()
        for message in messages:
            assert message.copy is not None
            acks.add(message.root, message.delta)
            self.heard.ack(message.root, message.copy)
        self.ledger.ack(acks)
        self.compare()

    def rotate(self) -> None:
        self.ledger.rotate()
        self.heard.rotate()
        self.compare()

    def expire(self, most: int) -> None:
        """At most so many of those whose time is over, each with its own holders; which ones is the ledger's choice.
        One that was settled while it waited for its turn may count."""
        expiring = self.heard.expiring
        self.ledger.expire(most, {root: (str(root),) for root in expiring})
        acked, failed = self.ledger.take_verdicts()
        assert acked == []
        assert len(failed) <= most
        for tree in failed:
            root = int(str(tree.message_id))
            assert root in expiring
            assert tree.failure == Failure(FailureKind.TIMEOUT, holders=(str(root),))
            self.heard.settle(root, tree.failure)
            self.judge(root, tree.failure)
        self.heard.news.clear()

    def compare(self) -> None:
        """The ledger must say what the model says, now, and the oracle must agree."""
        acked, failed = self.ledger.take_verdicts()
        said = [(tree.message_id, tree.failure) for tree in (*acked, *failed)]
        assert Counter(said) == Counter(self.heard.news)
        for root, failure in self.heard.news:
            self.judge(root, failure)
        self.heard.news.clear()

    def judge(self, root: int, failure: Failure | None) -> None:
        tree = self.trees[root]
        under_way = tree.disturbed or any(message.root == root for message in self.network)
        self.oracle.judge(tree, failure, None, under_way=under_way)

    def calm_down(self) -> None:
        """Everything arrives that is still on its way, and then time passes."""
        while self.network:
            self.deliver(self.network.pop(0))
        for _ in range(self.heard.buckets):
            self.rotate()
            for _ in range(len(self.trees)):
                self.expire(1)
            assert self.heard.expiring == []
        assert [root for root, tree in self.trees.items() if not tree.outcomes] == []
        assert (len(self.ledger), self.ledger.orphans, self.ledger.expiring) == (0, 0, 0)
        assert self.ledger.settled == len(self.trees)

    @property
    def failed(self) -> dict[int, Failure]:
        """The failures of all trees that have failed."""
        return {root: tree.outcomes[0] for root, tree in self.trees.items() if tree.outcomes[0] is not None}


class AnyHistory(RuleBasedStateMachine):
    """Anything may happen at any time, except that inits get through (F1)."""

    world: World

    @initialize(seed=st.integers(0, 99), buckets=st.integers(2, 4), activity=st.booleans())
    def begin(self, seed: int, buckets: int, activity: bool) -> None:
        self.world = World(seed, buckets, activity)

    @rule(tasks=st.integers(0, 3), prompt=st.booleans())
    def emit(self, tasks: int, prompt: bool) -> None:
        self.world.emit(tasks)
        self.hurry(1, prompt)

    @precondition(lambda self: self.world.unsettled)
    @rule(picks=st.lists(PICK, min_size=1, max_size=3), tasks=st.integers(1, 2))
    def anchor(self, picks: list[int], tasks: int) -> None:
        there = self.world.unsettled
        self.world.anchor([there[pick % len(there)] for pick in picks], tasks)

    @precondition(lambda self: self.world.unsettled)
    @rule(pick=PICK, verb=st.sampled_from(["ack", "ack", "ack", "fail", "reset"]), prompt=st.booleans())
    def say(self, pick: int, verb: str, prompt: bool) -> None:
        there = self.world.unsettled
        copy = there[pick % len(there)]
        getattr(self.world, verb)(copy)
        self.hurry(len(copy.tup.roots), prompt)

    @precondition(lambda self: self.world.heard.open)
    @rule(pick=PICK, random=st.randoms(use_true_random=False))
    def complete(self, pick: int, random: Random) -> None:
        """All that is left of an open tree is acked, and told in any order; often that of one about to time out."""
        there = self.world.heard.expiring or list(self.world.heard.open)
        root = there[pick % len(there)]
        left = [copy for copy in self.world.trees[root].copies if copy.fate is Fate.OPEN]
        for copy in random.sample(left, len(left)):
            self.world.ack(copy)
            self.hurry(len(copy.tup.roots), True)

    def hurry(self, count: int, prompt: bool) -> None:
        """The network delivers the last messages at once, if it is prompt."""
        for _ in range(count if prompt else 0):
            self.world.deliver(self.world.network.pop())

    @precondition(lambda self: self.world.network)
    @rule(pick=PICK)
    def deliver(self, pick: int) -> None:
        self.world.deliver(self.world.network.pop(pick % len(self.world.network)))

    @precondition(lambda self: any(each.kind == "ack" for each in self.world.network))
    @rule(random=st.randoms(use_true_random=False))
    def deliver_several_acks(self, random: Random) -> None:
        acks = [each for each in self.world.network if each.kind == "ack"]
        chosen = random.sample(acks, random.randint(1, len(acks)))
        for message in chosen:
            self.world.network.remove(message)
        self.world.deliver_acks(chosen)

    @precondition(lambda self: any(each.kind != "init" for each in self.world.network))
    @rule(pick=PICK, twice=st.booleans())
    def lose_or_duplicate(self, pick: int, twice: bool) -> None:
        there = [each for each in self.world.network if each.kind != "init"]
        message = there[pick % len(there)]
        self.world.trees[message.root].disturbed = True
        if twice:
            self.world.network.append(message)
        else:
            self.world.network.remove(message)

    @rule(times=st.integers(1, 2))
    def rotate(self, times: int) -> None:
        for _ in range(times):
            self.world.rotate()

    @precondition(lambda self: self.world.heard.expiring)
    @rule(most=st.integers(0, 4))
    def expire(self, most: int) -> None:
        self.world.expire(most)

    @invariant()
    def counts_agree(self) -> None:
        ledger, heard = self.world.ledger, self.world.heard
        assert len(ledger) == len(heard.open)
        assert ledger.orphans == len(heard.orphans)
        assert set(ledger.expired_roots()) == set(heard.expiring)
        assert ledger.expiring == len(heard.expiring)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.calm_down()


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def act(world: World, random: Random, failing: float) -> None:
    """One step of a busy topology whose network is in disorder but loses nothing."""
    there = world.unsettled
    choice = random.random()
    if choice < 0.1 or not (there or world.network):
        world.emit(random.randint(0, 3))
    elif there and choice < 0.35:
        world.anchor(random.choices(there[-12:], k=random.choice((1, 1, 1, 2, 3))), random.randint(1, 2))
    elif there and choice < 0.6:
        (world.fail if random.random() < failing else world.ack)(random.choice(there))
    elif world.network:
        world.deliver(world.network.pop(random.randrange(len(world.network))))


@given(seed=st.integers(0, 2**32), failing=st.sampled_from([0.0, 0.02, 0.3]))
@settings(max_examples=40)
def test_without_losses_and_timeouts_every_tree_gets_what_it_deserves(seed: int, failing: float) -> None:
    """Deep and joined trees, every message exactly once, in any order: ack for a tree whose tuples were all acked, and
    for no other; FAILED for one with a failed tuple; nothing is left over."""
    world, random = World(seed), Random(seed)
    for _ in range(300):
        act(world, random, failing)
    for copy in world.unsettled:
        world.ack(copy)
    while world.network:
        world.deliver(world.network.pop(random.randrange(len(world.network))))
    assert all(tree.outcomes for tree in world.trees.values())
    assert world.failed.keys() == {root for root, tree in world.trees.items() if tree.has(Fate.FAILED)}
    assert len(world.ledger) == 0


@given(seed=st.integers(0, 2**32), lost=st.booleans())
@settings(max_examples=40)
def test_one_ack_lost_or_doubled_costs_its_trees_and_no_other(seed: int, lost: bool) -> None:
    """The tree of a lost ack times out; that of a doubled one does too, unless the second came after its end; every
    other tree is acked (law L5)."""
    world, random = World(seed), Random(seed)
    for _ in range(200):
        act(world, random, failing=0.0)
    for copy in world.unsettled:
        world.ack(copy)
    acks = [message for message in world.network if message.kind == "ack"]
    victims = [random.choice(acks)] if acks else []
    for victim in victims:
        (world.network.remove if lost else world.network.append)(victim)
        world.trees[victim.root].disturbed = True
    random.shuffle(world.network)
    world.calm_down()
    spoiled = {victim.root for victim in victims}
    assert all(failure.kind is FailureKind.TIMEOUT for failure in world.failed.values())
    assert world.failed.keys() == spoiled if lost else world.failed.keys() <= spoiled


@given(
    buckets=st.integers(2, 5),
    period=st.integers(1, 7),
    emitted=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    resets=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 90)), max_size=6),
)
def test_a_timeout_is_never_early_and_late_by_one_rotation_at_most(
    buckets: int, period: int, emitted: list[int], resets: list[tuple[int, int]]
) -> None:
    """A rotation every T / (n - 1), after the messages of the same moment: from its emit or its last reset a tree has
    at least T, and at most T * n / (n - 1) (law L12)."""
    ledger, oracle = Ledger(buckets), Oracle(law_broken)
    oracle.timeout = period * (buckets - 1)
    oracle.latest = oracle.timeout + period
    trees: dict[object, ModelTree] = {}
    for moment in range(60 + 90 + period * buckets + 1):
        for number in (number for number, time in enumerate(emitted) if time == moment):
            ledger.init([OpenTree(root=number + 1, checksum=7, spout=0, message_id=number)])
            trees[number] = ModelTree(number, moment)
        for number in (number for number, time in resets if time == moment and number in trees):
            ledger.reset_timeout(number + 1)
            trees[number].restarts.append(moment)
        if moment and moment % period == 0:
            ledger.rotate()
            ledger.expire(NEVER_MORE_THAN, {})
        for tree in ledger.take_verdicts()[1]:
            oracle.judge(trees.pop(tree.message_id), tree.failure, moment, under_way=True)
    assert trees == {}
