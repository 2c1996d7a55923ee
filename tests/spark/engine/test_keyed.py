"""Keyed state on Spark's chain of stages is what it is in process, and what a naive model says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from stormlet import Topology, TopologyCrashed
from stormlet.core.state.commits import Shape, StateId
from stormlet.core.state.states import State
from stormlet.errors import StateUnusable
from stormlet.model.description import BoltSpec
from stormlet.spark.engine.partition import exits, lanes, partition
from stormlet.spark.engine.partition.keyed.carried import check_shapes, rows_with, shapes_of
from stormlet.spark.engine.partition.keyed.groups import blob_in, by_state
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.planning.numbering import Place, number
from stormlet.state.memory import MemoryStore
from stormlet.testing import complete
from tests.spark.engine.keyed_flows import (
    CASES,
    WORDS,
    Brief,
    Case,
    Count,
    Ends,
    FailsFirst,
    FailsLast,
    HoldsForEver,
    Hurries,
    Item,
    Loose,
    Misfit,
    Reminds,
    States,
    Stumbles,
    by_word,
    in_order,
    items,
    seen,
)
from tests.spark.engine.twin import Twin, twin


@pytest.fixture(params=[3, 1000], ids=["chunks of three", "large chunks"])
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most tuples of a chunk, and so the number of those that are executed together."""
    for module in (exits, lanes, partition):
        monkeypatch.setattr(module, "CHUNK", request.param)


def bolts_of(topology: Topology) -> Iterable[BoltSpec]:
    return topology.describe().bolts.values()


def opened(topology: Topology, blobs: dict[StateId, list[bytes]]) -> States:
    """All states of a topology, read from blobs."""
    found: States = {}
    for spec in bolts_of(topology):
        for name, declared in spec.states.items():
            state = State(StateId(spec.id, name), declared)
            state.load(blobs.get(state.id, []))
            found[str(state.id)] = dict(state.tables[0].committed_items())
    return found


def left_by(topology: Topology, rows: Iterable[Row]) -> States:
    """The states in the rows that a run has left."""
    return opened(topology, dict(by_state([blob_in(row) for row in rows if row.kind == Kind.KEYED])))


def in_process(topology: Topology) -> tuple[States, list[int]]:
    """The states that a run in process leaves, and the places of the messages that it gives up."""
    store = MemoryStore()
    done = complete(topology, state=store, allow_leaks=["errors"])
    stored = {id: list(blobs) for id, blobs in store.load().states.items()}
    return opened(topology, stored), [letter.value.place for letter in done.dead_letters]


