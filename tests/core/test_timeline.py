"""Timelines that are kept for long have the executions that say most."""

from __future__ import annotations

from stormlet.core.timeline import Ending, Execution, Timeline


def execution(name: str, began: float, ended: float | None, ending: Ending = Ending.ACKED) -> Execution:
    return Execution("bolt", 1, name, began, ended, 0.0, ending)


ALL = Timeline(
    0.0,
    (
        execution("short", 1, 2),
        execution("failed", 2, 2, Ending.FAILED),
        execution("long", 3, 9),
        execution("running", 4, None, Ending.RUNNING),
        execution("early", 5, None),
    ),
    left_out=7,
)


def names(timeline: Timeline) -> list[str]:
    return [each.name for each in timeline.executions]


def test_the_troubled_and_the_long_ones_are_kept() -> None:
    """In the order in which they began, whatever they were chosen for."""
    assert names(ALL.shortened(2)) == ["failed", "running"]
    assert names(ALL.shortened(4)) == ["failed", "long", "running", "early"]


def test_the_others_are_counted() -> None:
    """Together with those that were left out before."""
    assert ALL.shortened(2).left_out == 10
    assert ALL.shortened(2).began == 0.0


def test_few_are_kept_as_they_are() -> None:
    """Nothing is copied where nothing is too much."""
    assert ALL.shortened(5) is ALL
