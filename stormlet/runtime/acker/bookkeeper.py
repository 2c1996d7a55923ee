"""The work of an acker task: applies control messages to its ledger and hands out verdicts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain

from stormlet.core.ledger import AckerLoad, Ledger
from stormlet.core.trees import OpenTree
from stormlet.runtime.slices import Activity
from stormlet.runtime.wire.outbox import Control


class Verdicts:
    """The verdicts for one spout task: ackers append them, and notify it."""

    __slots__ = ("notify", "trees")

    def __init__(self, trees: deque[OpenTree]) -> None:
        self.trees = trees
        """Trees that are settled, in the order of their verdicts."""
        self.notify: Callable[[], None] = _nobody
        """Called after trees were appended; the spout task that takes them puts its own method here."""


def _nobody() -> None:
    """Take the notice of verdicts before their spout task is made; no tree can be open by then."""


class Bookkeeper:
    """Keeps the ledger of one acker."""

    __slots__ = ("_activity", "acked", "applied", "failed", "ledger", "load", "verdicts")

    def __init__(
        self, ledger: Ledger, load: AckerLoad, activity: Activity, verdicts: Sequence[Verdicts]
    ) -> None:
        self.ledger = ledger
        self.load = load
        self._activity = activity
        self.verdicts = verdicts
        """Those of every spout task, by the index that open trees name."""
        self.applied = 0
        """The number of entries in the control messages applied so far."""
        self.acked = 0
        """The number of trees acked so far."""
        self.failed = 0
        """The number of trees failed so far."""

    def apply(self, control: Control) -> int:
        """Enter a control message; return the number of its entries."""
        ledger = self.ledger
        # Inits first: an ack of the same slice would be kept as an orphan otherwise, and looked up twice.
        if control.inits:
            ledger.init(control.inits)
        if control.acks:
            ledger.ack(control.acks)
        for root, failure in control.fails:
            ledger.fail(root, failure)
        for root in control.resets:
            ledger.reset_timeout(root)
        size = control.size
        self.applied += size
        return size

    def apply_at_once(self, control: Control) -> None:
        """Do all that comes of a control message, while the acker task sleeps."""
        self._activity.begin()  # its end may be the moment when all is quiet (law S5)
        try:
            self.apply(control)
            self.give_verdicts()
        finally:
            self._activity.end()

    def give_verdicts(self) -> None:
        """Hand the trees that were settled to their spout tasks."""
        ledger = self.ledger
        # Most control messages complete no tree.
        if not ledger.acked and not ledger.failed:
            return
        acked, failed = ledger.take_verdicts()
        self.acked += len(acked)
        self.failed += len(failed)
        self.load.trees -= len(acked) + len(failed)
        verdicts = self.verdicts
        if len(verdicts) == 1:
            only = verdicts[0]
            only.trees.extend(chain(acked, failed))
            only.notify()
            return
        # A dict and no set, for its order (law L16); each spout is notified once for all of its trees.
        reached: dict[int, None] = {}
        spout, of_spout = -1, verdicts[0]
        for tree in chain(acked, failed):
            if tree.spout != spout:  # those of one spout mostly come one after the other
                spout = tree.spout
                of_spout = verdicts[spout]
                reached[spout] = None
            of_spout.trees.append(tree)
        for spout in reached:
            verdicts[spout].notify()
