"""What the page shows of a run, and what it does not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stormlet import Reject, Running, Topology
from stormlet.drawing.drawing import draw
from stormlet.model.description import Description
from stormlet.model.planning import plan
from stormlet.report.steps import Steps
from stormlet.testing import Simulation
from stormlet.ui.answers import NotFound, encoded
from stormlet.ui.controls import Replays
from stormlet.ui.views.graph import MOST, graph_of
from stormlet.ui.views.moods import mood_of
from stormlet.ui.views.numbers import rounded
from stormlet.ui.views.trees import Span
from stormlet.ui.views.view import LivePage, Shows, View
from stormlet.ui.watched import Watched
from tests.cast import Hold, Slow, ignore

END = object()
PAGE = Path(__file__).parents[2] / "docs/page.md"
SECRET = "a-value-that-nobody-should-see"


def page(running: Running, **shows: bool) -> LivePage:
    return LivePage(Watched("id", running), Shows(**shows))


def held(**options: Any) -> Topology:
    """Messages that a bolt holds for ever, whose values are secrets."""
    topology = Topology("held", **{"message_timeout": None, "drain_timeout": 0, **options})
    topology.bolt("hold", Hold, topology.spout("secrets", [SECRET] * 3).shuffle())
    return topology


def refusing(**options: Any) -> Topology:
    """Messages that are given up."""

    def refuse(value: str) -> None:
        raise KeyError("refused")

    topology = Topology("refusing", **{"max_attempts": 2, **options})
    topology.bolt("refuse", refuse, topology.spout("secrets", [SECRET] * 3).shuffle())
    return topology


@pytest.mark.simulated_time
async def test_pending_trees_are_explained_without_their_values(sim: Simulation) -> None:
    """What has each tuple and since when, as far as edges are recorded; values only where they may be shown."""
    async with held(record_edges=1).run(dead_letters=ignore) as running:
        await sim.advance(minutes=1)
        trees: Any = page(running).values(View("trees"))["trees"]
        (attempt,) = trees.trees[0].attempts
        assert (trees.trees[0].spout, trees.trees[0].recorded, attempt.seconds) == ("secrets", True, 60.0)
        assert attempt.spans == (Span("hold[0]", 0, 0, 0, "held"),)
        assert SECRET.encode() not in encoded(trees)
        assert "a tuple is held by hold[0]" in trees.trees[0].text
        assert SECRET.encode() in encoded(page(running, values=True).values(View("trees")))


async def take_two_seconds(value: object) -> object:
    await asyncio.sleep(2)
    return value


@pytest.mark.simulated_time
async def test_a_timeline_counts_from_the_first_attempt(sim: Simulation) -> None:
    """Executions with their waits, and tuples that wait still."""
    topology = Topology("row", record_edges=1, message_timeout=10, replay_delay=1, drain_timeout=0)
    source = topology.spout("source", ["a", "b"])
    topology.bolt(
        "wait", partial(Slow, 100), topology.bolt("two", take_two_seconds, source.shuffle()).shuffle()
    )
    async with topology.run(dead_letters=ignore) as running:
        await sim.advance(seconds=8)
        trees: Any = page(running).values(View("trees"))["trees"]
        first, second = (tree.attempts[0].spans for tree in trees.trees)
        assert first == (Span("two[0]", 0, 0, 2, "acked"), Span("wait[0]", 2, 2, None, "running"))
        assert second[0] == Span("two[0]", 0, 2, 4, "acked")
        assert second[1].state == "queued"
        assert (second[1].delivered, second[1].began) == (4, None)
        assert second[1].more.startswith("by way of source[0] > two[0]")
        await sim.advance(seconds=12)
        trees = page(running).values(View("trees"))["trees"]
        failed, again = next(each for each in trees.trees if each.message_id == "0").attempts
        assert (failed.number, failed.began, failed.spans[1].state) == (1, 0, "running")
        assert (again.number, again.began) == (2, again.spans[0].delivered)
        assert again.began > failed.seconds + 1


@pytest.mark.simulated_time
async def test_without_executions_a_timeline_has_the_tuples_that_are_left(sim: Simulation) -> None:
    """As where those who look on record edges, and nobody has asked for executions."""
    async with held(message_timeout=30, max_attempts=5).run(dead_letters=ignore) as running:
        await sim.advance(seconds=100)
        trees: Any = page(running).values(View("trees"))["trees"]
        first, second = trees.trees[0].attempts[:2]
        assert (first.began, second.began) == (0, first.seconds)
        assert [(each.delivered, each.began, each.state) for each in second.spans] == [
            (first.seconds, None, "held")
        ]


@pytest.mark.simulated_time
async def test_few_spans_are_shown_and_the_others_counted(sim: Simulation) -> None:
    """So that an answer stays small."""

    def many(value: object) -> Iterator[int]:
        yield from range(300)

    topology = Topology("many", record_edges=1, message_timeout=None, drain_timeout=0)
    source = topology.spout("source", [1])
    topology.bolt("hold", Hold, topology.bolt("many", many, source.shuffle()).shuffle())
    async with topology.run() as running:
        await sim.advance(seconds=1)
        trees: Any = page(running).values(View("trees"))["trees"]
        (attempt,) = trees.trees[0].attempts
        assert (len(attempt.spans), attempt.left_out) == (100, 201)


@pytest.mark.simulated_time
async def test_nothing_of_the_page_has_a_value_unless_that_is_allowed(sim: Simulation) -> None:
    """Of all views, with trees and dead letters."""
    async with refusing().run(dead_letters=ignore) as running:
        await sim.advance(minutes=1)
        for kind in ("overview", "errors", "trees", "letters", "settings"):
            assert SECRET.encode() not in encoded(page(running).values(View(kind))), kind
        assert SECRET.encode() not in encoded(page(running).values(View("component", component="refuse")))
        assert SECRET.encode() in encoded(page(running, values=True).values(View("letters")))


@pytest.mark.simulated_time
async def test_failed_attempts_of_a_recorded_tree_are_rows(sim: Simulation) -> None:
    """Each with its duration and what was outstanding when it ended."""
    async with held(record_edges=1, message_timeout=30, max_attempts=5).run(dead_letters=ignore) as running:
        await sim.advance(seconds=100)
        trees: Any = page(running).values(View("trees"))["trees"]
        attempts = trees.trees[0].attempts
        assert [each.number for each in attempts] == list(range(1, len(attempts) + 1))
        assert len(attempts) > 1
        assert attempts[0].failure.startswith("timeout")
        assert attempts[0].spans[0].state == "held"


@pytest.mark.simulated_time
async def test_the_cause_of_a_dead_letter_has_no_escapes(sim: Simulation) -> None:
    """Nor has its history: what a terminal would obey is told in letters."""

    def refuse(value: str) -> None:
        raise Reject("red \x1b[31m")

    topology = Topology("refusing")
    topology.bolt("refuse", refuse, topology.spout("numbers", [1]).shuffle())
    async with topology.run(dead_letters=ignore) as running:
        await sim.advance(minutes=1)
        (letter,) = page(running).values(View("letters"))["letters"].letters
        assert "\\x1b[31m" in letter.cause
        assert letter.cause.isprintable()


@pytest.mark.simulated_time
async def test_dead_letters_have_their_cause(sim: Simulation) -> None:
    """The last one first, each with a number of its own and its history."""
    async with refusing().run(dead_letters=ignore) as running:
        await sim.advance(minutes=1)
        letters: Any = page(running).values(View("letters"))["letters"]
        assert (letters.total, [each.number for each in letters.letters]) == (3, [3, 2, 1])
        assert "KeyError('refused')" in letters.letters[0].cause
        assert "test_views.py" in letters.letters[0].place
        assert len(letters.letters[0].history) == 2
        assert letters.letters[0].value is None


@pytest.mark.simulated_time
async def test_as_many_letters_and_errors_are_shown_as_the_docs_say(sim: Simulation) -> None:
    """The last ones; the handle has the others that are kept."""

    def refuse(number: int) -> None:
        raise type(f"Error{number % 60}", (Exception,), {})

    topology = Topology("refusing", max_attempts=1)
    topology.bolt("refuse", refuse, topology.spout("numbers", range(110)).shuffle())
    async with topology.run() as running:
        await sim.advance(minutes=1)
        letters: Any = page(running).values(View("letters"))["letters"]
        failures: Any = page(running).values(View("errors"))["failures"]
        assert (len(letters.letters), letters.total, len(running.dead_letters)) == (100, 110, 110)
        assert (len(failures), len(running.failures())) == (50, 60)
    assert "the last 50 kinds of errors, and the last 100 dead letters" in PAGE.read_text("utf-8")


@pytest.mark.simulated_time
async def test_a_dead_letter_is_emitted_again_once() -> None:
    """It is a message like others then, and what became of it stands beside it."""
    works = False

    def refuse(value: str) -> None:
        if not works:
            raise KeyError("refused")

    topology = Topology("mended", max_attempts=1)
    topology.bolt("refuse", refuse, topology.spout("secrets", [SECRET] * 2).shuffle())
    async with topology.run(dead_letters=ignore) as running:
        watched, replays = Watched("id", running), Replays()
        await asyncio.sleep(1)
        replays.begin(watched, 1)
        await asyncio.sleep(1)
        works = True
        replays.begin(watched, 2)
        await asyncio.sleep(1)
        assert watched.again[1].startswith("failed again: failed in refuse[0]")
        assert watched.again[2] == "acked"
        with pytest.raises(NotFound, match="emitted again already: acked"):
            replays.begin(watched, 2)
        with pytest.raises(NotFound, match="not among the last"):
            replays.begin(watched, 99)


@pytest.mark.simulated_time
async def test_the_messages_that_were_measured_are_counted(sim: Simulation) -> None:
    """As one is measured at a time, it is one of those that are emitted together."""
    topology = Topology("measured")
    topology.bolt("two", take_two_seconds, topology.spout("s", [1] * 9).shuffle(), concurrency=3)
    async with topology.run() as running:
        await sim.advance(minutes=1)
        row: Any = page(running).values(View(window="all"))["c/s"]
        assert (row.acked, row.complete_samples) == (9, 1)


@pytest.mark.simulated_time
async def test_each_value_says_where_it_is_from(sim: Simulation) -> None:
    """Default, the topology, the run, a place outside, a component."""
    topology = Topology("settings", ackers=2, idle_max=0.5)
    topology.bolt("b", ignore, topology.spout("s", [1], max_spout_pending=5).shuffle(), queue_capacity=3)
    async with topology.run(max_attempts=7, idle_max=0.2) as running:
        watched = Watched("id", running, {"idle_max": "--set"})
        rows: Any = LivePage(watched, Shows()).values(View("settings"))["settings"]
        origins = {(each.component, each.option): (each.value, each.origin) for each in rows}
        assert origins["", "ackers"] == (2, "the topology")
        assert origins["", "tick"] == (None, "default")
        assert origins["", "max_attempts"] == (7, "topology.run(), or a source of it")
        assert origins["", "idle_max"] == (0.2, "--set")
        assert origins["b", "queue_capacity"] == (3, "of 'b' itself")
        assert origins["s", "max_spout_pending"] == (5, "of 's' itself")


def test_a_large_topology_has_no_picture() -> None:
    """The reason stands in its place; the table has all."""
    topology = Topology("large")
    numbers = topology.spout("numbers", [1])
    for number in range(MOST):
        topology.bolt(f"b{number}", ignore, numbers.shuffle())
    description = topology.describe()
    planned = plan(*description.configured(description.configuration, ""))
    missing = graph_of(planned, lambda: draw(planned)).missing
    assert missing == "301 components are too many for a picture; the table has them"


@pytest.mark.simulated_time
async def test_without_the_layout_there_is_no_picture(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what to install instead."""
    monkeypatch.setattr("stormlet.ui.views.graph.find_spec", lambda name: None)
    async with held().run(dead_letters=ignore) as running:
        assert "pip install 'stormlet[svg]'" in page(running).graph().missing


