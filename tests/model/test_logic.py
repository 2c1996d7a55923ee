from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec
import pytest

from stormlet.core.tuples import Tuple
from stormlet.errors import InvalidTopology
from stormlet.model.components import (
    BasicBolt,
    BatchBolt,
    Bolt,
    BoltBase,
    Collector,
    Spout,
    SpoutCollector,
    TaskContext,
    To,
)
from stormlet.model.logic import (
    LogicKind,
    SourceKind,
    check_bolt,
    check_code,
    check_spout,
    component_class,
    inferred_schema,
    logic_kind,
    source_kind,
    takes_context,
)

if TYPE_CHECKING:
    import asyncio
    from decimal import Decimal as Unknown

T = TypeVar("T")
U = TypeVar("U")


def without_address(thing: object) -> str:
    """What it is called in every run."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(thing))


class Line(msgspec.Struct):
    text: str


class Word(msgspec.Struct):
    word: str


class Lines(Spout[Line]):
    def __init__(self, path: str = "", limit: int = 9) -> None:
        self.path = path


class Strict(Spout[Line]):
    def __init__(self, path: str) -> None:
        self.path = path


class Split(BasicBolt[Line, Word]):
    def __init__(self, separator: str = " ") -> None:
        self.separator = separator

    def execute(self, tup: Tuple[Line], out: Collector[Word]) -> None: ...


class Needy(Bolt[Line, Word]):
    def __init__(self, separator: str) -> None:
        self.separator = separator


class AnySpout(Spout[T]):
    pass


class Swapped(BasicBolt[U, Word], Generic[U]):
    pass


class SwappedLine(Swapped[Line]):
    pass


class Passed(Bolt[T, U]):
    pass


class PassedOn(Passed[Line, T]):
    pass


class Ended(PassedOn[Word]):
    pass


class Mixin:
    pass


class Mixed(Mixin, Split):
    pass


class Bare(Bolt):  # type: ignore[type-arg]
    pass


def numbers() -> Iterator[int]:
    yield 1


def limited(limit: int = 3) -> Iterator[int]:
    yield from range(limit)


def shared(context: TaskContext) -> Iterator[Word]:
    yield Word(str(context.task))


def shared_limited(context: TaskContext, limit: int = 3) -> Iterator[Word]:
    yield Word("")


def greedy(context: TaskContext, limit: int) -> Iterator[int]:
    yield limit


def keyworded(*, limit: int) -> Iterator[int]:
    yield limit


async def later() -> AsyncIterator[Word]:
    yield Word("")


def make_needy(separator: str = ",", *rest: str, more: int = 0) -> Needy:
    return Needy(separator)


def make_strict(path: str) -> Strict:
    return Strict(path)


def make_lines() -> Lines:
    return Lines()


def make_any_lines() -> AnySpout[Line]:
    return AnySpout()


def make_lines_with(limit: int = 3, *, path: str = "") -> Lines:
    return Lines(path, limit)


def make_split() -> Split:
    return Split()


def upper(value: Line) -> Word:
    return Word(value.text.upper())


def both(value: Line, other: Line) -> Word:
    return Word(value.text + other.text)


class Shout:
    def __call__(self, value: Line) -> Word:
        return Word(value.text)

    def method(self, value: Line) -> Iterator[Word | To[Line]]:
        yield Word(value.text)


class AsyncLines:
    def __aiter__(self) -> AsyncLines:
        return self


# Sources of spouts.


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (None, SourceKind.FED),
        (Lines, SourceKind.FACTORY),
        (AnySpout[int], SourceKind.FACTORY),
        (partial(Lines, "file"), SourceKind.FACTORY),
        (partial(Strict, path="file"), SourceKind.FACTORY),
        (make_lines, SourceKind.FACTORY),
        (make_lines_with, SourceKind.FACTORY),
        (lambda: Strict("file"), SourceKind.FACTORY),
        (numbers, SourceKind.GENERATOR),
        (limited, SourceKind.GENERATOR),
        (shared, SourceKind.GENERATOR),
        (shared_limited, SourceKind.GENERATOR),
        (later, SourceKind.GENERATOR),
        (partial(greedy, limit=3), SourceKind.GENERATOR),
        (partial(keyworded, limit=3), SourceKind.GENERATOR),
        ([1, 2], SourceKind.ITERABLE),
        (range(3), SourceKind.ITERABLE),
        (numbers(), SourceKind.ITERABLE),
        (AsyncLines(), SourceKind.ITERABLE),
        (dict, None),
        (int, None),
    ],
    ids=without_address,
)
def test_the_kinds_of_sources(source: object, kind: SourceKind | None) -> None:
    """What a spout can be made of; an arbitrary class is nothing of the kind."""
    if kind is None:
        with pytest.raises(InvalidTopology, match="does not derive from Spout"):
            source_kind("lines", source)
    else:
        assert source_kind("lines", source) is kind


def test_a_factory_that_python_cannot_tell_about() -> None:
    """A builtin without a signature has the benefit of the doubt; what it makes is looked at when it starts."""
    with pytest.raises(ValueError, match="no signature found"):
        signature(max)
    assert source_kind("lines", max) is SourceKind.FACTORY


def test_an_instance_of_a_spout_is_refused() -> None:
    """Tasks would share it; the message shows the way out (law S8)."""
    with pytest.raises(
        InvalidTopology,
        match=r"spout 'lines': Lines object given, .* pass the class Lines, or .* functools.partial\(Lines, ...\)",
    ):
        source_kind("lines", Lines())


@pytest.mark.parametrize("source", [5, object(), len, Shout(), lambda value: value], ids=without_address)
def test_what_is_no_source(source: object) -> None:
    """The message names the component and what may be passed."""
    with pytest.raises(
        InvalidTopology, match=r"spout 'lines': .* is no source; pass a Spout class or factory"
    ):
        source_kind("lines", source)


@pytest.mark.parametrize("source", [Strict, partial(Strict)], ids=without_address)
def test_a_spout_that_cannot_be_made(source: object) -> None:
    """A class that wants arguments is refused when the topology is built, not when it starts."""
    with pytest.raises(
        InvalidTopology, match=r"spout 'lines': Strict needs arguments; .* functools.partial\(Strict, ...\)"
    ):
        source_kind("lines", source)


@pytest.mark.parametrize("source", [greedy, keyworded])
def test_a_generator_that_cannot_be_called(source: object) -> None:
    """Nobody but its author knows what to pass to it."""
    with pytest.raises(InvalidTopology, match=r"spout 'lines': .* wants more than the task context"):
        source_kind("lines", source)


@pytest.mark.parametrize(
    ("source", "takes"),
    [
        (numbers, False),
        (limited, False),
        (partial(shared, cast("TaskContext", None)), False),
        (later, False),
        (shared, True),
        (shared_limited, True),
        (partial(greedy, limit=3), True),
        (lambda *rest: iter(rest), False),
    ],
    ids=without_address,
)
def test_which_generators_take_the_context(source: object, takes: bool) -> None:
    """Those with a parameter that has no default: any other is the function's own affair (law S8)."""
    assert takes_context(source) is takes


