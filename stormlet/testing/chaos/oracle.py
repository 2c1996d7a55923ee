"""The oracle: tuple trees stored whole, and the outcomes that the law allows each of them.

A stored tree is the list of its copies, each a tuple at one task, with what became of it there. The outcome that such a
tree deserves can be read off it: it is acked only when every copy was acked (laws L1, L2, L7); it fails only if a copy
failed, or was lost with its task (L14); it times out only while somebody has a copy, neither too early nor too late
(L12); and it has one outcome (L4, L15).

Three judges share it, and each sees trees in another way: the witness of simulated runs at the seams of the engine,
``tests/oracle`` in the calls of user code, ``tests/core/test_ledger_model.py`` in the messages that reach one ledger.
It uses nothing of what they judge: no ids, no XOR, no ledger and no clock, only moments that it is given. All that it
imports are the words for failures, and a test holds that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from stormlet.core.outcomes import Failure, FailureKind

C = TypeVar("C")

Violation = Callable[..., object]
"""Notes that the law was broken: a text with a ``{}`` for each value, and the values."""


class Fate(Enum):
    """The fate of a copy so far."""

    OPEN = "open"
    ACKED = "acked"
    FAILED = "failed"
    LOST = "lost"


@dataclass(eq=False, slots=True)
class StoredTree(Generic[C]):
    """One tuple tree, with every copy that was ever part of it."""

    name: object
    """Its name in the texts of violations."""
    began: float
    """The moment of its emit."""
    copies: list[C] = field(default_factory=list[C])
    restarts: list[float] = field(default_factory=list[float])
    """The moments at which its time began anew."""
    outcomes: list[Failure | None] = field(default_factory=list["Failure | None"])
    """The failure of each outcome, None for an ack."""

    def fate(self, copy: C) -> Fate:
        """The fate of a copy."""
        raise NotImplementedError

    @property
    def missing(self) -> list[C]:
        """The copies that were not acked."""
        return [copy for copy in self.copies if self.fate(copy) is not Fate.ACKED]

    def has(self, fate: Fate) -> bool:
        """Return True if a copy has this fate."""
        return any(self.fate(copy) is fate for copy in self.copies)


class Oracle:
    """The judge of outcomes, under the terms of one run."""

    def __init__(self, violation: Violation, tolerance: float = 1e-6) -> None:
        self._broken = violation
        self.tolerance = tolerance
        """Seconds by which a timeout may seem to be early or late."""
        self.timeout: float | None = None
        """Seconds that a tree has at least; None: it is not judged."""
        self.latest: float | None = None
        """Seconds after which a tree has timed out, whatever the rotation (law L12); None: it is not judged."""

    def judge(
        self,
        tree: StoredTree[Any],
        failure: Failure | None,
        at: float | None,
        *,
        under_way: bool = False,
        extended: bool = False,
    ) -> None:
        """Judge an outcome that came at this moment, which is None if it is not known exactly; ``under_way`` if the
        last ack may still be on its way, ``extended`` if the tree may have been given more time."""
        if tree.outcomes:
            self._broken("{} got a second outcome", tree.name)
        tree.outcomes.append(failure)
        if failure is None:
            for copy in tree.missing:
                self._broken("{} was acked although {} was not", tree.name, copy)
        elif failure.kind is FailureKind.TIMEOUT:
            if not under_way and not (failure.holders and tree.has(Fate.OPEN)):
                self._broken("{} timed out although nobody had a tuple of it", tree.name)
            if at is not None:
                self._judge_age(tree, at, extended=extended)
        elif failure.kind is FailureKind.FAILED and not tree.has(Fate.FAILED):
            self._broken("{} failed although no tuple of it did: {}", tree.name, str(failure))
        elif (
            failure.kind is FailureKind.TASK_LOST
            and failure.component is not None
            and not tree.has(Fate.LOST)
        ):
            self._broken("{} is lost although no tuple of it was: {}", tree.name, str(failure))

    def _judge_age(self, tree: StoredTree[Any], at: float, *, extended: bool) -> None:
        # A restart at the very moment of the timeout came too late.
        age = at - max([tree.began, *(moment for moment in tree.restarts if moment < at)])
        if self.timeout is not None and age < self.timeout - self.tolerance:
            self._broken("{} timed out after {} s", tree.name, round(age, 6))
        if self.latest is not None and not extended and age > self.latest + self.tolerance:
            self._broken("{} timed out only after {} s", tree.name, round(age, 6))
