from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from stormlet.core.groupings import (
    All,
    Custom,
    CustomGrouping,
    Direct,
    Fields,
    Global,
    LocalOrShuffle,
    NoGrouping,
    PartialKey,
    Shuffle,
)
from stormlet.core.schema import schema_of
from stormlet.errors import InvalidTopology, KeyFunctionFailed
from stormlet.model.components import BasicBolt
from stormlet.model.configuration import Configuration, configure
from stormlet.model.description import (
    BoltSpec,
    Description,
    DirectStream,
    Output,
    SpoutSpec,
    Stream,
    StreamId,
    Subscription,
    outputs_of,
)
from stormlet.model.logic import LogicKind, SourceKind

TOPOLOGY = object()


class Word(msgspec.Struct):
    word: str
    count: int


class ToFirst:
    def prepare(self, targets: Sequence[int]) -> None:
        pass

    def choose(self, value: object) -> Sequence[int]:
        return ()


def stream(declared: object = Word, name: str = "default") -> Stream[Any]:
    outputs = outputs_of(declared, schema_of(None))
    return Stream(StreamId("split", name), outputs[name], outputs, TOPOLOGY)


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


# Streams and subscriptions.


def test_a_stream_says_what_it_is() -> None:
    """Its component, its name, and in messages both."""
    assert (stream().component, stream().name) == ("split", "default")
    assert str(stream().id) == "stream 'default' of 'split'"


@pytest.mark.parametrize(
    ("subscribe", "grouping"),
    [
        ("shuffle", Shuffle),
        ("fields", Fields),
        ("partial_key", PartialKey),
        ("all", All),
        ("global_", Global),
        ("local_or_shuffle", LocalOrShuffle),
        ("none", NoGrouping),
    ],
)
def test_every_grouping_has_a_method(subscribe: str, grouping: type) -> None:
    """The subscription names the stream, its topology and the grouping."""
    subscription = getattr(stream(), subscribe)()
    assert type(subscription.grouping) is grouping
    assert subscription.source == StreamId("split", "default")
    assert subscription.topology is TOPOLOGY


def test_a_custom_grouping_is_the_users_own() -> None:
    """The very object that was passed deals the tuples."""
    grouping = ToFirst()
    assert stream().custom(grouping).grouping == Custom(grouping)


def key_of(subscription: Subscription[Any], value: object) -> object:
    assert isinstance(subscription.grouping, Fields | PartialKey)
    assert subscription.grouping.key is not None
    return subscription.grouping.key(value)


@pytest.mark.parametrize("method", ["fields", "partial_key"])
def test_the_key_of_a_grouping(method: str) -> None:
    """Named fields, positions, a function of the value, or the whole value."""
    group = getattr(stream(), method)
    word = Word("cow", 2)
    assert key_of(group("word"), word) == "cow"
    assert key_of(group("count", "word"), word) == (2, "cow")
    assert key_of(group(1), word) == 2
    assert key_of(group(lambda value: value.count + 1), word) == 3
    assert group().grouping.key is None


def test_an_unknown_field_is_refused_with_those_there_are() -> None:
    """When the topology is built, and with the stream it is about."""
    with pytest.raises(
        InvalidTopology,
        match=r"^stream 'default' of 'split': no field 'wrod' in Word, which has 'word', 'count'$",
    ):
        stream().fields("wrod")


def test_two_keys_are_names_not_functions() -> None:
    """A function stands alone: beside a name it is no field."""
    with pytest.raises(InvalidTopology, match="<built-in function len> is no field"):
        stream().fields(len, "word")  # type: ignore[call-overload]


def test_a_key_function_that_raises() -> None:
    """No tuple answers for it; the error names stream, value and cause (law C5)."""
    with pytest.raises(
        KeyFunctionFailed,
        match=r"the key function on stream 'default' of 'split' raised ZeroDivisionError\(.*\) for 0",
    ) as raised:
        key_of(stream(None).fields(lambda value: 1 / value), 0)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_key_function_that_works_is_not_disturbed() -> None:
    """The guard passes on what it gives."""
    assert key_of(stream(None).fields(lambda value: 1 / value), 4) == 0.25


# Several streams of one component.


def test_another_stream_of_the_same_component() -> None:
    """It has its own schema, and leads back to the first."""
    both = stream({"default": Word, "errors": ["text"]})
    errors = both.named("errors")
    assert errors.id == StreamId("split", "errors")
    assert errors.output.schema.fields == ("text",)
    assert errors.named("default").output is both.output
    assert errors.shuffle().source == StreamId("split", "errors")
    assert errors.shuffle().topology is TOPOLOGY


def test_an_undeclared_stream_is_refused_with_those_there_are() -> None:
    """And with how to declare it."""
    with pytest.raises(
        InvalidTopology,
        match=r"'split' declares no stream 'errors', only 'default'; declare it with outputs=\{'errors': ...\}",
    ):
        stream().named("errors")