# Logic of bolts.


@pytest.mark.parametrize(
    ("logic", "kind"),
    [
        (Split, LogicKind.FACTORY),
        (Passed[Line, Word], LogicKind.FACTORY),
        (partial(Split, ","), LogicKind.FACTORY),
        (partial(Needy, separator=","), LogicKind.FACTORY),
        (make_split, LogicKind.FACTORY),
        (lambda: Needy(","), LogicKind.FACTORY),
        (upper, LogicKind.FUNCTION),
        (partial(both, Line("")), LogicKind.FUNCTION),
        (Shout(), LogicKind.FUNCTION),
        (Shout().method, LogicKind.FUNCTION),
        (str.upper, LogicKind.FUNCTION),
        (len, LogicKind.FUNCTION),
        (int, LogicKind.FUNCTION),
        (partial(int, base=2), LogicKind.FUNCTION),
        (lambda value: value, LogicKind.FUNCTION),
        (lambda *values: values, LogicKind.FUNCTION),
        (dict[str, int], LogicKind.FUNCTION),
        (Word, LogicKind.FUNCTION),
    ],
    ids=without_address,
)
def test_the_kinds_of_logic(logic: object, kind: LogicKind) -> None:
    """A bolt class, or what is called without a value, makes instances; anything else gets the value."""
    assert logic_kind("split", logic) is kind


