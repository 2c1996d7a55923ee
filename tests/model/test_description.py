from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from stormlet.core.groupings import (
    Shuffle,
)
from stormlet.core.schema import schema_of
from stormlet.errors import InvalidTopology
from stormlet.model.components import BasicBolt
from stormlet.model.configuration import Configuration, configure
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import LogicKind, SourceKind
from stormlet.model.streams import StreamId, Subscription, outputs_of

TOPOLOGY = object()


def spout(id: str, parallelism: int = 1) -> SpoutSpec:
    return SpoutSpec(id, None, SourceKind.FED, parallelism, outputs_of(None, schema_of(None)), {})


def bolt(id: str, *sources: str) -> BoltSpec:
    inputs = [Subscription(StreamId(source, "default"), Shuffle(), TOPOLOGY) for source in sources]
    outputs = outputs_of(None, schema_of(None))
    return BoltSpec(id, print, LogicKind.FUNCTION, 1, outputs, {}, inputs, None, 1, "loop", "fail")


def describe(*components: SpoutSpec | BoltSpec) -> Description:
    spouts = {each.id: each for each in components if isinstance(each, SpoutSpec)}
    bolts = {each.id: each for each in components if isinstance(each, BoltSpec)}
    return Description("words", Configuration(), spouts, bolts)


def test_components_are_spouts_first() -> None:
    """In the order in which they were declared."""
    description = describe(bolt("b", "s"), spout("s"), bolt("a", "b"), spout("t"))
    assert list(description.components) == ["s", "t", "b", "a"]


def test_a_topology_needs_a_spout() -> None:
    """The message says how to add one."""
    with pytest.raises(InvalidTopology, match="topology 'words' does not have any spout; add one with"):
        describe().validate()


def test_a_bolt_needs_an_input() -> None:
    """The message names the bolt."""
    with pytest.raises(InvalidTopology, match="bolt 'b' has no input; subscribe it to a stream"):
        describe(spout("s"), bolt("a", "s"), bolt("b")).validate()


def test_a_topology_that_can_run() -> None:
    """A spout alone is enough, and so are bolts that have inputs."""
    describe(spout("s")).validate()
    describe(spout("s"), bolt("a", "s"), bolt("b", "a")).validate()


def test_components_in_order() -> None:
    """Upstream first, whatever the order of declaration; a cycle stands together (law C2)."""
    description = describe(bolt("d", "c"), bolt("c", "b"), bolt("b", "s", "c"), spout("s"))
    order = description.in_order()
    assert [sorted(group) for group in order] == [["s"], ["b", "c"], ["d"]]
    assert [sorted(group) for group in description.cycles()] == [["b", "c"]]


def test_a_bolt_that_feeds_itself_is_a_cycle() -> None:
    """Its edge to itself must not wait for room (law B6); one that stands alone is none."""
    assert describe(spout("s"), bolt("a", "s", "a"), bolt("b", "a")).cycles() == [["a"]]
    assert describe(spout("s"), bolt("a", "s"), bolt("b", "a", "s")).cycles() == []


class Batches:
    """A factory that says how much should be pending for each task."""

    least_pending = 4000

    def __call__(self) -> None:
        raise NotImplementedError


def sink(id: str, *inputs: str, parallelism: int = 1) -> BoltSpec:
    return replace(bolt(id, *inputs), logic=Batches(), parallelism=parallelism)


def pending(description: Description, **given: Any) -> dict[str, int | None]:
    """The ``max_spout_pending`` of each spout."""
    configuration = configure(description.configuration, given, "here")
    _, components = description.configured(configuration, "here", given)
    return {id: components[id].max_spout_pending for id in description.spouts}


def test_spouts_may_have_as_much_pending_as_the_bolts_below_need() -> None:
    """Those that feed no such bolt keep the default; the tasks of the bolt count (law S3)."""
    description = describe(
        spout("s"), spout("t"), bolt("a", "s"), bolt("b", "t"), sink("c", "a", parallelism=2)
    )
    assert pending(description) == {"s": 8000, "t": 1000}