def run(topology: Topology, **options: Any) -> Twin:
    done = twin(topology, **options)
    assert done.differences == []
    return done


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("spouts", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_the_chain_it_is_what_the_model_says(case: Case, spouts: int) -> None:
    """So is what is given up; and no output leaves twice, nor one of an attempt that was undone."""
    topology = case.topology()
    done = run(topology, spouts=spouts)
    assert in_order(left_by(topology, done.left)) == in_order(case.states)
    assert sorted(value.place for value in done.failed) == list(case.given_up)
    acked = {*range(len(WORDS))} - {*case.given_up}
    if "seen" in topology.describe().bolts:
        assert sorted(done.emitted("seen")) == sorted(acked)


def epoch(topology: Topology, words: Iterable[Item], before: Sequence[Row], now: float) -> Twin:
    """One epoch after the one that has left these rows."""
    return run(topology, sources={"items": list(words)}, states=before, now=now)


def keyed(logic: Any, **options: Any) -> Topology:
    """One keyed bolt."""
    topology = Topology("keyed", replay_delay=0.001)
    by_word(topology, logic, **options)
    return topology


def test_a_timer_is_called_once_and_never_early() -> None:
    """In the first epoch that begins when it is due; one that was cancelled is not (law K7)."""
    topology, rows, called = keyed(Reminds, outputs=str), list[Row](), list[list[str]]()
    words = [Item("sun", 0), Item("sea", 1), Item("sun", 2)]
    for now, arriving in ((0.0, words), (59.9, []), (60.0, []), (1000.0, [])):
        done = epoch(topology, arriving, rows, now)
        called.append(sorted(done.emitted("count")))
        rows = done.left
    assert called == [[], [], ["sea True", "sun True"], []]
    assert left_by(topology, rows) == {"count.calls": {"sun": 1, "sea": 1}, "count.on_timer": {}}


def test_a_timer_for_the_past_is_called_in_the_next_epoch() -> None:
    """So that one that sets itself again ends (law K7)."""
    topology, rows, called = keyed(Hurries, outputs=str), list[Row](), list[int]()
    for now, arriving in ((0.0, [Item("sun", 0)]), (10.0, []), (20.0, []), (30.0, [])):
        done = epoch(topology, arriving, rows, now)
        called.append(len(done.emitted("count")))
        rows = done.left
    assert called == [0, 2, 1, 0]


def test_an_output_without_an_anchor_leaves_once() -> None:
    """What an attempt has emitted is dropped with it."""
    Loose.times.clear()
    topology = Topology("keyed", replay_delay=0.5)
    topology.bolt("seen", seen, by_word(topology, Loose).global_(), outputs=int)
    done = run(topology, sources={"items": [Item("sun", place) for place in range(3)]}, spouts=1)
    assert done.emitted("seen") == [0, 1, 2]


def test_the_first_input_is_tried_alone_after_a_pause() -> None:
    """Those behind it are tried again when it is done (law X7)."""
    Loose.times.clear()
    topology = Topology("keyed", replay_delay=0.5)
    by_word(topology, Loose)
    run(topology, sources={"items": [Item("sun", place) for place in (1, 2, 3)]}, spouts=1)
    assert [time - Loose.times[0] >= 0.5 for time in Loose.times] == [False] * 3 + [True] * 3


def test_a_failure_before_state_has_nothing_else_done_again() -> None:
    """Its input is executed again alone (law X6)."""
    topology = keyed(FailsFirst)
    done = run(topology, sources={"items": [Item("sun", place) for place in range(9)]}, spouts=1)
    count = done.statistics().components["count"]
    assert (count.executed, count.failed) == (9 + 3, 3)


def test_a_timer_that_fails_is_undone_and_called_again() -> None:
    """What it has changed and emitted before is forgotten."""
    Stumbles.attempts = 0
    topology = keyed(Stumbles, outputs=str)
    first = epoch(topology, [Item("sun", 0)], [], 0.0)
    later = epoch(topology, [], first.left, 60.0)
    assert (Stumbles.attempts, later.emitted("count")) == (2, ["sun True", "sun True"])
    assert left_by(topology, later.left)["count.calls"] == {"sun": 1}


def test_a_value_reads_as_absent_when_its_time_is_over() -> None:
    """From the last time that it was written on; within an epoch time stands still (law K6)."""
    topology, rows, counts = keyed(Brief, outputs=object), list[Row](), list[list[int]]()
    for now in (0.0, 59.0, 118.0, 178.0):
        done = epoch(topology, [Item("sun", 0), Item("sun", 1)], rows, now)
        counts.append([total for _, total in done.emitted("count")])
        rows = done.left
    assert counts == [[1, 2], [3, 4], [5, 6], [1, 2]]


def test_a_lost_row_of_the_state_shows_in_the_ledger() -> None:
    """As that of an ordinary bolt does."""

    def lose(place: Place, rows: Sequence[Row], again: object) -> Sequence[Row]:
        return [row for row in rows if row.kind != Kind.KEYED or place.partition]

    assert twin(keyed(Count), fault=lose).differences == [
        "chunks that were read differ from those that were written"
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("case", [case for case in CASES if str(case) != "calls that overlap"], ids=str)
def test_another_attempt_of_sparks_gives_the_same_rows(case: Case) -> None:
    """So that it may mix the two."""
    one, other = (run(case.topology(), seed=7) for _ in range(2))
    assert one.rows == other.rows


def test_the_state_moves_to_other_tasks() -> None:
    """A key goes to the task that its grouping names (law K5)."""
    rows = run(keyed(Count)).left
    blobs = by_state([blob_in(row) for row in rows])
    topology = Topology("keyed")
    topology.bolt(
        "count", Count, topology.spout("items", items(), outputs=Item).fields("word"), parallelism=5
    )
    description, configurations = topology.describe().configured(topology.configuration, "run")
    moved = rows_with(number(description, configurations, {"items": 1}), blobs, shapes_of(description))
    done = run(topology, states=moved)
    assert left_by(topology, done.left) == {
        "count.total": {word: 2 * count for word, count in Counter(WORDS).items()}
    }


def test_a_state_without_a_bolt_is_refused() -> None:
    """It would be lost without a word (law K5)."""
    description = keyed(Count).describe()
    with pytest.raises(StateUnusable, match=r"state 'sum\.total' belongs to no bolt"):
        check_shapes(description, {StateId("sum", "total"): Shape("value", "str", "int")})


def test_a_value_that_cannot_be_kept_is_named() -> None:
    """With its state and key, when the attempt ends."""
    with pytest.raises(TopologyCrashed) as crashed:
        twin(keyed(Misfit))
    assert "count" in str(crashed.value)
    assert "state 'basket', key 'the'" in str(crashed.value.__cause__)


@pytest.mark.filterwarnings("ignore")
def test_an_input_without_a_message_that_fails_for_good_is_a_crash() -> None:
    """Nobody would hear of it (law X7)."""
    topology = Topology("keyed", replay_delay=0.001)
    source = topology.spout("items", [Item("sea", 0)], outputs=Item)
    ends = topology.bolt("ends", Ends, source.shuffle())
    topology.bolt("count", FailsLast, ends.fields("word"))
    with pytest.raises(TopologyCrashed, match=r"bolt 'count'|count\[0\]"):
        twin(topology)


def test_a_bolt_that_holds_for_ever_loses_its_input_and_its_state() -> None:
    """After the message timeout; nothing of it is left."""
    topology = Topology("keyed", message_timeout=5)
    counts = by_word(topology, Count)
    topology.bolt("hold", HoldsForEver, counts.shuffle())
    done = run(topology, sources={"items": [Item("sun", 0), Item("sea", 1)]}, spouts=1)
    assert left_by(topology, done.left) == {"count.total": {"sun": 1}}
    assert [item.word for item in done.failed] == ["sea"]
