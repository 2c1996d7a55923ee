"""The layout of any topology without cycles."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from stormlet.core.groupings import Global, Shuffle
from stormlet.model.description import Description
from stormlet.spark.engine.planning.layout import Layout, lay_out
from tests.spark.engine.sketches import acyclic


def producers(description: Description, bolt: str) -> set[str]:
    return {each.source.component for each in description.bolts[bolt].inputs}


def laid(description: Description) -> tuple[Layout, dict[str, int]]:
    layout = lay_out(description)
    return layout, {id: layout.stage_of(id) for id in description.components}


@given(acyclic())
def test_every_component_has_one_place(description: Description) -> None:
    """It is a head, or fused, or in the driver."""
    layout, _ = laid(description)
    places = [id for stage in layout.stages for id in (*stage.heads, *stage.fused)]
    assert Counter([*places, *layout.driver]) == Counter([*description.components])


@given(acyclic())
def test_no_producer_comes_after_its_consumer(description: Description) -> None:
    """Rows go forward only; within a stage, and in the driver, producers stand first."""
    layout, stage_of = laid(description)
    order = [id for stage in layout.stages for id in (*stage.heads, *stage.fused)] + [*layout.driver]
    for bolt in description.bolts:
        for each in producers(description, bolt):
            assert stage_of[each] <= stage_of[bolt]
            assert order.index(each) < order.index(bolt)


@given(acyclic())
def test_heads_of_one_stage_do_not_feed_each_other(description: Description) -> None:
    """One exchange brings all of them their inputs. So nothing of their own stage does."""
    layout, stage_of = laid(description)
    for stage in layout.stages[1:]:
        for head in stage.heads:
            assert max(stage_of[each] for each in producers(description, head)) == stage.number - 1


@given(acyclic())
def test_only_even_groupings_of_one_stage_are_fused(description: Description) -> None:
    """Its tasks are in the partitions of all its producers, and in no others."""
    layout, stage_of = laid(description)
    for stage in layout.stages:
        for id in stage.fused:
            above = producers(description, id)
            assert all(isinstance(each.grouping, Shuffle) for each in description.bolts[id].inputs)
            assert {stage_of[each] for each in above} == {stage.number}
            assert set(layout.heads[id]) == {head for each in above for head in layout.heads[each]}
            assert set(layout.heads[id]) <= set(stage.heads)


@given(acyclic())
def test_a_head_could_not_be_fused(description: Description) -> None:
    """There are as few stages as the groupings allow."""
    layout, stage_of = laid(description)
    for stage in layout.stages[1:]:
        for id in stage.heads:
            even = all(isinstance(each.grouping, Shuffle) for each in description.bolts[id].inputs)
            assert not even or len({stage_of[each] for each in producers(description, id)}) > 1


@given(acyclic())
def test_the_driver_feeds_no_stage_and_takes_from_one_task(description: Description) -> None:
    """Whatever comes there comes by global_, or from a bolt that is there."""
    layout, _ = laid(description)
    for bolt in description.bolts.values():
        if bolt.id in layout.driver:
            assert bolt.parallelism == 1
            assert all(
                isinstance(each.grouping, Global) or each.source.component in layout.driver
                for each in bolt.inputs
            )
        else:
            assert not producers(description, bolt.id) & set(layout.driver)


@given(acyclic(groupings=["global_", "shuffle"]))
def test_what_could_run_in_the_driver_does(description: Description) -> None:
    """A bolt outside has several tasks, another grouping, or somebody outside who takes from it."""
    layout, _ = laid(description)
    for bolt in description.bolts.values():
        if bolt.id in layout.driver:
            continue
        consumers = {each for each in description.bolts if bolt.id in producers(description, each)}
        comes_to_one = all(
            isinstance(each.grouping, Global) or each.source.component in layout.driver
            for each in bolt.inputs
        )
        assert bolt.parallelism > 1 or not comes_to_one or consumers - set(layout.driver)
