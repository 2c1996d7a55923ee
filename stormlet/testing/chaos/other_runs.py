"""Other runs of the same topology, that a run is held against: each is made once, when it is needed first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Final

from stormlet.errors import StormletError
from stormlet.testing.chaos.evidence import Evidence
from stormlet.testing.chaos.faults import NO_FAULTS, Fault, FaultKind, Faults
from stormlet.testing.chaos.serial import Way
from stormlet.testing.chaos.simulator import SeedResult, Simulator

SLOW: Final = replace(NO_FAULTS, slow=0.5, most=1000)
MOST_BOLTS, FIRST_INPUTS = 5, 3
"""Of so many tasks so many inputs are made to fail, one in each run."""


class OtherRuns:
    """Those of one simulation."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._made: dict[tuple[Way, int], Evidence] = {}

    @property
    def usual(self) -> Evidence:
        """Nothing fails, nothing is slow, and one call follows another."""
        return self.in_order(0)

    def in_order(self, number: int) -> Evidence:
        """Nothing fails, and each task has executed an input before it begins with the next one."""
        return self._one_at_a_time(Way.IN_ORDER, number)

    def in_any_order(self, number: int) -> Evidence:
        """Nothing fails, and calls come one at a time, though perhaps not in the order in which they began."""
        return self._one_at_a_time(Way.ANY_ORDER, number)

    def _one_at_a_time(self, way: Way, number: int) -> Evidence:
        if (way, number) not in self._made:
            self._made[way, number] = self._run(number, SLOW if number else NO_FAULTS, way)
        return self._made[way, number]

    def _run(self, seed: int, faults: Faults | Iterable[Fault], way: Way = Way.AS_DECLARED) -> Evidence:
        """Nothing is known of a topology that runs only once."""
        try:
            return self._simulator.run(seed, faults, collects=True, way=way).evidence
        except StormletError:
            return Evidence()

    def one_at_a_time_as(self, result: SeedResult) -> Evidence:
        """As slow as in this run, so that calls come in about the same order."""
        return self._run(result.seed, result.faults, Way.ANY_ORDER)

    def overlapping(self, seeds: Iterable[int], most: Faults) -> Iterator[SeedResult]:
        """Nothing fails; nor is anything slow or crowded if it is not to be."""
        crowd, slow = bool(most.crowd) * 0.5, bool(most.slow) * 0.3
        for number, seed in enumerate(seeds):
            faults = replace(NO_FAULTS, crowd=crowd, slow=slow if number % 2 else 0.0)
            yield self._simulator.run(seed, faults, collects=True)

    @cached_property
    def with_a_failure(self) -> list[Evidence]:
        """One input fails, another one in each run."""
        places = product(self.usual.bolts[:MOST_BOLTS], range(1, FIRST_INPUTS + 1))
        errors = ([Fault(FaultKind.ERROR, name, number)] for name, number in places)
        return [self._run(0, faults) for faults in errors]