@pytest.mark.simulated_time
async def test_a_component_that_is_not_there(sim: Simulation) -> None:
    """Its page is refused by name."""
    async with held().run() as running:
        with pytest.raises(NotFound, match="no component 'x'"):
            page(running).values(View("component", component="x"))


def wide(bolts: int) -> Topology:
    topology = Topology("wide")
    numbers = topology.spout("numbers", [1])
    for number in range(bolts):
        topology.bolt(f"b{number}", ignore, numbers.shuffle())
    return topology


def work(steps: Steps[object]) -> list[int]:
    """The functions that each step calls."""
    calls: list[int] = []

    def note(frame: object, event: str, arg: object) -> None:
        calls[-1] += event in ("call", "c_call")

    ended = False
    while not ended:
        calls.append(0)
        sys.setprofile(note)
        ended = next(steps, END) is END
        sys.setprofile(None)
    return calls


@pytest.mark.simulated_time
async def test_the_answer_of_a_large_topology_is_made_in_small_steps(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten times the components are ten times the work in as many more steps; nothing is asked for each of them that
    takes the longer the more there are."""
    asked, made = list[int](), Description.components.fget
    monkeypatch.setattr(Description, "components", property(lambda self: asked.append(1) or made(self)))  # type: ignore[misc]
    found: list[tuple[list[int], int]] = []
    for bolts in (40, 400):
        async with wide(bolts).run(dead_letters=ignore) as running:
            shown = page(running)
            shown.values(View())  # the drawing, which is made once
            await sim.advance(seconds=20)
            asked.clear()
            found.append((work(shown.values_in_steps(View())), len(asked)))
    (few, asked_few), (many, asked_many) = found
    assert asked_few == asked_many
    assert len(many) > 9 * len(few)
    assert sum(many) < 11 * sum(few)
    assert max(many) < sum(many) / 8


WELL: dict[str, Any] = {
    "restarting": False, "lost": False, "failed_rate": 0.0, "rate": 1.0, "fill": 0.1, "capacity": 0.1, "blocked": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "mood"),
    [
        ({}, "well"),
        ({"rate": 0.0}, "idle"),
        ({"fill": 1.0}, "busy"),
        ({"capacity": 0.95}, "busy"),
        ({"blocked": 0.9, "fill": 1.0}, "blocked"),
        ({"failed_rate": 0.1, "blocked": 0.9}, "failing"),
        ({"lost": True, "failed_rate": 1.0}, "lost"),
        ({"restarting": True, "lost": True}, "restarting"),
        ({"fill": None, "capacity": None, "blocked": None}, "well"),
    ],
)
def test_the_gravest_state_is_shown(change: dict[str, object], mood: str) -> None:
    """A restart before a failure, a failure before a wait."""
    assert mood_of(**{**WELL, **change}) == mood


@pytest.mark.parametrize(
    ("value", "short"),
    [(None, None), (0.0, 0.0), (1234.5, 1230.0), (0.0123456, 0.0123), (9.999, 10.0), (-5.678, -5.68)],
)
def test_numbers_have_three_digits(value: float | None, short: float | None) -> None:
    """What has hardly changed is not sent again."""
    assert rounded(value) == short
