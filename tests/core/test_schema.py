from __future__ import annotations

import dataclasses
import typing
from collections import OrderedDict
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from dataclasses import dataclass
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)

import msgspec
import pytest

from stormlet.core.schema import Schema, schema_from_annotation, schema_of
from stormlet.errors import InvalidTopology

if TYPE_CHECKING:
    from decimal import Decimal as Unknown

T = TypeVar("T")


class Total(msgspec.Struct):
    word: str
    count: int


class Subtotal(Total):
    part: int = 0


@dataclass
class Data:
    word: str
    count: int
    start: dataclasses.InitVar[int] = 0
    limit: typing.ClassVar[int] = 9


class Pair(NamedTuple):
    word: str
    count: int  # type: ignore[assignment]  # a field wins over the method of tuples


class Typed(TypedDict):
    word: str
    count: NotRequired[int]


class Partial(TypedDict, total=False):
    word: Required[str]
    count: int


class Inherited(Typed):
    extra: bool


class Puzzling(TypedDict):
    word: str
    count: Unknown


class Box(msgspec.Struct, Generic[T]):
    content: T


class Bag(TypedDict, Generic[T]):
    content: T


UserId = NewType("UserId", int)
Checked = NewType("Checked", Pair)


class To(Generic[T]):
    """Stands for stormlet.model.components.To, which is recognised by its name."""

    __module__ = "stormlet.model.components"


RECORDS: list[tuple[type, Callable[..., object]]] = [
    (Total, Total),
    (Data, Data),
    (Pair, Pair),
    (Typed, Typed),
]
records = pytest.mark.parametrize(("record", "make"), RECORDS)


@pytest.mark.parametrize(
    ("declared", "kind", "name", "fields"),
    [
        (Total, "record", "Total", ("word", "count")),
        (Subtotal, "record", "Subtotal", ("word", "count", "part")),
        (Data, "record", "Data", ("word", "count")),
        (Pair, "record", "Pair", ("word", "count")),
        (Typed, "dict", "Typed", ("word", "count")),
        (Inherited, "dict", "Inherited", ("word", "count", "extra")),
        (Puzzling, "dict", "Puzzling", ("word", "count")),
        (Box[int], "record", "Box", ("content",)),
        (Bag[int], "dict", "Bag", ("content",)),
        (Annotated[Total, "why"], "record", "Total", ("word", "count")),
        (Checked, "record", "Pair", ("word", "count")),
        (dict, "dict", "dict", None),
        (dict[str, int], "dict", "dict", None),
        (OrderedDict, "dict", "OrderedDict", None),
        (["word", "count"], "fields", "(word, count)", ("word", "count")),
        (("word",), "fields", "(word)", ("word",)),
        ([], "fields", "()", ()),
        (None, "opaque", "object", None),
        (object, "opaque", "object", None),
        (str, "opaque", "str", None),
        (tuple, "opaque", "tuple", None),
        (list[int], "opaque", "list[int]", None),
        (int | str, "opaque", "int | str", None),
        (Total | Data, "opaque", f"{__name__}.Total | {__name__}.Data", None),
        (UserId, "opaque", "UserId", None),
        (Any, "opaque", str(getattr(Any, "__name__", Any)), None),
    ],
)
def test_a_declaration_says_what_is_known(
    declared: object, kind: str, name: str, fields: tuple[str, ...] | None
) -> None:
    """Records and field lists give their fields in order and are enforced; anything else is opaque and is not."""
    schema = schema_of(declared)
    assert (schema.kind, schema.name, schema.fields) == (kind, name, fields)
    assert schema.enforced is (kind != "opaque")
    assert schema_of(declared, enforced=False).enforced is False
    assert schema == schema_of(declared)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (["word", "count", "word"], "duplicate field 'word'"),
        (("a", "b", "b", "a"), "duplicate field 'b'"),
        (["word", 1], "field names are strings, not 1"),
        ((Total,), f"field names are strings, not {Total!r}"),
        ("word", "outputs='word' is neither a type nor a list of field names"),
        (3, "outputs=3 is neither a type nor a list of field names"),
        (Total("a", 1), "outputs=Total(word='a', count=1) is neither a type nor a list of field names"),
    ],
)
def test_a_wrong_declaration_is_refused(declared: object, message: str) -> None:
    """Names that repeat or are no strings, a lone string, and what is no type at all are errors that quote them."""
    with pytest.raises(InvalidTopology) as caught:
        schema_of(declared)
    assert str(caught.value) == message