@pytest.mark.parametrize("logic", [Split(), BatchBolt[int, int]()])
def test_an_instance_of_a_bolt_is_refused(logic: object) -> None:
    """Tasks would share it (law S8)."""
    name = type(logic).__name__
    with pytest.raises(
        InvalidTopology, match=rf"bolt 'split': {name} object given, .* pass the class {name}, or"
    ):
        logic_kind("split", logic)


@pytest.mark.parametrize("logic", [Lines, partial(Lines, "file")])
def test_a_spout_is_no_bolt(logic: object) -> None:
    """The message says where it belongs."""
    with pytest.raises(InvalidTopology, match=r"bolt 'split': Lines is a Spout; add it with topology.spout"):
        logic_kind("split", logic)


@pytest.mark.parametrize("logic", [5, "split", None])
def test_what_cannot_be_called(logic: object) -> None:
    """The message says what may be passed."""
    with pytest.raises(
        InvalidTopology, match=r"bolt 'split': .* is not callable; pass a function of the value"
    ):
        logic_kind("split", logic)


def test_a_bolt_that_cannot_be_made() -> None:
    """A class that wants arguments is refused when the topology is built, not when it starts."""
    with pytest.raises(
        InvalidTopology, match=r"bolt 'split': Needy needs arguments; .* functools.partial\(Needy, ...\)"
    ):
        logic_kind("split", Needy)


@pytest.mark.parametrize("factory", [make_needy, partial(make_needy, "x", more=1), make_strict])
def test_a_factory_with_a_parameter(factory: Any) -> None:
    """What is annotated to make a bolt or a spout is no function of the value; without an annotation, nobody knows."""
    with pytest.raises(
        InvalidTopology, match=r"bolt 'split': .* annotated to return (Needy|Strict), .*partial"
    ):
        logic_kind("split", factory)
    assert logic_kind("split", lambda separator=" ": Needy(separator)) is LogicKind.FUNCTION


# Code that cannot run as it is meant to.


class Yielding(BasicBolt[Any, Any]):
    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> Any:
        yield tup.value


class AsyncYielding(Bolt[Any, Any]):
    async def execute(self, tup: Tuple[Any], out: Collector[Any]) -> Any:
        yield tup.value


class YieldingBatch(BatchBolt[Any, Any]):
    def execute_batch(self, tups: object, out: Collector[Any]) -> Any:
        yield tups


class AsyncSplit(BasicBolt[Any, Any]):
    async def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        pass


class AsyncBatch(BatchBolt[Any, Any]):
    async def execute_batch(self, tups: object, out: Collector[Any]) -> None:
        pass


async def wait(value: int) -> int:
    return value


class Nothing(Bolt[str, str]):
    """Has no execute."""


