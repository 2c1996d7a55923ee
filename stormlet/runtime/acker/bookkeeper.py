"""The work of an acker task: applies control messages to its ledger and hands out verdicts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import Protocol

from stormlet.core.ledger import AckerLoad, Ledger, OpenTree
from stormlet.runtime.slices import Activity
from stormlet.runtime.wire.outbox import Control


class Spout(Protocol):
    """The spout task that waits for verdicts, as an acker sees it."""

    @property
    def outcomes(self) -> deque[OpenTree]:
        """Trees that are settled, in the order of their verdicts."""
        ...

    def take_verdicts(self) -> None:
        """Have it look at the outcomes that were appended."""
        ...


class Bookkeeper:
    """Keeps the ledger of one acker."""

    __slots__ = ("_activity", "acked", "applied", "failed", "ledger", "load", "spouts")

    def __init__(self, ledger: Ledger, load: AckerLoad, activity: Activity) -> None:
        self.ledger = ledger
        self.load = load
        self._activity = activity
        self.spouts: Sequence[Spout] = ()
        """Every spout task, by the index that open trees name."""
        self.applied = 0
        """The number of entries in the control messages applied so far."""
        self.acked = 0
        """The number of trees acked so far."""
        self.failed = 0
        """The number of trees failed so far."""

    def apply(self, control: Control) -> int:
        """Enter what a control message tells; returns how many things that are."""
        ledger = self.ledger
        if control.inits:
            ledger.init(control.inits)
        if control.acks:
            ledger.ack(control.acks)
        for root, failure in control.fails:
            ledger.fail(root, failure)
        for root in control.resets:
            ledger.reset_timeout(root)
        told = control.told
        self.applied += told
        return told

    def apply_at_once(self, control: Control) -> None:
        """Do all that comes of a control message, while the acker task sleeps."""
        self._activity.begin()  # the end of what it does may be the moment of calm (law S5)
        try:
            self.apply(control)
            self.give_verdicts()
        finally:
            self._activity.end()

    def give_verdicts(self) -> None:
        """Hand the trees that were settled to their spout tasks."""
        ledger = self.ledger
        if not ledger.acked and not ledger.failed:
            return
        acked, failed = ledger.take_verdicts()
        self.acked += len(acked)
        self.failed += len(failed)
        self.load.trees -= len(acked) + len(failed)
        spouts = self.spouts
        if len(spouts) == 1:
            spouts[0].outcomes.extend(chain(acked, failed))
            spouts[0].take_verdicts()
            return
        woken: dict[int, None] = {}
        for tree in chain(acked, failed):
            spouts[tree.spout].outcomes.append(tree)
            woken[tree.spout] = None
        for spout in woken:
            spouts[spout].take_verdicts()
