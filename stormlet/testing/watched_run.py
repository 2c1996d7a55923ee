"""A look at one run: every value that is emitted, the outcome of every message, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.shortened import shortened
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import HELD
from stormlet.model.plan import TaskPlan
from stormlet.report.explanation import Explanation
from stormlet.report.failures import Key, RepeatedFailure
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.run.observers import ObservedRun
from stormlet.runtime.spout.messages import Message
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.wire.outlets import Outlet, WrappedOutlet
from stormlet.testing.images import EmittedValues
from stormlet.testing.leaks import Leak, LeakKind

SpoutOrBolt = SpoutTask | BoltTask


class WatchedRun:
    """An observer of one run (see :class:`stormlet.runtime.run.observers.Observer`)."""

    def __init__(self) -> None:
        self.name = ""
        self.leaks: Sequence[Leak] = ()
        """The leaks, once it has ended."""
        self._run: ObservedRun | None = None
        self._tracks = False
        self._spouts: Sequence[SpoutTask] = ()
        self._bolts: Sequence[BoltTask] = ()
        self._values = EmittedValues()
        self._open: dict[int, tuple[OpenTree, object]] = {}
        self._left_over: list[str] = []
        self._errors: dict[tuple[int, Key], RepeatedFailure] = {}

    @property
    def crash(self) -> str | None:
        """The crash, if there was one and the run was not left yet."""
        return None if self._run is None else self._run.health().crash

    def built(self, run: ObservedRun) -> None:
        """See :meth:`stormlet.runtime.run.observers.Observer.built`."""
        self.name, self._run, self._tracks = run.name, run, bool(run.tasks.ackers)
        run.record_edges(1.0)
        self._spouts, self._bolts = run.tasks.all_spouts, run.tasks.all_bolts
        everyone: Sequence[SpoutOrBolt] = [*self._spouts, *self._bolts]
        for task in everyone:
            for stream, outlet in task.outlets.items():
                task.outlets[stream] = WatchedOutlet(outlet, partial(self.emitted, task, stream))

    def emitted(self, task: SpoutOrBolt, stream: str, value: object, roots: Sequence[int]) -> None:
        """A task has emitted a value as a member of these trees."""
        self._values.note(task.plan, stream, value)

    def tracked(self, task: TaskPlan, tree: OpenTree, value: object) -> None:
        """See :meth:`stormlet.runtime.context.MessageObserver.tracked`."""
        self._open[id(tree)] = (tree, value)

    def settled(self, task: TaskPlan, tree: OpenTree) -> None:
        """See :meth:`stormlet.runtime.context.MessageObserver.settled`."""
        _, value = self._open.pop(id(tree), (tree, tree.message_id))
        if tree.failure is not None and tree.failure.kind is FailureKind.SHUTDOWN:
            held = "".join(f"\n    {each}" for each in tree.failure.outstanding)
            self._left_over.append(
                f"the tree of {shortened(value)}, emitted by {task.name}, was still open at the end{held}"
            )

    def unanswered(self, task: TaskPlan, failure: RepeatedFailure) -> None:
        """See :meth:`stormlet.runtime.run.observers.Observer.unanswered`."""
        key = (task.task, failure.key)
        first = self._errors.get(key)
        self._errors[key] = failure if first is None else replace(first, count=first.count + 1)

    def ended(self, *, drained: bool) -> None:
        """See :meth:`stormlet.runtime.run.observers.Observer.ended`. The run is kept no longer: whatever it holds can
        be collected."""
        self.leaks = list(self._leaks(drained))
        self._run, self._spouts, self._bolts = None, (), ()
        self._values = EmittedValues()
        self._open.clear()

    def _leaks(self, drained: bool) -> Iterator[Leak]:
        if drained:  # what was cancelled may have left anything undone
            yield from self._of_kind("inputs", self.unsettled())
            yield from self._of_kind("trees", self._left_over)
            yield from self._of_kind("errors", self._raised())
        yield from self._of_kind("values", self._values.changes())

    def _of_kind(self, kind: LeakKind, lines: Iterable[str]) -> Iterator[Leak]:
        return (Leak(kind, f"topology {self.name!r}: {line}") for line in lines)

    def _raised(self) -> Iterator[str]:
        for error in self._errors.values():
            where = f"{error.task} raised {error.error} in {error.what} ({error.place})"
            settled = f" on {error.value}, already settled" if error.value else ""
            times = f" ({error.count} times)" if error.count > 1 else ""
            yield f"{where}{settled}{times}"

    def stuck(self) -> Sequence[Explanation]:
        """Explanations of the trees that are open now."""
        return [] if self._run is None or not self._tracks else self._run.explain_oldest()

    def unsettled(self) -> Iterator[str]:
        """A line for each input that a bolt has got and neither acked nor failed."""
        for task in self._bolts:
            for tup in task.tuples():
                verb = "never acked or failed" if tup.state == HELD else "has not finished"
                yield f"{task.plan.name} {verb} {shortened(tup)}"

    def unfinished(self) -> Iterator[str]:
        """A line for each spout that goes on, then for each input that a bolt still has."""
        yield from self.endless()
        yield from self.unsettled()

    def endless(self) -> Iterator[str]:
        """A line for each spout that goes on."""
        return endless(self._spouts)


def endless(spouts: Iterable[SpoutTask]) -> Iterator[str]:
    """A line for each spout that goes on."""
    for id in dict.fromkeys(task.plan.component for task in spouts if not task.ended):
        yield f"spout {id!r} has not ended; give it values with sources={{{id!r}: [...]}}"


class WatchedOutlet(WrappedOutlet):
    """An outlet that reports its deliveries."""

    __slots__ = ("_report",)

    def __init__(self, inner: Outlet, report: Callable[[object, Sequence[int]], None]) -> None:
        super().__init__(inner)
        self._report = report

    def after(self, value: object, roots: Sequence[int]) -> None:
        """Report it."""
        self._report(value, roots)

    def wrapping(self, inner: Outlet) -> Outlet:
        """The same for the outlet to one task."""
        return WatchedOutlet(inner, self._report)


@dataclass(frozen=True, slots=True)
class Emission:
    """One value that was emitted."""

    component: str
    task: int
    """The id of the task."""
    stream: str
    value: object
    during: str
    """The method that emitted it or ran last, such as ``execute`` or ``finish``."""
    at: float
    """The moment, by the clock of the loop, in seconds."""
    roots: tuple[int, ...]
    """The trees that it joined; none if it was untracked."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one message."""

    component: str
    """The spout that emitted it."""
    value: object
    message_id: object
    history: tuple[Failure, ...]
    """The failure of each attempt, in order."""
    acked: bool

    @property
    def attempts(self) -> int:
        """The number of attempts."""
        return len(self.history) + self.acked

    @property
    def failure(self) -> Failure | None:
        """The failure in the end; None if it was acked."""
        return None if self.acked else self.history[-1]


