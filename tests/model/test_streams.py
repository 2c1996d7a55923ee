from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

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
from stormlet.model.streams import DirectStream, Output, Stream, StreamId, Subscription, outputs_of

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


def test_a_key_function_is_not_async() -> None:
    """Its coroutines would be the keys, each another one, that nobody awaits."""

    async def key(value: object) -> object:
        return value

    with pytest.raises(
        InvalidTopology,
        match=r"^stream 'default' of 'split': the key function <function .*key at .*> is async; a key is there at once",
    ):
        stream().fields(key)


def test_a_key_function_that_raises() -> None:
    """No tuple answers for it; the error names stream, value and cause (law C5)."""
    with pytest.raises(
        KeyFunctionFailed,
        match=r"the key function on stream 'default' of 'split' raised ZeroDivisionError\(.*\) for 0",
    ) as raised:
        key_of(stream(None).fields(lambda value: 1 / value), 0)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_key_function_that_raises_for_a_long_value() -> None:
    """It is one line of the log all the same."""
    with pytest.raises(KeyFunctionFailed) as raised:
        key_of(stream(None).fields(lambda value: 1 / value), "x" * 1_000_000)
    assert len(str(raised.value)) < 500


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


# Refusals.


@pytest.mark.parametrize("grouping", [5, lambda value: [1]], ids=["number", "function"])
def test_what_is_no_custom_grouping(grouping: object) -> None:
    """It is refused when it is given, not when the first value comes."""
    with pytest.raises(InvalidTopology, match="a custom grouping has methods prepare and choose, unlike"):
        stream().custom(cast("CustomGrouping", grouping))


class Prepared:
    """A grouping that would prepare and choose later."""

    async def prepare(self, targets: Sequence[int]) -> None: ...

    def choose(self, value: object) -> Sequence[int]:
        return [0]


class Chosen:
    def prepare(self, targets: Sequence[int]) -> None: ...

    async def choose(self, value: object) -> Sequence[int]:
        return [0]


@pytest.mark.parametrize(("grouping", "method"), [(Prepared(), "prepare"), (Chosen(), "choose")])
def test_a_custom_grouping_that_nobody_awaits(grouping: object, method: str) -> None:
    """It would be prepared never, and choose nothing."""
    with pytest.raises(
        InvalidTopology, match=f"{method} of custom grouping .* is async, and nobody awaits it"
    ):
        stream().custom(cast("CustomGrouping", grouping))


@pytest.mark.parametrize("wrong", [["word"], ("word",), None, 1.5])
def test_what_is_no_field_name(wrong: object) -> None:
    """A list of names is the likeliest mistake: the message says how they are passed."""
    with pytest.raises(InvalidTopology, match=r"pass names or positions one by one, as in \.fields\('word'"):
        stream().fields(cast("str", wrong))
