from __future__ import annotations

from itertools import product

import pytest

from stormlet.core.progress import BoltState, Step, Survey, next_step

ORDER = [["spout"], ["a"], ["b", "c"], ["d"]]
"""``b`` and ``c`` form a cycle."""


def survey(
    flushable: str = "",
    unfinished: str = "",
    *,
    still: bool = True,
    ended: bool = True,
    replays: bool = False,
    pending: int = 0,
) -> Survey:
    bolts = {name: BoltState(name in flushable, name in unfinished) for name in "abcd"}
    return Survey(still, ended, replays, pending, bolts)


def test_nothing_is_left_to_do() -> None:
    """All spouts ended, nothing held, all finished, no tree open: quiescent (law S5)."""
    assert next_step(survey(), ORDER) == (Step.DONE, ())


@pytest.mark.parametrize("pending", [1, 5])
def test_an_open_tree_is_waited_for(pending: int) -> None:
    """A message without an outcome gets one from a bolt or from the clock (law S5)."""
    assert next_step(survey(pending=pending), ORDER) == (Step.WAIT, ())


def test_a_spout_that_may_yield_is_waited_for() -> None:
    """While one could bring more tuples, no batch is flushed and nothing finished (law B8)."""
    assert next_step(survey("abcd", "abcd", still=False, ended=False), ORDER) == (Step.WAIT, ())


def test_held_inputs_are_flushed_upstream_first() -> None:
    """One component at a time: what it emits may fill the batches of the next (law B8)."""
    assert next_step(survey("ad"), ORDER) == (Step.FLUSH, ["a"])
    assert next_step(survey("d"), ORDER) == (Step.FLUSH, ["d"])


def test_a_cycle_is_flushed_as_one() -> None:
    """Of its components those that hold inputs (law B8, C2)."""
    assert next_step(survey("bcd"), ORDER) == (Step.FLUSH, ["b", "c"])
    assert next_step(survey("cd"), ORDER) == (Step.FLUSH, ["c"])


def test_inputs_are_flushed_while_spouts_are_full() -> None:
    """A spout paused by ``max_spout_pending`` has not ended, but only a flush can make room (law B8)."""
    assert next_step(survey("b", "abcd", ended=False, pending=3), ORDER) == (Step.FLUSH, ["b"])


def test_inputs_are_flushed_while_replays_wait() -> None:
    """A batch is not held back for a replay that comes in half a minute (law B8)."""
    assert next_step(survey("d", "abcd", replays=True, pending=3), ORDER) == (Step.FLUSH, ["d"])


def test_flushing_comes_before_finishing() -> None:
    """Even a component far downstream is flushed before the first one is finished (law B8)."""
    assert next_step(survey("d", "abcd", pending=3), ORDER) == (Step.FLUSH, ["d"])


@pytest.mark.parametrize(("ended", "replays"), [(False, False), (True, True), (False, True)])
def test_nothing_is_finished_too_early(ended: bool, replays: bool) -> None:
    """More input may come from a spout that is full, or from a replay (law C2)."""
    step = next_step(survey(unfinished="abcd", ended=ended, replays=replays, pending=1), ORDER)
    assert step == (Step.WAIT, ())


def test_components_are_finished_upstream_first() -> None:
    """One after the other; what it emits is processed before the next one finishes (law C2)."""
    assert next_step(survey(unfinished="abcd"), ORDER) == (Step.FINISH, ["a"])
    assert next_step(survey(unfinished="d"), ORDER) == (Step.FINISH, ["d"])


def test_a_cycle_is_finished_as_one() -> None:
    """All of its components, also one that has executed nothing since (law C2)."""
    assert next_step(survey(unfinished="bd"), ORDER) == (Step.FINISH, ["b", "c"])


def test_components_are_finished_while_trees_are_open() -> None:
    """A bolt may settle what it holds in ``finish``, so open trees do not keep it from being asked (law C2)."""
    assert next_step(survey(unfinished="d", pending=2), ORDER) == (Step.FINISH, ["d"])


def test_spouts_alone() -> None:
    """A topology without bolts has nothing to flush or finish."""
    assert next_step(Survey(True, True, False, 0, {}), [["spout"]]) == (Step.DONE, ())


def test_done_means_quiescent() -> None:
    """In all cases: DONE exactly where every condition of quiescence holds, and components are named exactly where
    they are to do something (law S5)."""
    flags = [False, True]
    for still, ended, replays, pending, flush, finish in product(
        flags, flags, flags, [0, 1], ["", "b"], ["", "b"]
    ):
        moment = survey(flush, finish, still=still, ended=ended, replays=replays, pending=pending)
        step, components = next_step(moment, ORDER)
        nothing_left = still and ended and not replays and not pending and not flush and not finish
        assert (step is Step.DONE) == nothing_left
        assert bool(components) == (step in (Step.FLUSH, Step.FINISH))


def pausing(pending: int, flushable: str = "") -> Survey:
    bolts = {name: BoltState(name in flushable, unfinished=True) for name in "abcd"}
    return Survey(True, False, False, pending, bolts, pausing=True)


def test_a_spout_that_pauses_is_resumed_when_everything_is_settled() -> None:
    """It has asked for that, and while a message is pending its trees are not over."""
    assert next_step(pausing(0), ORDER) == (Step.RESUME, ())
    assert next_step(pausing(2), ORDER) == (Step.WAIT, ())


def test_held_inputs_are_flushed_before_a_spout_is_resumed() -> None:
    """Bolts that held rows over the pause would join them with those that come after it."""
    assert next_step(pausing(0, "b"), ORDER) == (Step.FLUSH, ["b"])
