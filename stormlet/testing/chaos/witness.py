"""The judge of a simulated run: it stores every tuple tree for the oracle, and knows no XOR and no ledger.

What it holds against the engine, by law: every tracked emission has exactly one outcome (L4, L15), which goes to the
task that emitted it, whose ``Spout`` instance gets it once and as it is (S1); a tree is acked only when every
tuple of it was acked (L1, L2, L7), and times out only if one was not, neither too early nor too late (L12); nothing
is pending that is not accounted for, and everything is (S3); no queue grows beyond its bound (B6); ``finish`` comes
when the upstreams have finished (C2); messages that the engine keeps end as acked or as one dead letter each (S6);
in the end nothing is left (S5).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, MutableSet
from dataclasses import dataclass, field
from typing import Any

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import ACKED, FAILED, LOST, Tuple
from stormlet.model.plan import TaskPlan
from stormlet.runtime.spout import messages
from stormlet.runtime.spout.messages import Message
from stormlet.testing.chaos.journal import Journal
from stormlet.testing.chaos.oracle import Fate, Oracle, StoredTree
from stormlet.testing.chaos.outcomes import GivenUp, SpoutOutcomes

FATES = {ACKED: Fate.ACKED, FAILED: Fate.FAILED, LOST: Fate.LOST}


@dataclass(eq=False, slots=True, kw_only=True)
class Attempt(StoredTree[Tuple[Any]]):
    """One tracked emission that has no outcome yet."""

    root: int
    plan: TaskPlan

    def fate(self, copy: Tuple[Any]) -> Fate:
        """The state that its task has left a tuple in."""
        return FATES.get(copy.state, Fate.OPEN)


@dataclass(slots=True)
class Account:
    """The emits of one spout task, and their outcomes."""

    acked: int = 0
    failed: int = 0
    messages: int = 0
    """Those that the engine keeps, each counted once."""
    kept_acked: int = 0


@dataclass(slots=True)
class Queue:
    """The known state of one inbox."""

    capacity: int
    units: dict[int, int] = field(default_factory=dict[int, int])
    """By producer: the tuples of its running call."""
    largest: dict[int, int] = field(default_factory=dict[int, int])
    """By producer: those of its largest call so far."""


@dataclass(frozen=True, slots=True)
class Death:
    """The death of a bolt task that had finished. What comes after it may have been asked to finish before, and the run
    may have been over (law C2)."""

    at: float
    """The moment."""
    asked: Mapping[int, object]
    """By task: the last request to finish that had come until then."""
    at_end: bool
    """True if nothing was left to do."""


class Witness(Oracle):
    """The judge of one run."""

    def __init__(self, time: Callable[[], float], journal: Journal) -> None:
        super().__init__(self.violation)
        self.violations: list[str] = []
        self.journal = journal
        self.on_violation: Callable[[], object] = _nothing
        """Called when the law was broken: the run may end then, as what comes after says little."""
        self.accounts = defaultdict[TaskPlan, Account](Account)
        self._begun: MutableSet[Message] = set()
        self.open: dict[OpenTree, Attempt] = {}
        """Trees without an outcome."""
        self.open_of = Counter[TaskPlan]()
        """The number of them that each spout task has."""
        self.calls: Mapping[int, int] = {}
        """By task: how many calls it may run at a time."""
        self.unbounded: frozenset[int] = frozenset()
        """Tasks whose calls may emit any number of tuples without waiting: spout classes and the host."""
        self.in_cycles: frozenset[int] = frozenset()
        """Tasks with an input from inside a cycle, which does not wait for room (law B6)."""
        self.deaths: dict[TaskPlan, Death] = {}
        """The last death of each bolt task that was killed when it had finished."""
        self.outcomes = SpoutOutcomes(self.violation)
        self.given_up = GivenUp(self.violation)
        self._time = time
        self._tuples: dict[int, list[Tuple[Any]]] = {}
        self._disturbed = set[int]()
        self._acked: MutableSet[int] = set()
        self._settled: MutableSet[OpenTree] = set()
        self._queues: dict[int, Queue] = {}
        self._extended = set[int]()
        self._last_moved = -1.0
        self._last_jump = -1.0

    def died_after_request(self, plan: TaskPlan, task: int, request: object) -> bool:
        """True if this bolt task had finished, and was killed after another was requested to finish. In simulated time
        that one does so at the very same moment."""
        death = self.deaths.get(plan)
        return death is not None and self.excuses_request(death, task, request)

    def died_after_end(self, plan: TaskPlan) -> bool:
        """True if this bolt task had finished, and was killed when nothing was left to do."""
        death = self.deaths.get(plan)
        return death is not None and self.excuses_end(death)

    def excuses_request(self, death: Death, task: int, request: object) -> bool:
        """True if a task may do what it was requested to, though this one has died."""
        return death.at == self._time()

    def excuses_end(self, death: Death) -> bool:
        """True if the run may have ended, though this one has died."""
        return death.at == self._time()

    def forget(self) -> None:
        """The run is over. The garbage collector does not look into trees: a witness that kept one that has failed
        would keep the run, by way of the traceback of its failure, and the run its witness.
        """
        self.open.clear()
        self._settled.clear()
        self.outcomes.forget()
        self.given_up.forget()

    def violation(self, text: str, *values: object) -> None:
        """The law was broken."""
        if self.journal.is_over:
            return
        self.journal.note(f"VIOLATION: {text}", *values)
        self.violations.append(text.format(*values))
        self.on_violation()

    # Tuples.

    def queue(self, plan: TaskPlan, capacity: int) -> None:
        """A task has an inbox."""
        self._queues[plan.task] = Queue(capacity)

    def delivered(self, plan: TaskPlan, tup: Tuple[Any], queued: int) -> None:
        """A tuple is in the inbox of a task, with so many others."""
        roots = tup.roots
        names = [self.journal.tree(root) for root in roots]
        self.journal.note(
            "{} gets {} from {}" + ", {}" * len(names), plan.name, tup.value, tup.component, *names
        )
        for root, name in zip(roots, names, strict=True):
            if root in self._acked:
                self.violation("{} was acked, and then {} got {} of it", name, plan.name, tup.value)
            self._tuples.setdefault(root, []).append(tup)
        self._check_queue(plan, tup.task, queued)

    def _check_queue(self, plan: TaskPlan, producer: int, queued: int) -> None:
        if plan.task in self.in_cycles:
            return
        queue = self._queues[plan.task]
        unit = queue.units[producer] = queue.units.get(producer, 0) + 1
        if unit > queue.largest.get(producer, 0):
            queue.largest[producer] = unit
        if queued > 2 * queue.capacity + sum(
            largest * self.calls[task] for task, largest in queue.largest.items()
        ) and self.unbounded.isdisjoint(queue.largest):
            self.violation(
                "the queue of {} has {} tuples, with a capacity of {}", plan.name, queued, queue.capacity
            )

    def begins(self, plan: TaskPlan) -> None:
        """A task begins another call of user code."""
        self.moved()
        for queue in self._queues.values():
            queue.units.pop(plan.task, None)

    def moved(self) -> None:
        """User code has just done something: what was settled may be on its way."""
        self._last_moved = self._time()

    def jumped(self) -> None:
        """The clock has jumped: what was settled may be on its way, and what is due comes late."""
        self.moved()
        self._last_jump = self._time()

    def executes(self, plan: TaskPlan, tup: Tuple[Any]) -> None:
        """A task is about to execute an input."""
        self.begins(plan)
        self.journal.note("{} executes {}", plan.name, tup.value)

    # Trees.

    def emitted(self, plan: TaskPlan, root: int, tree: OpenTree) -> None:
        """A spout task has sent an acker a new tree."""
        if isinstance(tree, Message):
            # A message of a spoilt epoch begins again, and has not failed itself.
            is_new = tree.lineage.attempt == 1 and not tree.history and tree not in self._begun
            self.accounts[plan].messages += is_new
            self._begun.add(tree)
        if tree in self.open:
            self.violation("{} begins anew before it had an outcome", self.journal.tree(root))
        self.given_up.replayed(plan, tree)
        self.open[tree] = Attempt(
            name=self.journal.tree(root),
            began=self._time(),
            copies=self._tuples.setdefault(root, []),
            root=root,
            plan=plan,
        )
        self.open_of[plan] += 1
        self._settled.discard(tree)
        self.begins(plan)
        self.journal.note("{} begins {}", plan.name, self.journal.tree(root))

    def disturbed(self, roots: Any) -> None:
        """Messages about these trees were lost, doubled or delayed: their trees may time out."""
        self._disturbed.update(roots)

    def extended(self, roots: Iterable[int]) -> None:
        """These trees may be given more time: a bolt wants it, or an acker gets to know them late."""
        self._extended.update(roots)

    def settled(self, plan: TaskPlan, tree: OpenTree) -> None:
        """A spout task gets an outcome."""
        self.outcomes.decided(plan, tree)
        if type(tree) is messages.GivenUp:
            return
        self.given_up.decided(plan, tree)
        failure = tree.failure
        account = self.accounts[plan]
        account.acked += failure is None
        account.failed += failure is not None
        if isinstance(tree, Message):
            account.kept_acked += failure is None
        attempt = self.open.pop(tree, None)
        if attempt is None:
            self._settled_at_once(plan, tree)
        else:
            self._judge(plan, attempt, failure)
        self._settled.add(tree)

    def _settled_at_once(self, plan: TaskPlan, tree: OpenTree) -> None:
        kind = None if tree.failure is None else tree.failure.kind
        self.journal.note(
            "{}: a message is settled at once: {}",
            plan.name,
            "acked" if tree.failure is None else str(tree.failure),
        )
        if tree in self._settled and kind not in (FailureKind.OVERFLOW, FailureKind.SHUTDOWN):
            self.violation("{} got a second outcome of one emission", plan.name)
        if isinstance(tree, Message) and not tree.history and tree.lineage.attempt == 1:
            self.accounts[plan].messages += 1

    def _judge(self, plan: TaskPlan, attempt: Attempt, failure: Failure | None) -> None:
        self.open_of[attempt.plan] -= 1
        name, root = attempt.name, attempt.root
        self.journal.note("{} of {}: {}", name, plan.name, "acked" if failure is None else str(failure))
        if plan is not attempt.plan:
            self.violation("{} of {} went to {}", name, attempt.plan.name, plan.name)
        self._tuples.pop(root, None)
        if failure is None:
            self._acked.add(root)
        # What is settled at the very moment at which its tree times out may be too late.
        under_way = root in self._disturbed or self._last_moved == self._time()
        extended = root in self._extended or attempt.began <= self._last_jump
        self.judge(attempt, failure, self._time(), under_way=under_way, extended=extended)


def _nothing() -> None:
    """Nobody wants to know."""