class Large(Batches):
    """A source that says how much may be pending, whatever the bolts below want."""

    most_pending = 64


def test_a_source_of_large_messages_has_fewer_pending() -> None:
    """What is set on purpose counts more (law S3)."""
    large = replace(spout("s"), source=Large(), kind=SourceKind.FACTORY)
    description = describe(large, spout("t"), bolt("a", "s"), sink("b", "s", "t"))
    assert pending(description) == {"s": 64, "t": 4000}
    assert pending(description, max_spout_pending=500) == {"s": 500, "t": 500}
    set_here = replace(large, options={"max_spout_pending": 100})
    assert pending(describe(set_here, sink("b", "s"))) == {"s": 100}


def test_what_bolts_need_is_found_round_a_cycle() -> None:
    """A cycle is walked once."""
    assert pending(describe(spout("s"), bolt("a", "s", "b"), bolt("b", "a"), sink("c", "b"))) == {"s": 4000}


def test_a_set_pending_is_not_raised() -> None:
    """Neither one of the topology, of the run nor of the spout; unlimited is enough for all."""
    description = describe(spout("s"), sink("a", "s"))
    assert pending(description, max_spout_pending=1000) == {"s": 1000}
    assert pending(description, max_spout_pending=None) == {"s": None}
    assert pending(replace(description, options={"max_spout_pending": 1000})) == {"s": 1000}
    own = replace(description.spouts["s"], options={"max_spout_pending": 5})
    assert pending(replace(description, spouts={"s": own})) == {"s": 5}


def test_a_default_that_suffices_is_kept() -> None:
    """What bolts need is a least, not a most."""
    assert pending(describe(spout("s"), bolt("a", "s"))) == {"s": 1000}


class Resuming:
    """A factory of a spout that goes on after what was acked in another run."""

    resumes = True

    def __call__(self) -> None:
        raise NotImplementedError


class Tally(BasicBolt[Any, None]):
    """Counts on, past its acks."""

    keeps_state = True


def tally() -> Tally:
    return Tally()


class Advised:
    """A factory of a bolt that knows a way out."""

    keeps_state = True
    state_advice = "use another mode"

    def __call__(self) -> Tally:
        return Tally()


def resuming(id: str) -> SpoutSpec:
    return replace(spout(id), source=Resuming())


def test_state_below_a_source_that_resumes_is_refused() -> None:
    """A bolt that keeps state would miss what was acked before, however far below the source it is (law C6)."""
    tally = replace(bolt("tally", "a"), logic=Tally)
    with pytest.raises(
        InvalidTopology, match="bolt 'tally' keeps state, which a run that goes on from the checkpoint"
    ):
        describe(resuming("s"), bolt("a", "s"), tally).validate()
    describe(spout("s"), resuming("t"), bolt("a", "s"), bolt("b", "t"), tally).validate()


class ResumingFile(Resuming):
    """A source that knows which of its options leaves out resuming."""

    state_advice = "leave out bookmark="


def test_the_refusal_of_state_names_the_option_of_the_source() -> None:
    """Only the source knows how another run could begin anew."""
    file = replace(spout("s"), source=ResumingFile())
    with pytest.raises(InvalidTopology, match=r"leave out bookmark=, or keep the state outside the process$"):
        describe(file, replace(bolt("a", "s"), logic=Tally)).validate()


@pytest.mark.parametrize("advised", [Tally, partial(Tally), Advised(), tally])
def test_the_refusal_of_state_says_what_to_do(advised: Any) -> None:
    """The advice is the component's own, if it has one."""
    said = "use another mode" if isinstance(advised, Advised) else "let that spout begin anew"
    with pytest.raises(InvalidTopology, match=said):
        describe(resuming("s"), replace(bolt("a", "s"), logic=advised)).validate()