class BatchWithExecute(BatchBolt[str, str]):
    """Mistakes what to define."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None: ...

    def execute_batch(self, tups: Sequence[Tuple[str]], out: Collector[str]) -> None: ...


class Silent(Spout[str]):
    """Has no next_tuple."""


class YieldingSpout(Spout[str]):
    """Mistakes a method for a generator."""

    def next_tuple(self, out: SpoutCollector[str]) -> Any:
        yield "x"


def check(where: str, logic: object, executor: str) -> None:
    """What the builder does with a class or function, and the start with an instance."""
    if isinstance(logic, BoltBase):
        check_bolt(where, logic, executor)
    else:
        check_code(where, logic, executor)


@pytest.mark.parametrize(
    ("logic", "method"),
    [
        (Yielding, "Yielding.execute"),
        (Yielding(), "Yielding.execute"),
        (AsyncYielding, "AsyncYielding.execute"),
        (YieldingBatch, "YieldingBatch.execute_batch"),
    ],
)
def test_an_execute_that_yields(logic: object, method: str) -> None:
    """Calling it would run nothing of it; only functions may be generators (law B1)."""
    with pytest.raises(
        InvalidTopology, match=rf"bolt 'x': {method} yields; emit with out.emit\(...\) instead"
    ):
        check("bolt 'x'", logic, "loop")


@pytest.mark.parametrize("logic", [AsyncSplit, AsyncBatch(), wait, later], ids=without_address)
def test_asynchronous_code_in_threads(logic: object) -> None:
    """A thread has no loop to await on (law B9); on the loop it is fine."""
    with pytest.raises(
        InvalidTopology, match=r"bolt 'x' is asynchronous .* use concurrency= on the loop instead"
    ):
        check("bolt 'x'", logic, "thread")
    check("bolt 'x'", logic, "loop")


@pytest.mark.parametrize("executor", ["loop", "thread"])
@pytest.mark.parametrize("logic", [Split, Split(), upper, numbers, len], ids=without_address)
def test_code_that_runs_anywhere(logic: object, executor: str) -> None:
    """Plain methods, functions and generator functions."""
    check("bolt 'x'", logic, executor)


def test_a_bolt_without_execute() -> None:
    """What every input would fail on is refused before there is one."""
    with pytest.raises(InvalidTopology, match="bolt 'x': Nothing defines no execute"):
        check_code("bolt 'x'", Nothing, "loop")


def test_a_batch_bolt_that_defines_execute() -> None:
    """It would never be called, or not as it expects."""
    with pytest.raises(InvalidTopology, match="define execute_batch instead of execute"):
        check_code("bolt 'x'", BatchWithExecute, "loop")


def test_a_spout_without_next_tuple() -> None:
    """A spout class must say where its tuples come from."""
    with pytest.raises(InvalidTopology, match="spout 'x': Silent defines no next_tuple"):
        check_code("spout 'x'", Silent, "loop")


def test_a_next_tuple_that_yields() -> None:
    """Calling it would run nothing of it; only functions may be generators."""
    with pytest.raises(InvalidTopology, match=r"spout 'x': YieldingSpout\.next_tuple yields"):
        check_spout("spout 'x'", YieldingSpout())


@pytest.mark.parametrize("source", ["words.txt", b"abc"])
def test_text_is_no_source(source: object) -> None:
    """It would be yielded character by character, which nobody wants."""
    with pytest.raises(InvalidTopology, match="would yield its characters one by one"):
        source_kind("x", source)


def test_the_annotations_of_data_are_not_looked_for() -> None:
    """A list of a million records as a source is not looked into."""
    assert inferred_schema([object()]).fields is None


# What annotations promise.


def nothing(value: Line) -> None: ...


def misnamed(value: Line) -> Unknown: ...


def half_imported(value: Line) -> asyncio.Missing: ...  # type: ignore[name-defined]


def prose(value: Line): ...  # noqa: ANN201


prose.__annotations__["return"] = "one word for each line"


def broken(value: Line): ...  # noqa: ANN201


broken.__annotations__["return"] = "int.missing"


@pytest.mark.parametrize(
    ("logic", "fields"),
    [
        (upper, ("word",)),
        (partial(both, Line("")), ("word",)),
        (shared, ("word",)),
        (later, ("word",)),
        (Shout().method, ("word",)),
        (Split, ("word",)),
        (Mixed, ("word",)),
        (partial(Split, ","), ("word",)),
        (make_split, ("word",)),
        (Lines, ("text",)),
        (make_lines, ("text",)),
        (make_any_lines, ("text",)),
        (AnySpout[Line], ("text",)),
        (Passed[Line, Word], ("word",)),
        (Ended, ("word",)),
        (PassedOn[Line], ("text",)),
        (Swapped, ("word",)),
        (SwappedLine, ("word",)),
        (Swapped[Line], ("word",)),
        (numbers, None),
        (nothing, None),
        (misnamed, None),
        (half_imported, None),
        (prose, None),
        (broken, None),
        (lambda value: value, None),
        (len, None),
        (int, None),
        (Word, None),
        (Shout(), None),
        (Bare, None),
        (Passed, None),
        (AnySpout, None),
        (BoltBase, None),
        (None, None),
        ([1, 2], None),
    ],
    ids=without_address,
)
def test_the_schema_that_annotations_promise(logic: object, fields: tuple[str, ...] | None) -> None:
    """What a function returns or yields, or the last type argument of a component, by whatever way it got there;
    nothing is enforced, and what only type checkers understand promises nothing."""
    schema = inferred_schema(logic)
    assert schema.fields == fields
    assert not schema.enforced


def barely() -> Bare:
    return Bare()


@pytest.mark.parametrize(
    ("logic", "component"),
    [
        (Bare, Bare),
        (partial(Bare), Bare),
        (PassedOn[Line], PassedOn),
        (barely, Bare),
        (partial(barely), Bare),
        (AnySpout, AnySpout),
        (lambda: Bare(), None),
        (misnamed, None),
        (numbers, None),
        (Shout, None),
        (int, None),
        ([1, 2], None),
        (None, None),
    ],
    ids=without_address,
)
def test_the_class_that_a_component_is_made_from(logic: object, component: type | None) -> None:
    """The class itself, in a partial or with type arguments, or as a factory is annotated; else it is unknown."""
    assert component_class(logic) is component


@pytest.mark.parametrize("logic", [lambda a, b: None, lambda a, *, b: None], ids=["two", "keyword"])
def test_a_function_that_wants_more_than_the_value(logic: Callable[..., object]) -> None:
    """It would fail every tuple, so it is refused when the topology is built."""
    with pytest.raises(InvalidTopology, match="cannot be called with the value alone; bind the rest"):
        logic_kind("b", logic)
    assert logic_kind("b", partial(logic, b=1)) is LogicKind.FUNCTION


class Factory:
    """An object that makes spouts, and says what they emit."""

    def __init__(self, outputs: object) -> None:
        self.outputs = outputs

    def __call__(self) -> Bare:
        return Bare()


@pytest.mark.parametrize(
    ("outputs", "fields"), [(Line, ("text",)), (("id", "name"), ("id", "name")), (int, None), (None, None)]
)
def test_a_factory_object_says_what_it_emits(outputs: object, fields: tuple[str, ...] | None) -> None:
    """An object that makes components has their schema in its attribute ``outputs``; it is not enforced."""
    schema = inferred_schema(Factory(outputs))
    assert schema.fields == fields
    assert not schema.enforced


def test_outputs_of_functions_and_classes_are_their_own_affair() -> None:
    """The attribute counts only where the user made an object to say so."""

    def function(value: str) -> Word: ...

    function.outputs = ["other"]  # type: ignore[attr-defined]
    assert inferred_schema(function).fields == inferred_schema(partial(function)).fields == ("word",)
    assert inferred_schema(Factory).fields is None


class WithoutOut(BasicBolt[int, None]):
    """Its execute takes too little."""

    def execute(self, tup: Tuple[int]) -> None:  # type: ignore[override]
        pass


class WithoutFailure(Spout[int]):
    """Its fail takes too little."""

    def next_tuple(self, out: object) -> None:
        pass

    def fail(self, message_id: object) -> None:  # type: ignore[override]
        pass


def test_methods_that_cannot_be_called() -> None:
    """They would fail at every tuple, so they are refused when the topology is built, with what to write."""
    with pytest.raises(InvalidTopology, match=r"WithoutOut.execute .* write def execute\(self, tup, out\)"):
        check_bolt("bolt 'b'", WithoutOut, "loop")
    with pytest.raises(InvalidTopology, match=r"write def fail\(self, message_id, failure\)"):
        check_spout("spout 's'", WithoutFailure)
