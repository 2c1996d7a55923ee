"""The engines that run a topology. A test that takes ``engine`` runs on each of them, with one set of expectations.

======================  =================================================================================
``in process``          a run on the loop of the test
``on Spark``            Spark's chain of stages without Spark, bolts fused where Spark fuses them
``on Spark in stages``  the same with an exchange before each bolt
======================  =================================================================================

Spark's chain runs on the loop of the test too, one partition after another (``tests/spark/engine/twin.py``), and its
ledger must add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol
from unittest.mock import patch

import pytest

from stormlet import DeadLetter, Statistics, Topology
from stormlet.spark.engine.planning import layout
from tests.helpers import run_to_end
from tests.spark.engine.twin import twin_async


class Ended(Protocol):
    """What is left of a run."""

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """The messages that were given up."""
        ...

    def statistics(self) -> Statistics:
        """The counts of all components."""
        ...


class Engine(Protocol):
    """One of them; its text is the id of the parameter."""

    async def run_to_end(self, topology: Topology, *, seed: int = 0) -> Ended:
        """Run until everything is settled."""
        ...


class InProcess:
    """See above."""

    def __str__(self) -> str:
        return "in process"

    async def run_to_end(self, topology: Topology, *, seed: int = 0) -> Ended:
        """Run until everything is settled, and leave."""
        return await run_to_end(topology, seed=seed)


class OnSpark:
    """See above."""

    def __str__(self) -> str:
        return "on Spark"

    async def run_to_end(self, topology: Topology, *, seed: int = 0) -> Ended:
        """Run all partitions of all stages, and check the ledger."""
        run = await twin_async(topology, seed=seed)
        assert run.differences == []
        return run


class InStages(OnSpark):
    """See above."""

    def __str__(self) -> str:
        return "on Spark in stages"

    async def run_to_end(self, topology: Topology, *, seed: int = 0) -> Ended:
        """Run them with an exchange before each bolt."""
        with patch.object(layout, "_is_fused", return_value=False):
            return await super().run_to_end(topology, seed=seed)


IN_PROCESS: Final = InProcess()
ON_SPARK: Final = OnSpark()
IN_STAGES: Final = InStages()

UNFUSED: Final = pytest.mark.parametrize("engine", [IN_PROCESS, IN_STAGES], ids=str)
"""For a test of a bolt with several tasks that subscribes by shuffle: fused, it has those of its partition."""
FUSED: Final = pytest.mark.parametrize("engine", [IN_PROCESS, ON_SPARK], ids=str)
"""For a test of what happens between bolts while they run: with an exchange, one stage ends before the next begins."""


@pytest.fixture(params=[IN_PROCESS, ON_SPARK, IN_STAGES], ids=str)
def engine(request: pytest.FixtureRequest) -> Any:
    """Each engine in turn."""
    return request.param