@records
def test_readers_give_fields_of_records(record: type, make: Callable[..., object]) -> None:
    """One name reads a value, several a tuple in the order asked, and a position counts the declared fields."""
    schema = schema_of(record)
    value = make(word="cow", count=3)
    assert schema.reader(["word"])(value) == "cow"
    assert schema.reader(["count", "word"])(value) == (3, "cow")
    assert schema.reader([0])(value) == "cow"
    assert schema.reader([-1, "word"])(value) == (3, "cow")
    assert schema.reader(())(value) is value


@pytest.mark.parametrize("value", [("cow", 3), ["cow", 3], Pair("cow", 3)])
def test_readers_give_positions_of_field_lists(value: object) -> None:
    """A declared name stands for its position, in tuples and lists alike."""
    schema = schema_of(["word", "count"])
    assert schema.reader(["count"])(value) == 3
    assert schema.reader([0])(value) == "cow"
    assert schema.reader(["count", 0, -1])(value) == (3, "cow", 3)
    assert schema.reader([])(value) is value


def test_readers_of_opaque_values_know_positions_only() -> None:
    """Without known fields a position indexes the value itself."""
    schema = schema_of(None)
    assert schema.reader([1])("cow") == "o"
    assert schema.reader([-1, 0])((7, 8, 9)) == (9, 7)
    assert schema.reader([])("cow") == "cow"


def test_readers_of_plain_dicts_take_any_key() -> None:
    """The keys of a plain dict are known to its user alone, so names are taken on trust."""
    schema = schema_of(dict)
    assert schema.reader(["word"])({"word": "cow"}) == "cow"
    assert schema.reader(["b", 1])({1: "one", "b": "two"}) == ("two", "one")
    assert schema.get({"word": "cow"}, "word") == "cow"


@pytest.mark.parametrize("declared", [Total, Data, Pair, Typed, ["word", "count"]])
@pytest.mark.parametrize("name", ["wrod", "limit", "index", "__class__", 2, -3])
def test_an_unknown_field_is_refused(declared: object, name: str | int) -> None:
    """The message of a reader, and of a read, lists the fields that exist; methods and class variables are none."""
    schema = schema_of(declared)
    message = f"no field {name!r} in {schema.name}, which has 'word', 'count'"
    with pytest.raises(InvalidTopology) as refused:
        schema.reader(["word", name])
    assert str(refused.value) == message
    with pytest.raises(KeyError) as missing:
        schema.get(Pair("cow", 3), name)
    assert missing.value.args == (message,)


def test_a_record_without_fields_says_so() -> None:
    """An empty field list has nothing to read."""
    with pytest.raises(InvalidTopology, match=r"^no field 'word' in \(\), which has no fields$"):
        schema_of([]).reader(["word"])


def test_a_name_on_an_opaque_stream_is_refused_with_the_way_out() -> None:
    """The message names the type and the three ways to give a stream fields or a key."""
    with pytest.raises(InvalidTopology) as caught:
        schema_of(str).reader(["word"])
    assert str(caught.value) == (
        "no field 'word': the stream's values (str) have no known fields; annotate the producing function with a "
        "record type, or declare outputs=RecordType or outputs=['word', ...], or group by a key function"
    )


