"""Traces of some messages: which ones, and the spans of their attempts.

Theory of operation
-------------------
An attempt at a message is a span from its emit to its outcome. Its executions are spans below it, each below the one
that has emitted its input; where inputs are joined, the first is the parent and the others are links. All attempts at a
message that the engine keeps are one trace: a replay is below the span that the first attempt is below, or else below
that of the first attempt.

Which messages are traced is decided when an attempt begins, and costs a count for those that are not. Spans begin
when executions do, so that spans of user code are their children. They are ended, and so exported, when the attempt is
over, with the times that were noted: then it is known what became of each input.
"""

from __future__ import annotations

from importlib.metadata import version
from math import log1p
from random import Random
from typing import Final, cast

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, TracerProvider

from stormlet.core.shortened import shortened
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Lineage
from stormlet.errors import InvalidConfiguration
from stormlet.exports.opentelemetry.contexts import parent_in
from stormlet.exports.opentelemetry.spans import Attempt, Edge, Spans, below
from stormlet.model.checks.numbers import is_finite
from stormlet.model.plan import TaskPlan
from stormlet.runtime.spout.messages import Message
from stormlet.runtime.tracing import TracedRun

SHARE: Final = 0.001
ENDLESS: Final = 1 << 60
"""More messages than any run has."""


class Traces:
    """Traces this share of the messages of a topology: ``topology.run(traces=Traces(share=0.01))``.

    Besides, it traces every message that continues a sampled span: one that the host emits while the span is current,
    or that its source was given with a header ``traceparent``; and none that continues a span that is not sampled.

    ``tracer_provider`` is the global one by default. Spans have the name of their component, and attributes
    ``stormlet.topology``, ``.component``, ``.task``, ``.stream``, ``.attempt`` and ``.queue_wait`` (seconds); values of
    tuples are not among them, the message id is.
    """

    def __init__(self, share: float = SHARE, *, tracer_provider: TracerProvider | None = None) -> None:
        if not is_finite(share) or not 0 <= share <= 1:
            raise InvalidConfiguration(
                f"the share of messages to trace is a number from 0 to 1, not {share!r}"
            )
        self._share = share
        self._provider = tracer_provider

    def start(self, run: TracedRun) -> RunTraces:
        """Begin with a run."""
        tracer = trace.get_tracer("stormlet", version("stormlet"), self._provider)
        return RunTraces(run, tracer, self._share)


class RunTraces:
    """The traces of one run (see :class:`~stormlet.runtime.tracing.Tracing`)."""

    def __init__(self, run: TracedRun, tracer: trace.Tracer, share: float) -> None:
        self._spans = Spans(run, tracer)
        self.open: dict[OpenTree, Attempt] = {}
        """The attempts that are traced and have no outcome."""
        self._share = share
        self._seed = run.seed
        self._randoms: dict[int, Random] = {}
        """That of each spout task, so that others do not change which of its messages are traced."""
        home = parent_in(run.context)
        self._home = [] if home is None else [Link(home)]
        """The span in which the topology was started: its messages are no part of that, as they may be millions."""

    def gap(self, task: TaskPlan) -> int:
        """Return the number of attempts of this spout task that chance passes over before it chooses the next one, so
        that each has the same chance."""
        if self._share in (0, 1):
            return 0 if self._share else ENDLESS
        if task.task not in self._randoms:
            self._randoms[task.task] = Random(f"{self._seed}/traces/{task.task}")
        random = self._randoms[task.task]
        # A random number for each message would cost more than to count down.
        return int(min(ENDLESS, log1p(-random.random()) / log1p(-self._share)))

    def begin(
        self, task: TaskPlan, tree: OpenTree, stream: str, lineage: Lineage, *, is_chosen: bool
    ) -> Lineage:
        """An attempt begins: return the lineage that its tuples get."""
        if lineage.trace:  # of the attempt before
            parent: Context | None = cast("Edge", lineage.trace[0]).attempt.parent_of_replays
        else:
            continued = None if lineage.context is None else parent_in(lineage.context)
            if not (is_chosen if continued is None else continued.trace_flags.sampled):
                return lineage
            parent = None if continued is None else below(NonRecordingSpan(continued))
        return self._traced(task, tree, stream, lineage, parent)

    def _traced(
        self, task: TaskPlan, tree: OpenTree, stream: str, lineage: Lineage, parent: Context | None
    ) -> Lineage:
        now, links = self._spans.clock(), self._home if parent is None else ()
        id = shortened(tree.message_id)
        span = self._spans.begin(task, stream, lineage, parent or Context(), now, links, message_id=id)
        if not span.is_recording():  # there is no SDK, or it samples less
            return lineage
        attempt = self.open[tree] = Attempt(self._spans, span, parent)
        traced = self._spans.lineage(lineage, span, Edge(attempt, span, now))
        if isinstance(tree, Message):  # its replays belong to the same trace
            tree.lineage = traced
        return traced

    def settled(self, tree: OpenTree) -> None:
        """An attempt that is traced has its outcome."""
        self.open.pop(tree).settle(tree.failure)

    def close(self) -> None:
        """The run is over: end what has no outcome."""
        while self.open:
            self.open.popitem()[1].leave_over()