class RecordedRun(WatchedRun):
    """An observer that keeps everything."""

    def __init__(self) -> None:
        super().__init__()
        self.emissions: list[Emission] = []
        """All of them, in their order."""
        self._messages: list[_Message] = []
        self._last: dict[object, _Message] = {}

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Of every message that was settled, in the order in which they were emitted first."""
        return [each.outcome() for each in self._messages if each.acked or each.history]

    def emitted(self, task: SpoutOrBolt, stream: str, value: object, roots: Sequence[int]) -> None:
        """Note the value."""
        super().emitted(task, stream, value, roots)
        trees = tuple(root for root in roots if root)
        plan, now = task.plan, task.loop.time()
        self.emissions.append(Emission(plan.component, plan.task, stream, value, task.doing, now, trees))

    def tracked(self, task: TaskPlan, tree: OpenTree, value: object) -> None:
        """Note the attempt; one with the message id of another that failed is the next attempt at that."""
        super().tracked(task, tree, value)
        key = _key(task, tree)
        before = self._last.get(key)
        if before is None or before.acked:
            self._last[key] = _Message(task.component, value, tree)
            self._messages.append(self._last[key])

    def settled(self, task: TaskPlan, tree: OpenTree) -> None:
        """Note the outcome of an attempt."""
        super().settled(task, tree)
        message = self._last[_key(task, tree)]
        if tree.failure is None:
            message.acked = True
        else:
            message.history += (tree.failure,)


@dataclass(slots=True)
class _Message:
    component: str
    value: object
    tree: OpenTree
    history: tuple[Failure, ...] = ()
    acked: bool = False

    def outcome(self) -> Outcome:
        return Outcome(self.component, self.value, self.tree.message_id, self.history, self.acked)


def _key(task: TaskPlan, tree: OpenTree) -> object:
    if isinstance(tree, Message):
        return tree
    try:
        hash(tree.message_id)
    except TypeError:
        return task.task, id(tree.message_id)
    return task.task, tree.message_id
