"""The kit of a soaked run: each part lets the witness know, and a bolt suffers the fault that waits for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random

from stormlet.core.groupings import Grouping
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.wire.collector import AnyTuple
from stormlet.runtime.wire.outbox import Control, Post
from stormlet.testing.chaos.disturbed_run import DisturbedRun
from stormlet.testing.chaos.faults import NO_FAULTS, FaultKind, Injector
from stormlet.testing.chaos.kit import DisturbedKit
from stormlet.testing.chaos.lives import Outlived
from stormlet.testing.soaking.witness import LastLines, SteadyWitness

SHORTEST, LONGEST = 0.01, 5.0
"""Seconds that a slow input takes longer."""


class SoakedRun(DisturbedRun):
    """One run whose faults come at their time, whatever the load: each waits at a task for its next input."""

    witness: SteadyWitness

    def __init__(self, seed: int) -> None:
        super().__init__(Injector(seed, NO_FAULTS), outlived=Outlived(keeps_rows=False))
        self.journal = LastLines(self._now)
        self.witness = SteadyWitness(self._now, self.journal)
        self.met = Counter[FaultKind]()
        """The faults that have happened."""
        self._waiting: dict[str, FaultKind] = {}
        self._random = Random(f"{seed}/faults")

    def let_suffer(self, bolt: BoltTask, kind: FaultKind) -> None:
        """Have the next input of this task suffer this, unless its topology could not go on."""
        if kind is FaultKind.SLOW or bolt.on_error == "fail":
            self._waiting[bolt.name] = kind

    def drop_faults(self) -> None:
        """Drop the faults that have not met their input."""
        self._waiting.clear()

    def strikes(self, kind: FaultKind, place: str) -> Random | None:
        """True if a fault of this kind waits here."""
        if self._waiting.get(place) is not kind:
            return None
        del self._waiting[place]
        self.met[kind] += 1
        return self._random

    def slowness(self, random: Random) -> float:
        """Often short, seldom long."""
        return float(SHORTEST * (LONGEST / SHORTEST) ** random.random())

    def executing(self, plan: TaskPlan, tup: AnyTuple) -> None:
        """A bolt task is about to execute an input. The books are looked at only at rest, as the load is full."""
        self.witness.executes(plan, tup)


class SoakedKit(DisturbedKit):
    """Makes the parts of one run."""

    def instance(self, plan: TaskPlan, instance: object) -> None:
        """Its methods do not raise: the run goes on for minutes, and a task may not be restarted so often."""

    def grouping(self, plan: TaskPlan, grouping: Grouping) -> Grouping:
        """Nor does its key function."""
        return grouping

    def posts(self, plan: TaskPlan, posts: Sequence[Post]) -> Sequence[Post]:
        """Ways to the ackers, with the witness before them."""
        return [partial(self._post, plan, post) for post in posts]

    def _post(self, plan: TaskPlan, post: Post, control: Control) -> None:
        witness = self.run.witness
        assert isinstance(witness, SteadyWitness)
        for tree in control.inits:
            witness.emitted(plan, tree.root, tree)
        witness.timeouts_reset |= bool(control.resets)
        post(control)
