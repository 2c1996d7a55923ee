"""Tasks on Spark: their ids, and the stage and partition of each."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from stormlet.model.description import Description
from stormlet.model.streams import StreamId
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place
from tests.spark.engine.sketches import acyclic, numbered, planned, sketch

EXCHANGED = ("fields", "partial_key", "all", "global_", "custom")


def places(cluster: ClusterPlan, component: str) -> list[tuple[int, int]]:
    return [
        (place.stage, place.partition)
        for place in (cluster.places[each.task] for each in cluster.plan.tasks[component])
    ]


def all_places(cluster: ClusterPlan) -> list[Place]:
    return [Place(stage, each) for stage, count in enumerate(cluster.partitions) for each in range(count)]


def test_a_word_count() -> None:
    """A fused bolt has the partitions of its spout, and a report is in the driver."""
    topology = sketch(split="lines.shuffle *2", count="split.fields *4", report="count.global_")
    cluster = numbered(topology, lines=3)
    assert cluster.partitions == [3, 4, 1]
    assert places(cluster, "lines") == places(cluster, "split") == [(0, 0), (0, 1), (0, 2)]
    assert places(cluster, "count") == [(1, 0), (1, 1), (1, 2), (1, 3)]
    assert places(cluster, "report") == [(2, 0)]
    assert cluster.driver == Place(2, 0)


def test_heads_of_one_stage_have_partitions_of_their_own() -> None:
    """One after another, in the order of the heads."""
    cluster = numbered(sketch(carriers="flights.fields *2", routes="flights.fields *4"), flights=1)
    assert places(cluster, "carriers") == [(1, 0), (1, 1)]
    assert places(cluster, "routes") == [(1, 2), (1, 3), (1, 4), (1, 5)]


def test_a_bolt_below_two_heads_has_the_partitions_of_both() -> None:
    """Its tasks are numbered in the order of these, whatever its parallelism."""
    cluster = numbered(sketch(both="s.shuffle, t.shuffle *7", one="t.shuffle"), s=2, t=3)
    assert places(cluster, "both") == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]
    assert places(cluster, "one") == [(0, 2), (0, 3), (0, 4)]
    assert [each.parallelism for each in cluster.plan.tasks["both"]] == [5] * 5


def test_the_order_of_inputs_does_not_move_tasks() -> None:
    """A bolt that names the second head first has its first task in the first partition all the same."""
    cluster = numbered(sketch(one="s.shuffle", both="t.shuffle, s.shuffle"), s=2, t=1)
    assert places(cluster, "both") == [(0, 0), (0, 1), (0, 2)]


def test_a_driver_without_bolts_has_a_place_all_the_same() -> None:
    """Accounts are addressed to it."""
    cluster = numbered(sketch(count="lines.fields *2"))
    assert cluster.partitions == [1, 2, 1]
    assert cluster.tasks_at(cluster.driver) == []


def test_tasks_at_one_place_stand_upstream_first() -> None:
    """However the bolts were declared, so that each is ended after its producers."""
    cluster = numbered(sketch(a="s.shuffle", b="a.shuffle", c="b.shuffle, a.shuffle"), s=2)
    assert [each.name for each in cluster.tasks_at(Place(0, 1))] == ["s[1]", "a[1]", "b[1]", "c[1]"]


def test_links_lead_to_the_task_beside_and_to_all_tasks_of_later_stages() -> None:
    """From the second partition: fused bolts have one target there, others have all."""
    cluster = numbered(sketch(near="s.shuffle *5", far="s.fields *3", end="s.global_"), s=2)
    links = cluster.links_from(Place(0, 1))[StreamId("s", "default")]
    ids = {id: [each.task for each in tasks] for id, tasks in cluster.plan.tasks.items()}
    assert {each.consumer: each.targets for each in links} == {
        "near": [ids["near"][1]],
        "far": tuple(ids["far"]),
        "end": tuple(ids["end"]),
    }


def test_places_after_one_are_those_of_later_stages() -> None:
    """The driver's included; its own stage's are not."""
    cluster = numbered(sketch(a="s.shuffle", b="s.fields *2", end="b.global_"))
    later = [cluster.component_of(task) for task in cluster.places_after(Place(0, 0))]
    assert later == ["b", "b", "end"]
    assert cluster.places_after(cluster.driver) == {}


def test_a_task_is_known_by_its_number() -> None:
    """Each number belongs to one component."""
    cluster = numbered(sketch(a="s.fields *3", b="a.fields *2"), s=2)
    for id, tasks in cluster.plan.tasks.items():
        assert {cluster.component_of(each.task) for each in tasks} == {id}


# Any topology.


@given(acyclic(groupings=EXCHANGED))
def test_tasks_are_those_in_process_where_nothing_is_fused(description: Description) -> None:
    """The same ids, indexes and targets: so keys have the same tasks on both engines."""
    ours, theirs = numbered(description).plan, planned(description)
    assert (ours.tasks, ours.links, ours.ackers) == (theirs.tasks, theirs.links, theirs.ackers)


@given(acyclic(), st.integers(1, 3))
def test_a_task_has_one_place_and_a_place_one_task_of_a_component(
    description: Description, partitions: int
) -> None:
    """A fused bolt has exactly one task in each partition of its heads."""
    cluster = numbered(description, **dict.fromkeys(description.spouts, partitions))
    assert set(cluster.places) == {each.task for tasks in cluster.plan.tasks.values() for each in tasks}
    assert set(cluster.places.values()) <= set(all_places(cluster))
    for id, heads in cluster.layout.heads.items():
        found = Counter(places(cluster, id))
        assert set(found.values()) == {1}
        assert heads == () or set(found) == {place for head in heads for place in places(cluster, head)}


@given(acyclic(), st.integers(1, 3))
def test_links_reach_what_can_be_reached(description: Description, partitions: int) -> None:
    """From each place: all tasks of a consumer in a later stage, and the one at the same place of a fused one."""
    cluster = numbered(description, **dict.fromkeys(description.spouts, partitions))
    for place in all_places(cluster):
        here = {each.component for each in cluster.tasks_at(place)}
        links = cluster.links_from(place)
        assert {stream.component for stream in links} == here
        for each in (link for ends in links.values() for link in ends):
            tasks = [task.task for task in cluster.plan.tasks[each.consumer]]
            fused = cluster.layout.stage_of(each.consumer) == place.stage
            assert [*each.targets] == ([t for t in tasks if cluster.places[t] == place] if fused else tasks)
            assert (
                len(each.targets) == 1 if fused else all(cluster.places[t].stage > place.stage for t in tasks)
            )


@given(acyclic())
def test_every_subscription_is_a_link_from_each_place_of_its_producer(description: Description) -> None:
    """None is lost, and none comes twice."""
    cluster = numbered(description)
    for place in all_places(cluster):
        here = {each.component for each in cluster.tasks_at(place)}
        links = [
            (stream, each.consumer) for stream, ends in cluster.links_from(place).items() for each in ends
        ]
        wanted = [
            (each.source, bolt.id)
            for bolt in description.bolts.values()
            for each in bolt.inputs
            if each.source.component in here
        ]
        assert Counter(links) == Counter(wanted)
