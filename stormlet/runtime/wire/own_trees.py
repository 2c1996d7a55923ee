"""Trees that belong to the epoch itself: emits of bolts that name no anchor (law X5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stormlet.core.ids import IdSource, shard_of
from stormlet.core.ledger import AckerLoad
from stormlet.core.trees import new_tree
from stormlet.core.tuples import PLAIN
from stormlet.runtime.epoch import OpenEpoch
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import Outlet


class OwnTrees:
    """Makes them for one bolt task. Their verdicts go to the keeper of the epochs."""

    def __init__(
        self, epoch: OpenEpoch, number: int, ids: IdSource, loads: Sequence[AckerLoad], outbox: Outbox
    ) -> None:
        """``number`` is the index by which they name that keeper, among the spout tasks."""
        self._epoch = epoch
        self._number = number
        self._ids = iter(ids)
        self._loads = loads
        self._outbox = outbox
        self.in_call: Callable[[], bool] = _never
        """Says if a call of ``execute`` runs; its task puts its own method here."""

    def deliver(self, outlet: Outlet, value: object) -> None:
        """Deliver a value as the root of such a tree. There is no high water: nothing could be done about it here."""
        root = next(self._ids)
        tree = new_tree(None)
        tree.root = root
        tree.checksum = outlet.deliver(value, root, PLAIN)
        if not outlet.reached:
            return
        tree.spout = self._number
        self._outbox.inits.append(tree)
        self._loads[shard_of(root, len(self._loads))].trees += 1
        self._epoch.begin_own()
        # If its input fails and is replayed alone, this would come twice (law X6).
        if self.in_call():
            self._epoch.attempt.is_entangled = True


def _never() -> bool:
    return False
