from __future__ import annotations

from typing import Any

import pytest

from stormlet.core.groupings import All, Grouping, Shuffle
from stormlet.core.schema import schema_of
from stormlet.errors import InvalidTopology
from stormlet.model.configuration import Configuration, configure
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import LogicKind, SourceKind
from stormlet.model.plan import ACKER, TaskPlan
from stormlet.model.planning import LEAST_HIGH_WATER, Plan, plan
from stormlet.model.streams import Output, StreamId, Subscription
from stormlet.topology import Topology

STREAMS = {"default": Output(schema_of(None)), "errors": Output(schema_of(None))}


def spout(id: str, parallelism: int = 1) -> SpoutSpec:
    return SpoutSpec(id, None, SourceKind.FED, parallelism, STREAMS, {})


def bolt(id: str, *inputs: str | tuple[str, str, Grouping], parallelism: int = 1) -> BoltSpec:
    """Inputs are ids, for shuffled default streams, or stream and grouping too."""
    named = [(each, "default", Shuffle()) if isinstance(each, str) else each for each in inputs]
    subscriptions = [
        Subscription(StreamId(source, stream), grouping, None) for source, stream, grouping in named
    ]
    return BoltSpec(
        id, print, LogicKind.FUNCTION, parallelism, STREAMS, {}, subscriptions, None, 1, "loop", "fail"
    )


def planned(*components: SpoutSpec | BoltSpec, pending: dict[str, Any] | None = None, **options: Any) -> Plan:
    """``pending`` is the ``max_spout_pending`` of single spouts."""
    configuration = configure(Configuration(), options, "here")
    spouts = {each.id: each for each in components if isinstance(each, SpoutSpec)}
    bolts = {each.id: each for each in components if isinstance(each, BoltSpec)}
    effective = {
        id: configure(configuration, {"max_spout_pending": (pending or {}).get(id, 1000)}, "here")
        for id in spouts
    }
    return plan(Description("words", configuration, spouts, bolts), effective)


def ids(tasks: Any) -> list[int]:
    return [each.task for each in tasks]


def test_ackers_come_first() -> None:
    """Then spouts, then bolts, as declared, from 1 and without a gap."""
    result = planned(bolt("b", "t", parallelism=2), spout("s", 2), bolt("a", "b"), spout("t"), ackers=3)
    assert ids(result.ackers) == [1, 2, 3]
    assert {id: ids(tasks) for id, tasks in result.tasks.items()} == {
        "s": [4, 5],
        "t": [6],
        "b": [7, 8],
        "a": [9],
    }


def test_a_task_knows_its_place() -> None:
    """Its index among the tasks of its component, how many there are, and what messages call it."""
    result = planned(spout("s", 3))
    assert result.tasks["s"][1] == TaskPlan("s", 3, 1, 3)
    assert [each.name for each in result.tasks["s"]] == ["s[0]", "s[1]", "s[2]"]
    assert result.ackers == (TaskPlan(ACKER, 1, 0, 1),)


def test_no_ackers() -> None:
    """Ids then begin with the first spout (law L9)."""
    result = planned(spout("s"), ackers=0)
    assert result.ackers == ()
    assert ids(result.tasks["s"]) == [1]


def test_links_lead_from_streams_to_tasks() -> None:
    """By stream, in the order of the subscriptions; a stream without subscribers has none."""
    grouping = All()
    result = planned(
        spout("s"),
        bolt("a", "s", parallelism=2),
        bolt("b", ("s", "errors", grouping), ("s", "default", grouping)),
    )
    default = result.links[StreamId("s", "default")]
    assert [(link.consumer, link.targets) for link in default] == [("a", (3, 4)), ("b", (5,))]
    (errors,) = result.links[StreamId("s", "errors")]
    assert (errors.consumer, errors.targets) == ("b", (5,))
    assert errors.grouping is grouping
    assert result.links[StreamId("a", "default")] == []
    assert len(result.links) == 6


def test_edges_wait_for_room() -> None:
    """Those between components that cannot reach each other in both directions (law B6)."""
    result = planned(spout("s"), bolt("a", "s"), bolt("b", "a"))
    assert all(link.waits for links in result.links.values() for link in links)


def test_edges_inside_a_cycle_do_not_wait() -> None:
    """Waiting could last for ever; the edges that lead in and out of it do (law B6)."""
    result = planned(spout("s"), bolt("a", "s", "b", "a"), bolt("b", "a"), bolt("c", "b"))
    waits = {
        (stream.component, link.consumer): link.waits
        for stream, links in result.links.items()
        for link in links
    }
    assert waits == {
        ("s", "a"): True,
        ("a", "a"): False,
        ("a", "b"): False,
        ("b", "a"): False,
        ("b", "c"): True,
    }


def test_the_order_is_that_of_the_description() -> None:
    """Upstream first (law C2)."""
    assert planned(bolt("b", "a"), bolt("a", "s"), spout("s")).order == [["s"], ["a"], ["b"]]


@pytest.mark.parametrize(
    ("pending", "ackers", "high_water"),
    [
        ({"s": 1, "t": 1}, 1, LEAST_HIGH_WATER),
        ({"s": 400, "t": 199}, 1, LEAST_HIGH_WATER),
        ({"s": 400, "t": 201}, 1, 1001),
        ({"s": 5000, "t": 1}, 1, 10_001),
        ({"s": 5000, "t": 1}, 2, 5001),
        ({"s": 5000, "t": 1}, 7, 1429),
        ({"s": 5000, "t": 1}, 0, 10_001),
        ({"s": 5000, "t": None}, 1, None),
        ({"s": None, "t": None}, 3, None),
    ],
)
def test_the_high_water_guards_and_does_not_throttle(
    pending: dict[str, int | None], ackers: int, high_water: int | None
) -> None:
    """What all spout tasks may have pending, over the ackers, rounded up and at least 1000; without a limit where a
    spout has none (law L13). ``s`` has two tasks."""
    assert planned(spout("s", 2), spout("t"), pending=pending, ackers=ackers).high_water == high_water


@pytest.mark.parametrize("pending", [1, None])
def test_a_high_water_that_was_asked_for(pending: int | None) -> None:
    """It is taken as it is, even below what the spouts may have pending (law L13)."""
    assert planned(spout("s"), pending={"s": pending}, acker_high_water=3).high_water == 3


def test_what_cannot_run_is_not_planned() -> None:
    """The description is validated first."""
    with pytest.raises(InvalidTopology, match="does not have any spout"):
        planned()
    with pytest.raises(InvalidTopology, match="bolt 'a' has no input"):
        planned(spout("s"), bolt("a"))


def test_a_number_of_tasks_that_is_a_mistake() -> None:
    """Billions of ackers are refused before they are made."""
    topology = Topology("many", ackers=99_999_999_999)
    topology.spout("spout")
    with pytest.raises(InvalidTopology, match="would have 100,000,000,000 tasks"):
        topology.run()
