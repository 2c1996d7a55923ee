"""The seam for those who trace messages, such as OpenTelemetry, which the engine does not know.

A message is traced or not when an attempt at it begins. One that is has a lineage with a trace and with context
variables of its own, which its tuples inherit: so each of them goes the careful way through its bolt, where its
execution is noted, and all others go their ways as if nothing was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextvars import Context
from typing import Any, Protocol, cast

import msgspec

from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Lineage, Tuple
from stormlet.errors import InvalidConfiguration
from stormlet.model.plan import TaskPlan
from stormlet.runtime.wire.collector import BoltCollector


class TracedRun(msgspec.Struct, frozen=True):
    """A run, as those get it who trace its messages."""

    name: str
    """The name of the topology."""
    clock: Callable[[], float]
    context: Context
    """The context variables of the topology."""
    seed: int


class Execution(Protocol):
    """An execution that is traced."""

    def out(self, out: BoltCollector) -> BoltCollector:
        """Return a collector that notes when something is emitted."""
        ...

    def over(self, error: BaseException | None, *, emits_now: bool = False) -> None:
        """The call has returned, or has raised this; ``emits_now`` if its outputs are emitted only now."""
        ...


class TracedEdge(Protocol):
    """A delivery that is traced: the lineages of its tuples have it."""

    def execute(self, task: TaskPlan, tup: Tuple[Any]) -> Execution:
        """The execution of one of them begins."""
        ...


class Tracing(Protocol):
    """Traces messages of one run."""

    @property
    def open(self) -> Collection[OpenTree]:
        """The attempts that are traced and have no outcome, always the same collection: of the others it is told
        nothing."""
        ...

    def gap(self, task: TaskPlan) -> int:
        """Return the number of attempts of this spout task that chance passes over before it chooses the next one."""
        ...

    def begin(
        self, task: TaskPlan, tree: OpenTree, stream: str, lineage: Lineage, *, is_chosen: bool
    ) -> Lineage:
        """An attempt begins, which chance has chosen or which may continue a trace: return the lineage that its tuples
        get."""
        ...

    def settled(self, tree: OpenTree) -> None:
        """An attempt that is traced has its outcome."""
        ...

    def close(self) -> None:
        """The run is over."""
        ...


class Traces(Protocol):
    """Says which messages are traced, and by whom."""

    def start(self, run: TracedRun) -> Tracing:
        """A run begins."""
        ...


def check_traces(where: str, traces: object) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` for what cannot trace a run."""
    if traces is not None and (isinstance(traces, type) or not callable(getattr(traces, "start", None))):
        raise InvalidConfiguration(
            f"{where}: traces must be a stormlet.exports.opentelemetry.Traces() or None, not {traces!r}"
        )


def traced_execution(task: TaskPlan, tup: Tuple[Any]) -> Execution:
    """The execution of an input that is traced begins."""
    return cast("TracedEdge", tup.lineage.trace[0]).execute(task, tup)