@records
def test_get_reads_a_field_of_a_record(record: type, make: Callable[..., object]) -> None:
    """``tup["field"]`` works by name and by position."""
    schema = schema_of(record)
    value = make(word="cow", count=3)
    assert schema.get(value, "word") == "cow"
    assert schema.get(value, "count") == 3
    assert schema.get(value, 1) == schema.get(value, -1) == 3


def test_get_reads_a_position_of_a_field_list() -> None:
    """``tup["field"]`` finds the declared position."""
    schema = schema_of(["word", "count"])
    assert schema.get(("cow", 3), "count") == 3
    assert schema.get(["cow", 3], 0) == "cow"


def test_get_reads_opaque_mappings_and_sequences() -> None:
    """Without known fields only a mapping's own key and a sequence's own index can be read."""
    schema = schema_of(None)
    assert schema.get({"word": "cow"}, "word") == "cow"
    assert schema.get(MappingProxyType({"word": "cow"}), "word") == "cow"
    assert schema.get({7: "cow"}, 7) == "cow"
    assert schema.get(("cow", 3), 1) == 3
    with pytest.raises(KeyError, match=r"^'wrod'$"):
        schema.get({"word": "cow"}, "wrod")


@pytest.mark.parametrize(
    ("value", "name"), [(Total("cow", 3), "word"), ("cow", "word"), (3, 0), (Total("cow", 3), 0)]
)
def test_get_on_another_opaque_value_says_the_way_out(value: object, name: str | int) -> None:
    """A value of which nothing is known cannot be read by name, and the message says what to declare."""
    with pytest.raises(TypeError) as caught:
        schema_of(None).get(value, name)
    start = f"{type(value).__name__} value has no field {name!r}: the stream's values (object) have no known fields; "
    assert str(caught.value).startswith(
        start + "annotate the producing function with a record type, or declare "
    )


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Total, Total("cow", 3)),
        (Total, Subtotal("cow", 3)),
        (Box[int], Box("not checked")),
        (Data, Data("cow", 3)),
        (Pair, Pair("cow", 3)),
        (Typed, {"word": "cow", "count": 3}),
        (Typed, {"word": "cow"}),
        (Typed, {"word": "cow", "more": 1}),
        (Partial, {"word": "cow"}),
        (Puzzling, {"word": "cow", "count": 3}),
        (dict, {}),
        (["word", "count"], ("cow", 3)),
        (["word", "count"], ["cow", 3]),
        (["word", "count"], Pair("cow", 3)),
        ([], ()),
        (None, object()),
        (str, 3),
    ],
)
def test_what_fits(declared: object, value: object) -> None:
    """Instances, dicts with the required keys, and sequences of the right length fit; opaque takes everything."""
    assert schema_of(declared).misfit(value) is None


@pytest.mark.parametrize(
    ("declared", "value", "why"),
    [
        (Total, Data("cow", 3), "Expected Total but got Data"),
        (Subtotal, Total("cow", 3), "Expected Subtotal but got Total"),
        (Data, {"word": "cow", "count": 3}, "Expected Data but got dict"),
        (Pair, ("cow", 3), "Expected Pair but got tuple"),
        (Typed, Total("cow", 3), "Expected Typed but got Total"),
        (Typed, {"count": 3}, "Expected Typed but got a dict without 'word'"),
        (Inherited, {}, "Expected Inherited but got a dict without 'word', 'extra'"),
        (Partial, {"count": 3}, "Expected Partial but got a dict without 'word'"),
        (Puzzling, {"word": "cow"}, "Expected Puzzling but got a dict without 'count'"),
        (dict, [], "Expected dict but got list"),
        (["word", "count"], ("cow",), "Expected 2 fields but got 1"),
        (["word", "count"], ["cow", 3, 4], "Expected 2 fields but got 3"),
        (["word", "count"], "ab", "Expected a tuple of (word, count) but got str"),
        (["word", "count"], {"word": 1, "count": 2}, "Expected a tuple of (word, count) but got dict"),
        ([], (1,), "Expected 0 fields but got 1"),
    ],
)
def test_what_does_not_fit_is_explained(declared: object, value: object, why: str) -> None:
    """The reason names what was declared and what came."""
    assert schema_of(declared).misfit(value) == why


