"""Keyed state in batches on Spark, and on the way to it and back."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import InvalidTopology, Topology
from stormlet.errors import StateUnusable
from stormlet.spark import run_on_spark
from stormlet.state.sqlite.file import StateFile
from stormlet.testing import complete
from tests.spark.engine.keyed_flows import (
    CASES,
    WORDS,
    Brief,
    Case,
    Count,
    Item,
    Kinds,
    Merges,
    Reminds,
    by_word,
    in_order,
)
from tests.spark.engine.test_keyed import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON_SPARK = {
    "failures after state",
    "every kind of state",
    "calls that overlap",
    "a function",
    "an instance that dies",
}


@pytest.mark.parametrize("case", [case for case in CASES if str(case) in ON_SPARK], ids=str)
def test_the_states_are_those_of_the_model(spark: SparkSession, case: Case) -> None:
    """So is what is given up, and what leaves."""
    result = run_on_spark(case.topology(), spark)
    states = {name: result.state(*name.split(".")) for name in case.states}
    assert in_order(states) == in_order(case.states)
    assert sorted(letter.value.place for letter in result.dead_letters) == list(case.given_up)


def counting(words: list[str], name: str = "keyed", parallelism: int = 3) -> Topology:
    topology = Topology(name)
    source = topology.spout("items", [Item(word, place) for place, word in enumerate(words)], outputs=Item)
    topology.bolt("count", Count, source.fields("word"), parallelism=parallelism)
    topology.bolt("kinds", Kinds, source.fields("word"))
    return topology


def state_of(file: Path) -> dict[str, Any]:
    with closing(StateFile(file)) as store:
        stored = store.load()
    return opened(counting([]), {id: list(blobs) for id, blobs in stored.states.items()})


def test_counts_go_from_a_process_to_spark_and_back(spark: SparkSession, tmp_path: Path) -> None:
    """Each word of three runs is counted once, and every kind of state is what one run in process would have left."""
    complete(counting(WORDS[:20]), state=tmp_path / "here.state")
    result = run_on_spark(counting(WORDS[20:33], parallelism=2), spark, initial_state=tmp_path / "here.state")
    assert result.state("count") == dict(Counter(WORDS[:33]))
    result.save_state(tmp_path / "there.state")
    complete(counting(WORDS[33:], parallelism=1), state=tmp_path / "there.state")
    found = state_of(tmp_path / "there.state")
    assert found["count.total"] == dict(Counter(WORDS))
    assert found["kinds.lengths"] == {
        word: {len(word): count} for word, count in Counter(WORDS).items() if word != "odd"
    }
    assert {word: len(places) for word, places in found["kinds.places"].items()} == dict(Counter(WORDS))


def test_what_a_file_had_before_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    """Also the keys that the run does not have."""
    complete(counting(["sun", "sea"]), state=tmp_path / "here.state")
    result = run_on_spark(counting(["sun", "sun"]), spark)
    result.save_state(tmp_path / "here.state")
    assert state_of(tmp_path / "here.state")["count.total"] == {"sun": 2}
    assert state_of(tmp_path / "here.state")["kinds.places"] == {"sun": [0, 1]}


def test_what_a_file_has_is_merged_with_what_has_been_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Where both have counted apart; a bolt without a merge is refused by name, and nothing is written."""
    here = tmp_path / "here.state"
    complete(merging(["sun", "sea"]), state=here)
    run_on_spark(merging(["sun", "sun", "odd"]), spark).save_state(here, merge=True)
    with closing(StateFile(here)) as store:
        blobs = {id: list(each) for id, each in store.load().states.items()}
    assert opened(merging([]), blobs)["count.total"] == {"sun": 3, "sea": 1, "odd": 1}
    complete(counting(["sun"]), state=tmp_path / "there.state")
    result = run_on_spark(counting(["sun"]), spark)
    with pytest.raises(
        InvalidTopology, match="bolt 'count' has no merge, by which two states of a key become one"
    ):
        result.save_state(tmp_path / "there.state", merge=True)
    assert state_of(tmp_path / "there.state")["count.total"] == {"sun": 1}


def merging(words: list[str]) -> Topology:
    topology = Topology("keyed")
    source = topology.spout("items", [Item(word, place) for place, word in enumerate(words)], outputs=Item)
    topology.bolt("count", Merges, source.fields("word"), parallelism=2)
    return topology


def test_a_state_is_asked_for_by_its_names(spark: SparkSession) -> None:
    """The bolt's suffices if it has one; an error names those there are."""
    result = run_on_spark(counting(["sun"]), spark)
    assert result.state("kinds", "last") == {"sun": "sun"}
    with pytest.raises(KeyError, match=r"'kinds' names 4 states; there are count\.total, kinds\.places"):
        result.state("kinds")
    with pytest.raises(KeyError, match="'sum' names 0 states"):
        result.state("sum")


def test_a_file_of_another_topology_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Its state would belong to no bolt, or the file would have that of two."""
    complete(counting(["sun"]), state=tmp_path / "here.state")
    topology = Topology("other")
    by_word(topology, Count)
    with pytest.raises(StateUnusable, match=r"state 'kinds\.\w+' belongs to no bolt"):
        run_on_spark(topology, spark, initial_state=tmp_path / "here.state")
    result = run_on_spark(counting(["sun"], name="other"), spark)
    with pytest.raises(StateUnusable, match=r"here\.state"):
        result.save_state(tmp_path / "here.state")


def test_replays_from_the_source_are_refused(spark: SparkSession) -> None:
    """They would count a message twice."""
    with pytest.raises(InvalidTopology, match="bolt 'count' has keyed state, which a replay from the source"):
        run_on_spark(counting(["sun"]), spark, replays="source")


def test_time_stands_still_in_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Timers that it sets are left in its state; a value does not run out in it."""
    topology = Topology("keyed")
    by_word(topology, Reminds, outputs=str)
    result = run_on_spark(topology, spark)
    assert set(result.state("count", "on_timer")) == set(WORDS)
    brief = Topology("keyed")
    by_word(brief, Brief, outputs=object)
    assert run_on_spark(brief, spark).state("count") == dict(Counter(WORDS))
