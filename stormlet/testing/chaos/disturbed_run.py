"""One run with faults: the parts of the engine ask here which fault happens to them, and let the witness know of it.

The books of the run are looked at here, too: rules that hold for a spout at any time, and for everything at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random

from stormlet.core.trees import OpenTree
from stormlet.errors import TaskKilled
from stormlet.model.plan import ACKER, TaskPlan
from stormlet.report.explanation import Explanation
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.task import Task
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.collector import AnyTuple
from stormlet.testing.chaos.disturbances import EngineError, Raising, Steps
from stormlet.testing.chaos.faults import FaultKind, Injector
from stormlet.testing.chaos.journal import Journal
from stormlet.testing.chaos.lives import Hold, Outlived
from stormlet.testing.chaos.witness import Death, Witness

LONGEST_SLOWNESS = 20.0
MOST_EXPLAINED = 3


class DisturbedRun:
    """The faults of one run and its witness. ``explains``: note what was stuck when the law was broken."""

    tasks: Tasks
    """All tasks, once they are assembled."""
    jump: Callable[[float], None]
    """Sets the clock of the loop forward."""

    def __init__(
        self,
        injector: Injector,
        *,
        explains: bool = False,
        journal: Journal | None = None,
        outlived: Outlived | None = None,
    ) -> None:
        """``journal`` and ``outlived`` are those of all lives, if this is one of several."""
        self.injector = injector
        self.outlived = Outlived() if outlived is None else outlived
        self.hold: Hold | None = None
        """The store of a topology with ``state=``, in this life."""
        self.is_over = False
        """True once the process is dead: what still runs is seen by nobody."""
        self.explains = explains
        self.explanations: Sequence[Explanation] = ()
        self.explain_oldest: Callable[[int], Sequence[Explanation]] = _nothing
        """Explains the trees that time out first, at most so many, once the topology has started."""
        self.journal = Journal(self._now) if journal is None else journal
        self.journal.begin(self._now)
        self.witness = Witness(self._now, self.journal)
        self.steps = Steps(injector, self.kill)
        self.raising = Raising(injector, self.journal)
        self.engine_raised = False
        """After that messages may be in no account, until the end counts them."""
        self.immortal: frozenset[str] = frozenset()
        """Components whose tasks cannot be restarted."""
        self.infallible: frozenset[str] = frozenset()
        """Bolts whose exceptions stop the topology."""
        self._begun = False
        self._has_crashed: Callable[[], bool] = bool
        self._time: Callable[[], float] = float

    def use(self, time: Callable[[], float], jump: Callable[[float], None]) -> None:
        """Take the time from a loop, which finds the kit of this run and so is made after it."""
        self._time = time
        self.jump = jump

    def end(self) -> None:
        """The process is killed."""
        self.journal.note("FAULT: the process is killed")
        self.is_over = self.journal.is_over = True
        self.witness.forget()
        self.outlived.commits.killed()
        if self.hold is not None:
            self.hold.is_over = True

    def note(self, text: str, *values: object) -> None:
        """Note something in the journal."""
        self.journal.note(text, *values)

    def _now(self) -> float:
        return self._time()

    def assembled(self, tasks: Tasks) -> None:
        """Find out what must not be disturbed."""
        self.tasks = tasks
        every = [*tasks.all_spouts, *tasks.all_bolts]
        self.injector.check_places(task.name for task in (*every, *tasks.ackers))
        self.immortal = frozenset(task.plan.component for task in every if not task.survives_kills)
        self.infallible = frozenset(
            task.plan.component for task in tasks.all_bolts if task.on_error == "stop"
        )
        self.witness.calls = {
            **{task.plan.task: 1 for task in tasks.all_spouts},
            **{task.plan.task: task.concurrency for task in tasks.all_bolts},
        }
        self.witness.unbounded = frozenset(task.plan.task for task in tasks.all_spouts if task.feed.dies)
        self.witness.in_cycles = frozenset(_fed_without_waiting(tasks.all_bolts))

    def begin(
        self, has_crashed: Callable[[], bool], explain_oldest: Callable[[int], Sequence[Explanation]]
    ) -> None:
        """The topology has started: from now on it is disturbed."""
        self._begun, self._has_crashed, self.explain_oldest = True, has_crashed, explain_oldest
        every: list[Task] = [*self.tasks.ackers, *self.tasks.all_spouts, *self.tasks.all_bolts]
        self.raising.begin({task.plan.task: task for task in every if task.plan.component != ACKER})
        self.steps.count(task for task in every if task.plan.component not in self.immortal)

    @property
    def has_begun(self) -> bool:
        """True if the topology has started."""
        return self._begun

    def own_settled(self, tree: OpenTree) -> None:
        """A tree that belongs to no message has its outcome (law X5)."""
        attempt = self.witness.open.get(tree)
        if attempt is not None:
            self.witness.settled(attempt.plan, tree)

    @property
    def progress(self) -> int:
        """Grows with every message that is emitted, and with every outcome."""
        trackers = [spout.tracker for spout in self.tasks.all_spouts]
        return sum(tracker.emitted + tracker.counts.settled for tracker in trackers)

    def explain(self) -> None:
        """Note what keeps the oldest trees open."""
        if self.explains and self.tasks.ackers:
            self.explanations = self.explain_oldest(MOST_EXPLAINED)

    # Faults.

    def strikes(self, kind: FaultKind, place: str) -> Random | None:
        """The randomness of a fault that happens here and now; None if none does."""
        return self.injector.strikes(kind, place) if self._begun and not self.is_over else None

    def silence(self, spout: SpoutTask, seconds: float) -> None:
        """Have the source of a task not be asked for so long."""
        if spout.switches.active and not spout.ended:
            self.journal.note("FAULT: {} is silent for {} s", spout.name, round(seconds, 3))
            spout.switches.active = False
            spout.loop.call_later(seconds, self._end_silence, spout)

    def _end_silence(self, spout: SpoutTask) -> None:
        spout.switches.active = True
        spout.wake()

    def engine_fault(self, plan: TaskPlan) -> None:
        """The engine does something for this task, which may raise, but not when the topology ends by that already."""
        if self.strikes(FaultKind.ENGINE, plan.name) is not None and not self._has_crashed():
            self.journal.note("FAULT: stormlet raises for {}", plan.name)
            self.engine_raised = True
            self.witness.disturbed([attempt.root for attempt in self.witness.open.values()])
            raise EngineError(f"stormlet was to raise for {plan.name}")

    def slowness(self, random: Random) -> float:
        """The seconds that a slow input takes longer."""
        return random.uniform(0.0, LONGEST_SLOWNESS)

    def kill(self, task: Task, where: str = "") -> None:
        """Have a task die, unless it does so already."""
        if not task.mortal:
            return
        self.journal.note("FAULT: {} is killed{}", task.name, where)
        if isinstance(task, BoltTask) and task.has_finished:
            self.witness.deaths[task.plan] = Death(self._now(), self._requests(), self._is_at_end())
        if task.plan.component == ACKER:
            self.witness.latest = None  # until it is there again, trees wait for it
        task.die(TaskKilled("the simulation has killed it"))

    # Committers.

    def committing(self, plan: TaskPlan, epoch: int, rows: Sequence[object]) -> None:
        """The ``commit`` of a committer is called."""
        self.witness.begins(plan)
        self.journal.note("{} gets epoch {} of {} rows", plan.name, epoch, len(rows))
        self.outlived.commits.called(plan.component, epoch, rows, self.witness.violation)

    def committed(self, plan: TaskPlan, epoch: int) -> None:
        """It has returned."""
        if not self.is_over:
            self.outlived.commits.had(plan.component, epoch)

    def check_delivered(self) -> None:
        """The run has ended: nothing that is durable waits for a committer, or for the sink of dead letters."""
        stored = self.outlived.store.load()
        self.outlived.commits.check_all_had(self.witness.violation)
        for rows in stored.outbox:
            self.witness.violation("the store still has epoch {} for {}", rows.epoch, rows.committer)
        for epoch, _ in stored.letters:
            self.witness.violation("the store still has a dead letter of epoch {}", epoch)

    # The books.

    def executing(self, plan: TaskPlan, tup: AnyTuple) -> None:
        """A bolt task is about to execute an input: a good moment to look at the books of the spouts."""
        self.witness.executes(plan, tup)
        if not self.engine_raised:
            self.check_pending()

    def check_pending(self) -> None:
        """Check the pending messages of all spouts."""
        for spout in self.tasks.all_spouts:
            self._check_pending(spout)

    def _check_pending(self, spout: SpoutTask) -> None:
        """Pending messages are open, or wait for a report, a replay or the dead letters, and are not too many (law S3).
        A spout that has died has sent what it had (law F1)."""
        tracker, violation = spout.tracker, self.witness.violation
        if spout.outbox.inits and not spout.working:
            violation("{} is dead, and {} messages were not sent", spout.name, len(spout.outbox.inits))
        sent = self.witness.open_of[spout.plan] + len(spout.outbox.inits)
        known = sent + len(tracker.outcomes) + len(tracker.replays) + len(tracker.hand_overs)
        if tracker.pending != known:
            violation("{} counts {} pending messages, and there are {}", spout.name, tracker.pending, known)
        most = spout.context.config.max_spout_pending
        if most is not None and tracker.pending > most and not spout.feed.dies:
            violation("{} has {} messages pending, of at most {}", spout.name, tracker.pending, most)

    def finishing(self, plan: TaskPlan) -> None:
        """``finish`` of a task is called: its upstreams must have finished (law C2)."""
        for component in () if self.engine_raised else self._upstream(plan.component):
            for spout in self.tasks.spouts.get(component, ()):
                if not spout.ended:
                    self.witness.violation("{} finishes before {} has ended", plan.name, spout.name)
            for bolt in self.tasks.bolts.get(component, ()):
                if bolt.inbox.items or self._is_unfinished(bolt, plan.task):
                    self.witness.violation("{} finishes before {}", plan.name, bolt.name)

    def _is_unfinished(self, bolt: BoltTask, finishing: int) -> bool:
        """True if a task has not finished, though another one finishes; but not if it had, and has died since the other
        one was requested to."""
        if bolt.has_finished:
            return False
        return not self.witness.died_after_request(bolt.plan, finishing, self._requests().get(finishing))

    def _requests(self) -> Mapping[int, object]:
        """The last request to finish that each instance of a bolt has had, by task."""
        return {
            bolt.plan.task: (bolt.finished_after, bolt.restarts.count)
            for bolt in self.tasks.all_bolts
            if bolt.finished_after >= 0
        }

    def _is_at_end(self) -> bool:
        """True if nothing is left to do, so that the run may be over."""
        spouts, bolts = self.tasks.all_spouts, self.tasks.all_bolts
        return (
            not bolts[0].engine.activity.busy
            and all(each.ended and not each.tracker.pending for each in spouts)
            and not any(len(each.tracker.replays) for each in spouts)
            and all(each.has_finished for each in bolts)
        )

    def _upstream(self, component: str) -> Iterable[str]:
        plan = self.tasks.all_bolts[0].engine.plan
        cycle = next(group for group in plan.order if component in group)
        inputs = (each.source.component for each in plan.description.bolts[component].inputs)
        return [each for each in dict.fromkeys(inputs) if each not in cycle]

    def check_settled(self) -> None:
        """The run has finished: nothing is open, queued, held or waiting, and every account is balanced (law S5)."""
        witness = self.witness
        for acker in self.tasks.ackers:
            if len(acker.ledger) or acker.load.trees:
                witness.violation(
                    "{} has {} open trees, and counts {}", acker.name, len(acker.ledger), acker.load.trees
                )
        for bolt in self.tasks.all_bolts:
            self._check_bolt(bolt)
        for spout in self.tasks.all_spouts:
            self._check_pending(spout)
            self._check_accounts(spout)
            if spout.tracker.buries:
                witness.given_up.check_all_written(spout.plan, spout.tracker.counts.withdrawn)
        witness.outcomes.check_all_received()
        for attempt in witness.open.values():
            witness.violation("{} never had an outcome", self.journal.tree(attempt.root))

    def _check_bolt(self, bolt: BoltTask) -> None:
        left = sum(1 for _ in bolt.tuples())
        if left:
            self.witness.violation("{} has {} tuples left", bolt.name, left)
        if not (bolt.has_finished or self.witness.died_after_end(bolt.plan)):
            self.witness.violation("{} has executed inputs after its finish", bolt.name)

    def _check_accounts(self, spout: SpoutTask) -> None:
        account, counts, name = self.witness.accounts[spout.plan], spout.tracker.counts, spout.name
        acked_attempts = spout.tracker.acked_attempts
        got, counted = (account.acked, account.failed), (acked_attempts, counts.failed)
        # The acks of withdrawn messages count as nothing else (law S9).
        if account.failed != counts.failed or not 0 <= account.acked - acked_attempts <= counts.withdrawn:
            self.witness.violation("{} got {} acks and fails, and counts {}", name, got, counted)
        # Within epochs a message may be acked in several attempts; what counts is told once (law X3).
        repeated = acked_attempts - counts.acked
        ended = account.kept_acked - repeated + counts.dead_letters + counts.left_over
        if account.messages != ended and not spout.feed.dies:
            self.witness.violation(
                "{} had {} messages, of which {} had an end", name, account.messages, ended
            )

    def check_counted(self) -> None:
        """The run has crashed: each message is acked, given back, a dead letter, withdrawn, or left over
        (law N1)."""
        for spout in self.tasks.all_spouts:
            counts, violation = spout.tracker.counts, self.witness.violation
            ended = counts.acked + counts.given_back + counts.dead_letters + counts.left_over
            ended += counts.withdrawn
            if counts.messages != ended or spout.tracker.pending:
                violation("{} had {} messages, of which {} are counted", spout.name, counts.messages, ended)
            if spout.tracker.outcomes or len(spout.tracker.replays):
                violation("{} has outcomes or replays after the end", spout.name)


def _fed_without_waiting(bolts: Sequence[BoltTask]) -> Iterator[int]:
    """Tasks with an input from inside a cycle."""
    for links in bolts[0].engine.plan.links.values() if bolts else ():
        for link in links:
            if not link.waits:
                yield from link.targets


def _nothing(most: int) -> Sequence[Explanation]:
    return ()