def test_handles_are_compared_by_identity() -> None:
    """Two handles on one stream are two objects, which hash; nothing asks whether their schemas are equal."""
    assert stream() != stream()
    assert len({stream(), stream()}) == 2


# Direct streams.


def test_a_direct_stream_is_subscribed_directly() -> None:
    """The producer names the receiver."""
    assert stream(DirectStream(Word)).direct().grouping == Direct()


def test_a_stream_that_is_not_direct() -> None:
    """It cannot be subscribed to as if it were; the message says how to declare it."""
    with pytest.raises(
        InvalidTopology, match=r"is not declared direct; declare it with outputs=DirectStream\("
    ):
        stream().direct()


@pytest.mark.parametrize("method", ["shuffle", "fields", "all", "global_", "none", "local_or_shuffle"])
def test_a_direct_stream_has_no_other_grouping(method: str) -> None:
    """Nothing would choose the receiver."""
    with pytest.raises(InvalidTopology, match=r"is declared direct; subscribe to it with \.direct\(\), not"):
        getattr(stream(DirectStream(Word)), method)()


# Outputs.


def test_without_outputs_the_inferred_schema_counts() -> None:
    """One stream, which nothing enforces."""
    inferred = schema_of(Word, enforced=False)
    assert outputs_of(None, inferred) == {"default": Output(inferred)}


def test_declared_outputs_win_over_the_annotation() -> None:
    """One schema is that of the default stream, and it is enforced."""
    outputs = outputs_of(["word", "count"], schema_of(Word, enforced=False))
    assert outputs["default"].schema.fields == ("word", "count")
    assert outputs["default"].schema.enforced
    assert not outputs["default"].direct


def test_outputs_by_stream() -> None:
    """A mapping declares exactly its streams, each with its own schema."""
    outputs = outputs_of(
        {"words": Word, "errors": ["text"], "direct": DirectStream(), "raw": None}, schema_of(None)
    )
    assert [each.schema.fields for each in outputs.values()] == [("word", "count"), ("text",), None, None]
    assert [name for name, each in outputs.items() if each.direct] == ["direct"]
    assert outputs_of({}, schema_of(Word)) == {}


def test_what_cannot_be_an_output() -> None:
    """An example value is no type."""
    with pytest.raises(InvalidTopology, match="outputs=5 is neither a type nor a list of field names"):
        outputs_of({"words": 5}, schema_of(None))


# The whole.


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


@pytest.mark.parametrize("grouping", [5, lambda value: [1]], ids=["number", "function"])
def test_what_is_no_custom_grouping(grouping: object) -> None:
    """It is refused when it is given, not when the first value comes."""
    with pytest.raises(InvalidTopology, match="a custom grouping has methods prepare and choose, unlike"):
        stream().custom(cast("CustomGrouping", grouping))


@pytest.mark.parametrize("wrong", [["word"], ("word",), None, 1.5])
def test_what_is_no_field_name(wrong: object) -> None:
    """A list of names is the likeliest mistake: the message says how they are passed."""
    with pytest.raises(InvalidTopology, match=r"pass names or positions one by one, as in \.fields\('word'"):
        stream().fields(cast("str", wrong))


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


class Whole(BasicBolt[Any, None]):
    """Works on epochs."""

    needs_epochs = True


class AdvisedWhole:
    """A factory of a bolt that works on epochs and knows a way out."""

    needs_epochs = True
    epochs_advice = "use another source"

    def __call__(self) -> Whole:
        return Whole()


@pytest.mark.parametrize(
    ("logic", "advice"), [(Whole, "use a source that gives them"), (AdvisedWhole(), "use another source")]
)
def test_the_refusal_of_a_spout_without_epochs_says_what_to_do(logic: Any, advice: str) -> None:
    """The advice is the component's own, if it has one."""
    with pytest.raises(InvalidTopology, match=f"gives no epochs; {advice}$"):
        describe(spout("s"), replace(bolt("whole", "s"), logic=logic)).validate()


class Epochal(Resuming):
    """A factory of a spout that gives epochs."""

    gives_epochs = True


def test_epochs_need_one_spout_that_gives_them() -> None:
    """What works on epochs is refused below any other spout, and beside a second one."""
    whole, epochal = replace(bolt("whole", "s"), logic=Whole), replace(spout("s"), source=Epochal())
    describe(epochal, whole).validate()
    with pytest.raises(
        InvalidTopology, match="bolt 'whole' writes exactly once, and spout 's' gives no epochs"
    ):
        describe(resuming("s"), whole).validate()
    with pytest.raises(InvalidTopology, match="must have one spout; it has 's', 't': give each"):
        describe(epochal, spout("t"), whole).validate()
