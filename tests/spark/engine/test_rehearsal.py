"""A stream whose bolts cannot be saved is refused when it starts."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable
from threading import Lock
from typing import Any

import pytest

from stormlet import BasicBolt, Collector, InvalidTopology, Topology, Tuple
from stormlet.model.components import TaskContext
from stormlet.spark import DataFrameSink
from stormlet.spark.engine.stream.rehearsal import rehearse
from tests.cast import Burst, ignore


class Takes(BasicBolt[int, int]):
    """Does nothing with its inputs."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Take one."""


class Counts(Takes):
    """Makes something that looks harmless."""

    def __init__(self) -> None:
        self.counts = defaultdict[int, int](lambda: 0)


class Locked(Takes):
    """Makes a lock."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = Lock()


class SavesItself(Counts):
    """Says by itself what its state is."""

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.counts)


class PreparesIt(Takes):
    """Makes it where it belongs."""

    def prepare(self, context: TaskContext) -> None:
        self.lock = Lock()


class Fails(Counts):
    """Needs what this machine has not."""

    def __init__(self) -> None:
        super().__init__()
        raise OSError("no such device")


class Exits(Counts):
    """Ends the process."""

    def __init__(self) -> None:
        sys.exit(3)


def reading(logic: Callable[..., object]) -> Topology:
    topology: Any = Topology("reading")
    numbers = topology.spout("numbers", [1])
    topology.bolt("sums", logic, numbers.shuffle())
    return topology


@pytest.mark.parametrize(
    ("logic", "attribute", "kind"),
    [
        (Counts, "counts", "defaultdict"),
        (Locked, "lock", "lock"),
        (lambda: Counts(), "counts", "defaultdict"),
    ],
)
def test_what_the_constructor_makes_and_a_stream_cannot_save(logic: Any, attribute: str, kind: str) -> None:
    """Named with its bolt, before anything starts."""
    sentence = (
        f"on Spark, the constructor of bolt 'sums' makes {attribute!r}, and a stream cannot save that, as a {kind} "
        "with what is in it cannot be pickled; make it in prepare if it is no state, or define __getstate__"
    )
    with pytest.raises(InvalidTopology, match=re.escape(sentence)):
        rehearse(reading(logic).describe())


@pytest.mark.parametrize(
    "logic", [Burst, SavesItself, PreparesIt, Fails, Exits, ignore, DataFrameSink("out", schema="a int")]
)
def test_what_can_be_saved(logic: Any) -> None:
    """Functions and sinks have no state; what cannot be made here may be made on an executor."""
    rehearse(reading(logic).describe())