def test_a_required_key_may_hide_in_a_postponed_annotation() -> None:
    """This module postpones its annotations, and Python then takes NotRequired keys for required ones; we do not."""
    assert schema_of(Typed).misfit({"word": "cow"}) is None
    assert schema_of(Partial).misfit({}) is not None


@pytest.mark.parametrize(
    "annotation",
    [
        Total,
        Total | None,
        typing.Optional[Total],  # noqa: UP045 - the old spelling
        None | Total | To[int],
        typing.Union[Total, To[Any], To[str]],  # noqa: UP007 - the old spelling
        Annotated[Total, "why"],
        Annotated[Total | None, "why"],
        Iterator[Total],
        typing.Iterator[Total],
        Iterable[Total],
        Generator[Total, int, str],
        AsyncIterator[Total],
        AsyncIterable[Total],
        AsyncGenerator[Total, None],
        Iterator[Total | None],
        Iterator[Total] | None,
        Iterator[Total | To[str]],
        Iterator[Annotated[Total, "why"]],
        Awaitable[Total],
        Awaitable[Total | None],
        Coroutine[int, str, Total],
        Coroutine[Any, Any, Iterator[Total] | None],
        Awaitable[Awaitable[AsyncIterator[Total]]],
        To[int] | Awaitable[Iterator[Total]],
    ],
)
def test_an_annotation_gives_what_the_function_produces(annotation: object) -> None:
    """B1: awaitables, iterators, None and To[...] around a record type are looked through; nothing is enforced."""
    assert schema_from_annotation(annotation) == schema_of(Total, enforced=False)


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (None, "object"),
        (type(None), "object"),
        (To, "object"),
        (To[int], "object"),
        (To[int] | None, "object"),
        (Iterator[None], "object"),
        (Iterator[To[int]], "object"),
        (object, "object"),
        (str, "str"),
        (Iterator[str], "str"),
        (str | None, "str"),
        (list[Total], f"list[{__name__}.Total]"),
        (Iterator[Iterator[Total]], f"collections.abc.Iterator[{__name__}.Total]"),
        (Iterator[Awaitable[Total]], f"collections.abc.Awaitable[{__name__}.Total]"),
        (Iterator, "Iterator"),
        (Awaitable, "Awaitable"),
        (Total | Pair, f"{__name__}.Total | {__name__}.Pair"),
        (Total | Pair | None, f"{__name__}.Total | {__name__}.Pair | None"),
        (Iterator[Total | Pair], f"{__name__}.Total | {__name__}.Pair"),
        (T, "~T"),
        (["word"], "['word']"),
        ("Total", "Total"),
    ],
)
def test_an_annotation_without_one_record_type_is_opaque(annotation: object, name: str) -> None:
    """Nothing, several types, values that are containers, and what is no type at all have no fields, and no errors."""
    schema = schema_from_annotation(annotation)
    assert (schema.kind, schema.name, schema.fields, schema.enforced) == ("opaque", name, None, False)


def test_only_the_to_of_stormlet_is_ignored() -> None:
    """A record of the user's that is called To is a record."""
    mine = msgspec.defstruct("To", [("address", str)])
    assert schema_from_annotation(Iterator[mine]).fields == ("address",)  # type: ignore[valid-type]


def test_schemas_do_not_change() -> None:
    """A schema is part of the description: frozen, and usable as a key."""
    schema: Schema = schema_of(Total)
    assert len({schema, schema_of(Total), schema_of(Total, enforced=False)}) == 2
    with pytest.raises(AttributeError):
        schema.name = "other"  # type: ignore[misc]
