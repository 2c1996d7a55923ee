"""The layout: what is fused, what begins a stage, and what runs in the driver."""

from __future__ import annotations

from typing import Any

import pytest

from stormlet import Topology
from stormlet.spark import DataFrameSink
from stormlet.spark.engine.planning.layout import lay_out
from tests.cast import Forward, Ignore, same
from tests.spark.engine.sketches import drawn, laid_out, sketch


def test_an_even_grouping_needs_no_exchange() -> None:
    """Bolts that take what comes are fused with their producers, one after another, and any other begins a stage."""
    topology = sketch(split="lines.shuffle *2", clean="split.none", count="clean.fields *4")
    assert laid_out(topology) == "lines + split + clean > count"


@pytest.mark.parametrize("grouping", ["shuffle", "local_or_shuffle", "none"])
def test_groupings_that_are_fused(grouping: str) -> None:
    """Any task may have the tuple, so it stays where it is."""
    assert laid_out(sketch(bolt=f"lines.{grouping} *2")) == "lines + bolt"


@pytest.mark.parametrize("grouping", ["fields", "partial_key", "all", "global_", "custom"])
def test_groupings_that_need_an_exchange(grouping: str) -> None:
    """Some task must have the tuple, and it is in a partition of its own."""
    assert laid_out(sketch(bolt=f"lines.{grouping} *2")) == "lines > bolt"


def test_one_input_that_needs_an_exchange_is_enough() -> None:
    """A bolt is not in two places."""
    assert laid_out(sketch(bolt="lines.shuffle, more.fields *2")) == "lines, more > bolt"


def test_a_diamond_of_fused_bolts() -> None:
    """It closes without an exchange, as both ways are in one stage."""
    topology = sketch(left="lines.shuffle", right="lines.shuffle", both="left.shuffle, right.shuffle")
    assert laid_out(topology) == "lines + left + right + both"


def test_a_diamond_with_an_exchange_on_one_way() -> None:
    """It closes in a stage of its own, as the two ways come from two stages."""
    topology = sketch(
        left="lines.shuffle", right="lines.fields *2", both="left.shuffle, right.shuffle", end="both.none"
    )
    assert laid_out(topology) == "lines + left > right > both + end"


def test_a_bolt_after_two_stages_comes_after_the_later_one() -> None:
    """What the earlier one emits passes by the stages between."""
    topology = sketch(a="s.fields *2", b="a.fields *2", c="s.fields, b.fields *2")
    assert laid_out(topology) == "s > a > b > c"


def test_heads_of_one_stage_share_one_exchange() -> None:
    """Two bolts that need the same producer's tuples by two keys begin beside each other."""
    topology = sketch(carriers="flights.fields *2", routes="flights.fields *4", sums="routes.fields *2")
    assert laid_out(topology) == "flights > carriers, routes > sums"


def test_a_bolt_begins_in_the_earliest_stage() -> None:
    """It does not wait for stages that do not feed it."""
    topology = sketch(a="s.fields *2", b="a.fields *2", late="t.fields *2")
    assert laid_out(topology) == "s, t > a, late > b"


def test_fused_below_two_heads() -> None:
    """A bolt that takes from two heads of one stage has its tasks in the partitions of both."""
    layout = lay_out(
        sketch(both="s.shuffle, t.shuffle", one="s.shuffle", more="one.none, both.none").describe()
    )
    assert [layout.heads[id] for id in ("s", "both", "one", "more")] == [
        ("s",),
        ("s", "t"),
        ("s",),
        ("s", "t"),
    ]


def test_several_spouts_are_heads_of_the_first_stage() -> None:
    """Each has partitions of its own, and what joins them begins the next stage."""
    topology = sketch(join="orders.fields, payments.fields *2", paid="join.shuffle")
    assert laid_out(topology) == "orders, payments > join + paid"


def test_a_stream_fuses_no_class_into_the_first_stage() -> None:
    """Its state belongs to one of a fixed number of tasks, and the first stage has others in each epoch."""
    topology = Topology("stream")
    split = topology.bolt("split", same, topology.spout("lines", [1]).shuffle())
    topology.bolt("more", Ignore, topology.bolt("count", Forward, split.shuffle()).shuffle())
    assert laid_out(topology) == "lines + split + count + more"
    assert drawn(lay_out(topology.describe(), in_epochs=True)) == "lines + split > count + more"


# The driver.


def test_what_ends_in_one_task_runs_in_the_driver() -> None:
    """A report takes everything by global_, and prints where the user can see it."""
    assert (
        laid_out(sketch(count="lines.fields *4", report="count.global_")) == "lines > count > driver: report"
    )


def test_a_chain_behind_global_runs_in_the_driver() -> None:
    """Whatever the groupings after it: each of these bolts has one task."""
    topology = sketch(top="lines.global_", shown="top.shuffle", kept="top.fields, shown.all")
    assert laid_out(topology) == "lines > driver: top, shown, kept"


def test_what_feeds_a_stage_is_in_none_of_the_driver() -> None:
    """The driver comes after all stages, so that nothing leads back from there."""
    topology = sketch(top="lines.global_", shown="top.global_", spread="top.shuffle *2")
    assert laid_out(topology) == "lines > top + spread > driver: shown"


def test_a_long_chain_leaves_the_driver_if_its_end_does() -> None:
    """Each bolt takes along the one before."""
    topology = sketch(a="s.global_", b="a.global_", c="b.global_", d="c.fields *2")
    assert laid_out(topology) == "s > a > b > c > d"


@pytest.mark.parametrize("text", ["s.global_ *2", "s.fields", "s.global_, s.fields", "s.all"])
def test_what_is_no_end_in_one_task(text: str) -> None:
    """Several tasks, or another grouping, stay on the cluster."""
    assert laid_out(sketch(end=text)) == "s > end"


def test_a_sink_is_never_in_the_driver() -> None:
    """Spark writes its rows where they are."""
    topology = Topology("sink")
    rows: Any = topology.bolt("rows", same, topology.spout("s", range(3)).fields(), parallelism=2)
    topology.bolt("write", DataFrameSink("out"), rows.global_())
    topology.bolt("print", print, rows.global_())
    assert laid_out(topology) == "s > rows > write > driver: print"


# Shapes.


def test_forty_stages_in_a_row() -> None:
    """As many as there are exchanges, in the order of the chain."""
    bolts = {f"b{each}": f"{f'b{each - 1}' if each else 's'}.fields *2" for each in range(39)}
    layout = lay_out(sketch(**bolts).describe())
    assert [stage.heads for stage in layout.stages] == [("s",), *((id,) for id in bolts)]


def test_forty_bolts_side_by_side() -> None:
    """They share one exchange."""
    bolts = {f"b{each}": "s.fields *2" for each in range(40)}
    layout = lay_out(sketch(**bolts).describe())
    assert [stage.heads for stage in layout.stages] == [("s",), tuple(bolts)]


def test_forty_fused_bolts_in_a_row() -> None:
    """There is no exchange at all."""
    bolts = {f"b{each}": f"{f'b{each - 1}' if each else 's'}.shuffle" for each in range(40)}
    (stage,) = lay_out(sketch(**bolts).describe()).stages
    assert (stage.heads, stage.fused) == (("s",), tuple(bolts))
