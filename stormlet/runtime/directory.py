"""Finds things in a running topology: who holds a tree, which message it is of, who takes the host's next
message."""

from __future__ import annotations

from collections.abc import Container, Iterable

from stormlet.core.ids import shard_of
from stormlet.core.open_tree import OpenTree
from stormlet.runtime.assembly import Tasks
from stormlet.runtime.holder_scan import HolderScan


class Directory:
    """Looks through the tasks, once there are any."""

    def __init__(self) -> None:
        self.tasks = Tasks((), {}, {}, {})

    def scan_holders(self, roots: Container[int]) -> HolderScan:
        """Begin to look for the components that still hold tuples of these trees (law L14)."""
        return HolderScan(self.tasks.all_bolts, roots)

    def message_id(self, roots: Iterable[int]) -> object:
        """The message id of the first of these trees that is open; None if none is, or the host emitted
        it."""
        for root in roots:
            tree = self._open_tree(root)
            if tree is not None:
                return tree.message_id
        return None

    def _open_tree(self, root: int) -> OpenTree | None:
        ackers = self.tasks.ackers
        if not ackers:
            return None
        tree = ackers[shard_of(root, len(ackers))].ledger.open_tree(root)
        if tree is not None:
            return tree
        unsent = (task.outbox.inits.get(root) for task in self.tasks.all_spouts)
        return next((each for each in unsent if each is not None), None)
