"""What a user has set in vain is said, and where bolts print."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from stormlet import Collector, KeyedBolt, Topology, Tuple, Value
from stormlet.model.configuration import OPTIONS
from stormlet.spark.engine.planning.layout import lay_out
from stormlet.spark.engine.planning.notes import notes
from tests.cast import Burst, HoldUntilFinished, ignore
from tests.spark.engine.sketches import sketch

HAVE_EFFECT = {
    "message_timeout", "max_attempts", "replay_delay", "replay_delay_max",
    "max_restarts", "restart_window", "restart_delay", "restart_delay_max",
}  # fmt: skip
REFUSED = {"tick"}


def said(topology: Topology, *, in_epochs: bool = False, **settings: object) -> list[str]:
    description = topology.describe()
    return list(notes(description, lay_out(description, in_epochs=in_epochs), settings))


def simple(**options: Any) -> Topology:
    topology = Topology("simple", **options)
    topology.bolt("end", ignore, topology.spout("numbers", [1]).shuffle())
    return topology


@pytest.mark.parametrize(
    ("option", "shown", "reason"),
    [
        (
            {"timeout_restarts_on": "activity"},
            "'activity'",
            "nothing times out, and what hangs is a task of Spark's",
        ),
        ({"ackers": 2}, "2", "one ledger spans all tasks"),
        ({"max_spout_pending": 10}, "10", "stages follow one another, so that nobody waits for room"),
        ({"slice": 0.01}, "0.01", "no host shares the loop"),
        ({"idle_max": 1}, "1", "no spout is polled"),
        ({"drain_timeout": 5}, "5", "a batch ends with its messages, and is not drained"),
        ({"explain_stuck": 20}, "20", "nothing is explained while a batch runs"),
    ],
)
def test_options_of_the_topology(option: dict[str, Any], shown: str, reason: str) -> None:
    """Also from a file, the environment or the command line."""
    (name,) = option
    assert said(simple(**option)) == [f"{name}={shown} has no effect on Spark: {reason}"]
    assert said(simple(), **option) == said(simple(**option))


class Reminds(KeyedBolt[int, int, None]):
    """Has timers."""

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        self.set_timer(self.now + 60)

    def on_timer(self, at: float, out: Collector[None]) -> None:
        """Do nothing."""


def test_timers_in_a_batch() -> None:
    """In a stream they are called with one of the next epochs."""
    topology = Topology("timers")
    topology.bolt("remind", Reminds, topology.spout("numbers", [1]).fields())
    (sentence,) = said(topology)
    assert sentence == (
        "timers of bolt 'remind' are called in a batch if they are due when it begins, as time stands still in it; "
        "others stay in its state"
    )
    assert said(topology, in_epochs=True) == []


class Counts(KeyedBolt[int, int, int]):
    """Can be merged."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Do nothing."""

    def merge(self, other: Self) -> None:
        """Do nothing."""


def test_a_merge_that_is_not_used() -> None:
    """With the reason; there is no note where it is."""
    topology = Topology("merging")
    counts = topology.bolt("count", Counts, topology.spout("numbers", [1]).fields())
    assert said(topology) == []
    topology.bolt("end", ignore, counts.shuffle())
    (sentence,) = said(topology)
    assert sentence == (
        "merge of bolt 'count' is not used before the exchange, so that each input goes to its task by itself: 'end' "
        "takes what it emits for each of them"
    )


def test_the_state_of_the_topology_itself() -> None:
    """A run on Spark neither reads the file nor writes it, unless it is told to."""
    topology = Topology("kept", state="counts.state")
    topology.bolt("end", ignore, topology.spout("numbers", [1]).shuffle())
    (sentence,) = said(topology)
    assert sentence == (
        "state='counts.state' has no effect on Spark: a batch begins with the state of the file that initial_state= "
        "names, and its result has save_state"
    )
    assert said(topology, in_epochs=True) == [
        "state='counts.state' has no effect on Spark: a stream keeps the state in its checkpoint"
    ]


def test_the_setting_that_wins_is_the_one_that_is_told() -> None:
    """Once."""
    (sentence,) = said(simple(queue_capacity=10), queue_capacity=20)
    assert sentence.startswith("queue_capacity=20 has no effect")


def test_options_of_components() -> None:
    """Each with its component."""
    topology = Topology("components")
    numbers = topology.spout("numbers", [1], max_spout_pending=7)
    topology.bolt("end", ignore, numbers.shuffle(), queue_capacity=9)
    assert [each.partition(" has")[0] for each in said(topology)] == [
        "max_spout_pending=7 of spout 'numbers'",
        "queue_capacity=9 of bolt 'end'",
    ]


def test_the_parallelism_of_a_fused_bolt() -> None:
    """That of a bolt that begins a stage has an effect."""
    near, beside = said(sketch(near="s.shuffle *3", far="near.fields *2", beside="far.none *2"))
    assert near == (
        "parallelism=3 of bolt 'near' has no effect on Spark: it is fused into stage 0, and has a task in each "
        "partition there"
    )
    assert beside.startswith(
        "parallelism=2 of bolt 'beside' has no effect on Spark: it is fused into stage 1,"
    )


def test_defaults_are_not_worth_a_note() -> None:
    """Nor is what is chosen by the engine itself, such as more room below a sink."""
    topology = Topology("defaults")
    topology.bolt("end", Burst, topology.spout("numbers", [1]).shuffle())
    assert said(topology) == []


