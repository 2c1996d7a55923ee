"""A soak judges a bolt that is killed after its finish by the order of events, as its clock goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stormlet import BasicBolt, Collector, Topology, Tuple
from stormlet.model.plan import TaskPlan
from stormlet.testing import SoakFailed, SoakReport, soak
from stormlet.testing.chaos.disturbed_run import DisturbedRun

SECOND = 1 / 60
Judge = Callable[[DisturbedRun], object]


class Finishes(BasicBolt[int, int]):
    """Has something to do in the end."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Pass it on."""
        out.emit(tup.value)

    def finish(self, out: Collector[int]) -> None:
        """Nothing, for now."""


def killed(run: DisturbedRun) -> None:
    """Kill the upper bolt, and lose its instance."""
    (up,) = run.tasks.bolts["up"]
    run.kill(up)
    up.finished_after = -1


def soaked(
    monkeypatch: pytest.MonkeyPatch, *, finishing: Judge | None = None, end: Judge | None = None
) -> SoakReport:
    """Run for a moment, with this done before the lower bolt's finish is judged, or before the end is."""
    judge_finish, judge_end = DisturbedRun.finishing, DisturbedRun.check_settled

    def judged_finish(run: DisturbedRun, plan: TaskPlan) -> None:
        if plan.component == "down" and finishing is not None:
            finishing(run)
        judge_finish(run, plan)

    def judged_end(run: DisturbedRun) -> None:
        if end is not None:
            end(run)
        judge_end(run)

    monkeypatch.setattr(DisturbedRun, "finishing", judged_finish)
    monkeypatch.setattr(DisturbedRun, "check_settled", judged_end)
    topology = Topology("short")
    up = topology.bolt("up", Finishes, topology.spout("numbers", range(3)).shuffle(), outputs=int)
    topology.bolt("down", Finishes, up.shuffle())
    return soak(topology, minutes=0.1 * SECOND, every=100.0)


def test_a_kill_after_the_request_to_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lower bolt was asked when the upper one had finished: that is right."""
    assert soaked(monkeypatch, finishing=killed).counts["lost"] == 0


def test_a_kill_before_the_request_to_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the upper one has to finish once more before."""

    def killed_and_asked(run: DisturbedRun) -> None:
        killed(run)
        (down,) = run.tasks.bolts["down"]
        down.finished_after += 1

    with pytest.raises(SoakFailed, match=r"down\[0\] finishes before up\[0\]"):
        soaked(monkeypatch, finishing=killed_and_asked)


def test_a_kill_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """All was done, so nothing is missing."""
    assert soaked(monkeypatch, end=killed).counts["lost"] == 0


def test_a_kill_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something was left to do, and the run may not have ended."""

    def killed_before(run: DisturbedRun) -> None:
        (down,) = run.tasks.bolts["down"]
        down.finished_after -= 1
        killed(run)
        down.finished_after += 1

    with pytest.raises(SoakFailed, match=r"up\[0\] has executed inputs after its finish"):
        soaked(monkeypatch, end=killed_before)
