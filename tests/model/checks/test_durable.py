"""Topologies whose state outlives the process, and what they cannot have (law X8, K4)."""

from __future__ import annotations

from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    InvalidTopology,
    KeyedBolt,
    Spout,
    SpoutCollector,
    Topology,
    Tuple,
    Value,
)
from stormlet.connect import kestrel
from stormlet.model.checks.durable import check_durable, check_epochs, check_volatile


class Source(Spout[int]):
    """Goes on where the state ends."""

    resumable = True

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        pass


class Forgetful(Source):
    """Begins anew each time."""

    resumable = False


class Checkpointed(Source):
    """Has a position of its own."""

    resumes = True


class Cutting(Checkpointed):
    """Cuts epochs itself."""

    cuts_epochs = True


class Unacked(Forgetful):
    """Does not know what to tell its broker."""

    redelivers = True


class Undecided(Source):
    """Says both."""

    redelivers = True

    def ack(self, message_id: object) -> None:
        pass


class Plain(BasicBolt[int, None]):
    """Keeps nothing."""

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        pass


class Tally(Plain):
    """Keeps a count."""

    keeps_state = True


def topology(source: Any, bolt: type[BasicBolt[int, None]] = Plain) -> Topology:
    made = Topology("durable")
    made.bolt("bolt", bolt, made.spout("source", source).shuffle())
    return made


def test_a_source_that_can_go_on_is_taken() -> None:
    """Whatever the class below keeps outside of its state is its own affair."""
    check_durable(topology(Source).describe())


def test_a_spout_has_one_partition_unless_it_says_more() -> None:
    """Its name is None."""
    assert Source().partition(("any", 7)) is None


def test_a_spout_goes_on_by_the_id_unless_it_says_more() -> None:
    """That is kept of the last message."""
    assert Source().position_of(("any", 7)) == ("any", 7)


@pytest.mark.parametrize(
    ("source", "bolt", "problem"),
    [
        (
            Forgetful,
            Plain,
            "spout 'source' cannot go on where the state ends; read context.resume in its open",
        ),
        (
            lambda: iter(range(9)),
            Plain,
            "spout 'source' cannot go on where the state ends; nothing says how the spouts that <function",
        ),
        (
            kestrel.Queue("kestrel://here", "lines"),
            Plain,
            "spout 'source' cannot go on where the state ends; it goes on by what its broker was told",
        ),
        (
            Checkpointed,
            Plain,
            "spout 'source' has a checkpoint of its own, and state= keeps the positions of all",
        ),
        (Unacked, Plain, "spout 'source' redelivers, and has no ack, by which a broker would be told"),
        (Undecided, Plain, "spout 'source' says resumable and redelivers, and goes on in one way"),
        (Source, Tally, "bolt 'bolt' keeps state that it does not declare, which the next run would miss"),
    ],
)
def test_what_the_next_run_would_miss_is_refused(
    source: Any, bolt: type[BasicBolt[int, None]], problem: str
) -> None:
    """In a sentence that names it, and the way out."""
    with pytest.raises(InvalidTopology) as refused:
        check_durable(topology(source, bolt).describe())
    assert str(refused.value).startswith(problem)


def test_a_source_that_cuts_epochs_may_have_a_position_of_its_own() -> None:
    """The state has it, too."""
    check_durable(topology(Cutting).describe())


class Whole(Plain):
    """Writes epochs exactly once."""

    needs_epochs = True


class Advised(Whole):
    """Knows its ways out."""

    epochs_advice = "use another source"


@pytest.mark.parametrize(
    ("bolt", "advice"), [(Whole, "set state= on the topology"), (Advised, "use another source")]
)
def test_a_bolt_that_writes_exactly_once_needs_epochs_that_last(bolt: type[Whole], advice: str) -> None:
    """Those of a state, or of the only source, if it cuts them; the advice is the bolt's own, if it has one."""
    check_durable(topology(Source, bolt).describe())
    check_epochs(topology(Cutting, bolt).describe())
    with pytest.raises(
        InvalidTopology, match=f"epochs of spout 'source' would be others in the next run; {advice}$"
    ):
        check_epochs(topology(Source, bolt).describe())
    two = topology(Cutting, bolt)
    two.spout("more", Source)
    with pytest.raises(InvalidTopology, match="the epochs of spouts 'source' and 'more' would be others"):
        check_epochs(two.describe())


class Count(KeyedBolt[int, int, None]):
    """Has state."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        pass


def test_one_source_cuts_the_epochs() -> None:
    """Where there are none, each goes its own way."""
    two = topology(Cutting)
    more = two.spout("more", Cutting)
    check_volatile(two.describe())
    check_durable(two.describe())
    two.bolt("count", Count, more.fields())
    for check in (check_volatile, check_durable):
        with pytest.raises(InvalidTopology, match="spouts 'source' and 'more' both cut the epochs"):
            check(two.describe())
