"""The plan of one task: the record that all parts of a run know it by."""

from __future__ import annotations

import msgspec

from stormlet.core.shortened import printable

ACKER = "__acker"
"""The component id of the ackers, as in Storm."""


class TaskPlan(msgspec.Struct, frozen=True):
    """One task: an instance of a component."""

    component: str
    task: int
    """Its id, unique in the topology, from 1."""
    index: int
    """Its place among the tasks of its component, from 0."""
    parallelism: int

    @property
    def name(self) -> str:
        """Its name in messages, such as ``split[0]``."""
        return f"{printable(self.component)}[{self.index}]"
