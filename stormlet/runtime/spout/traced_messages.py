"""The messages of one spout task that are traced: those whose turn comes by chance, and those that continue a trace."""

from __future__ import annotations

from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Lineage
from stormlet.model.plan import TaskPlan
from stormlet.runtime.tracing import Tracing


class TracedMessages:
    """Tells of the messages of a spout task that may be traced, and passes over all others at the price of a count."""

    __slots__ = ("_open", "_plan", "_to_pass_over", "_tracing")

    def __init__(self, tracing: Tracing, plan: TaskPlan) -> None:
        self._tracing = tracing
        self._plan = plan
        self._open = tracing.open
        self._to_pass_over = tracing.gap(plan)
        """Messages before the next one whose turn comes by chance."""

    def begin(self, tree: OpenTree, stream: str, lineage: Lineage) -> Lineage:
        """An attempt begins: return the lineage that its tuples get."""
        is_chosen = not self._to_pass_over
        if is_chosen:
            self._to_pass_over = self._tracing.gap(self._plan)
        else:
            self._to_pass_over -= 1
            if lineage.context is None and not lineage.trace:  # it continues nothing
                return lineage
        return self._tracing.begin(self._plan, tree, stream, lineage, is_chosen=is_chosen)

    def settled(self, tree: OpenTree) -> None:
        """An attempt has its outcome."""
        if self._open and tree in self._open:
            self._tracing.settled(tree)