@pytest.mark.parametrize(
    "option",
    [
        {"message_timeout": 10},
        {"max_spout_pending": None},
        {"ackers": 1},
        {"record_edges": 0},
        {"max_attempts": 2},
    ],
)
def test_what_spark_does_anyway_is_not_worth_a_note(option: dict[str, Any]) -> None:
    """No bound, one ledger; attempts count there, too, and what is held in the end times out."""
    assert said(simple(**option)) == []


def shown(value: object) -> None:
    print(value)


@pytest.mark.parametrize("logic", [print, shown, partial(print, "value:"), lambda value: print(value)])
def test_a_bolt_that_prints(logic: Any) -> None:
    """On the cluster nobody sees it; in the driver everybody does."""
    topology: Any = Topology("printing")
    numbers = topology.spout("numbers", [1])
    topology.bolt("there", logic, numbers.shuffle())
    topology.bolt("here", logic, numbers.global_())
    (sentence,) = said(topology)
    assert sentence == (
        "bolt 'there' prints where its tasks run, which may be on other machines; let one task take its inputs by "
        "global_, and it prints here"
    )


@pytest.mark.parametrize("logic", [HoldUntilFinished, partial(HoldUntilFinished)])
def test_a_bolt_that_finishes_in_a_stream(logic: Any) -> None:
    """It never will; in a batch there is nothing to say, nor of a bolt that has no such method."""
    topology: Any = Topology("finishing")
    numbers = topology.spout("numbers", [1])
    topology.bolt("held", logic, numbers.shuffle())
    topology.bolt("end", ignore, numbers.shuffle())
    assert said(topology, in_epochs=True) == [
        "finish of bolt 'held' is never called, as no stream ends; emit in flush, which ends an epoch"
    ]
    assert said(topology) == []


class Remembers:
    """Keeps what it is given, in one way or another."""

    def __init__(self) -> None:
        self.seen: set[object] = set()

    def see(self, value: object) -> None:
        self.seen.add(value)

    def __call__(self, value: object) -> None:
        self.seen.add(value)


def put(kept: dict[object, None], value: object) -> None:
    kept[value] = None


def closure_over(kept: Any) -> Callable[[object], None]:
    def keep(value: object) -> None:
        kept.add(value)

    return keep


KEEPING: list[tuple[Callable[..., object], str]] = [
    (Remembers().see, "is the method 'see' of a Remembers"),
    (list[object]().append, "is the method 'append' of a list"),
    (closure_over(set()), "is a closure over 'kept', a set"),
    (closure_over(Remembers()), "is a closure over 'kept', a Remembers"),
    (closure_over(set[object]().add), "is a closure over 'kept', a builtin_function_or_method"),
    (partial(put, {}), "is bound to a dict"),
    (partial(closure_over(set())), "is a closure over 'kept', a set"),
    (cache(closure_over(set())), "is a closure over 'kept', a set"),
    (Remembers(), "is a Remembers"),
]


@pytest.mark.parametrize(("logic", "kept"), KEEPING)
def test_a_function_that_keeps_something_in_a_stream(logic: Any, kept: str) -> None:
    """Functions are made anew for each epoch, and what they have kept is gone; in the driver, too, it is not saved."""
    topology: Any = Topology("keeping")
    numbers = topology.spout("numbers", [1])
    topology.bolt("keep", logic, numbers.shuffle())
    topology.bolt("here", logic, numbers.global_())
    assert said(topology, in_epochs=True) == [
        f"bolt {id!r} {kept}, and changes of it are not saved with an epoch; make it a bolt class, whose attributes are"
        for id in ("keep", "here")
    ]


def test_a_function_that_keeps_something_in_a_batch() -> None:
    """Each partition has its own; in the driver it is the one that the program has."""
    topology: Any = Topology("keeping")
    numbers = topology.spout("numbers", [1])
    topology.bolt("keep", list[object]().append, numbers.shuffle())
    topology.bolt("here", list[object]().append, numbers.global_())
    assert said(topology) == [
        (
            "bolt 'keep' is the method 'append' of a list, of which each partition has a copy; make it a bolt class, "
            "and emit in finish what it has gathered"
        )
    ]


class Colour(Enum):
    """Something that does not change."""

    RED = 1


class Point(msgspec.Struct, frozen=True):
    """Something that does not change."""

    x: int


class Empty:
    """Has nothing that could change."""

    def take(self, value: object) -> None:
        """Do nothing with it."""


@pytest.mark.parametrize(
    "logic",
    [
        ignore,
        "".join,
        Empty().take,
        Topology.__name__.join,
        partial(put, ()),
        *map(closure_over, (1, "a", None, (1, 2), Colour.RED, Point(1), Path("a"), ignore, Remembers, print)),
    ],
)
@pytest.mark.parametrize("in_epochs", [True, False])
def test_a_function_that_keeps_nothing_that_changes(logic: Any, *, in_epochs: bool) -> None:
    """There is nothing to say of it, nor of a bolt class."""
    topology: Any = Topology("constant")
    numbers = topology.spout("numbers", [1])
    topology.bolt("constant", logic, numbers.shuffle())
    topology.bolt("class", Burst, numbers.shuffle())
    assert said(topology, in_epochs=in_epochs) == []


def test_every_option_is_thought_of() -> None:
    """A new one has an effect on Spark, or says that it has none."""
    given = {"timeout_restarts_on": "activity"}
    told = {
        each.partition("=")[0] for name in OPTIONS for each in said(simple(), **{name: given.get(name, 7)})
    }
    assert told | HAVE_EFFECT | REFUSED == set(OPTIONS)
    assert not told & (HAVE_EFFECT | REFUSED)
