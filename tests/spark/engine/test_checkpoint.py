"""The checkpoint of a stream on Spark fits one topology, whose tasks stand where they stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from stormlet import InvalidTopology
from stormlet.spark.engine.planning.numbering import Place
from stormlet.spark.engine.stream.checkpoint import Checkpoint, EpochRecord

TWO = [Place(1, 0), Place(1, 1)]


def kept(tasks: Mapping[str, Sequence[Place]]) -> Checkpoint:
    """A checkpoint with an epoch of the topology ``words``, without Spark."""
    made: Any = object.__new__(Checkpoint)
    made.__dict__.update(_path="there", last=EpochRecord(0, "query", "words", tasks, 0, b""))
    checkpoint: Checkpoint = made
    return checkpoint


def test_the_same_topology_fits() -> None:
    """With the same tasks in the same places."""
    kept({"count": TWO}).check("words", {"count": TWO})


@pytest.mark.parametrize(
    ("topology", "tasks", "reason"),
    [
        (
            "others",
            {"count": TWO},
            "is one of topology 'words', and this is 'others'; give each a checkpoint",
        ),
        (
            "words",
            {"count": [Place(1, 0)]},
            "with 2 tasks of bolt 'count', and now there are 1: .*parallelism=2",
        ),
        ("words", {"count": [Place(2, 0), Place(2, 1)]}, "when bolt 'count' stood elsewhere in the topology"),
        (
            "words",
            {},
            "the state of bolt 'count', which is not there any more, or is a function now; bring it back",
        ),
        (
            "words",
            {"count": TWO, "more": TWO},
            "was written without bolt 'more'; begin with another checkpoint",
        ),
    ],
)
def test_another_topology_is_refused(
    topology: str, tasks: Mapping[str, Sequence[Place]], reason: str
) -> None:
    """A state belongs to one task, and no other one may get it."""
    with pytest.raises(InvalidTopology, match=f"^checkpoint there .*{reason}"):
        kept({"count": TWO}).check(topology, tasks)
