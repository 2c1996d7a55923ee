"""Classes that are not found on other machines are refused, and whatever travels is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import partial
from operator import attrgetter
from textwrap import dedent
from types import ModuleType
from typing import Any

import msgspec
import pytest

from stormlet import BasicBolt, Collector, InvalidTopology, Topology, Tuple
from stormlet.spark import DataFrameSink
from stormlet.spark.engine.planning.refusals import check_batch
from stormlet.spark.engine.planning.shipping import unfound
from tests.cast import Burst, Counting, given, ignore, same

CODE = """
    import msgspec
    from dataclasses import dataclass
    from enum import Enum
    from functools import partial
    from typing import NamedTuple
    from stormlet import BasicBolt, Spout

    class Word(msgspec.Struct):
        text: str

    @dataclass
    class Total:
        count: int

    class Pair(NamedTuple):
        left: int

    class Colour(Enum):
        RED = 1

    class Count(BasicBolt[int, int]):
        def execute(self, tup, out): ...

    class Numbers(Spout[int]):
        def next_tuple(self, out): ...

    class Factory:
        def __call__(self): return Count()
        def made(self, value): return value

    class EveryOther:
        def prepare(self, targets): ...
        def choose(self, value): return ()

    def words(): yield Word("a")
    def split(text): return [Word(each) for each in text.split()]
    def helped(text): return split(text)
    def total(text, make=Total): return make(1)
    def keyed(text, *, make=Pair): return make(1)
    def annotated(text) -> Word: return make(text)
    def nested(text): return (lambda: Colour.RED)()
    def attribute(text): return text.Word
    def plain(text): return text.upper()
    def closure():
        colour = Colour.RED
        return lambda text: colour
    def late():
        def call(text): return later
        return call
        later = 1
"""


@pytest.fixture(name="program")
def _program() -> ModuleType:
    """What a program or a notebook has defined."""
    module = ModuleType("__main__")
    exec(dedent(CODE), vars(module))
    return module


class Kept(msgspec.Struct):
    word: str


class Keep(BasicBolt[int, int]):
    def __init__(self, kept: object) -> None:
        self.kept = kept

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Do nothing."""


class Grouped:
    def __init__(self, key: object) -> None:
        self.key = key

    def prepare(self, targets: Sequence[int]) -> None:
        """Have all of them."""

    def choose(self, value: object) -> Sequence[int]:
        return ()


def sentences(topology: Topology) -> list[str]:
    return list(unfound(topology.describe()))


def with_bolt(logic: Any, **options: Any) -> Topology:
    topology: Any = Topology("bolts")
    topology.bolt("bolt", logic, topology.spout("numbers", [1]).shuffle(), **options)
    return topology  # type: ignore[no-any-return]


def with_spout(source: Any, **options: Any) -> Topology:
    topology: Any = Topology("spouts")
    topology.bolt("end", ignore, topology.spout("numbers", source, **options).shuffle())
    return topology  # type: ignore[no-any-return]


def with_grouping(grouping: str, by: object) -> Topology:
    topology: Any = Topology("groupings")
    stream = topology.spout("numbers", [1])
    topology.bolt("end", ignore, getattr(stream, grouping)(by))
    return topology  # type: ignore[no-any-return]


def needs(where: str, name: str) -> list[str]:
    way_out = "put it at the top level of a file that you import"
    return [f"{where} needs the class __main__.{name}, which is not found on other machines; {way_out}"]


# Classes of the program itself.


@pytest.mark.parametrize(
    ("logic", "name"),
    [
        (lambda program: program.Count, "Count"),
        (lambda program: partial(program.Count), "Count"),
        (lambda program: program.Factory(), "Factory"),
        (lambda program: partial(Keep, kept=program.Pair), "Pair"),
        (lambda program: partial(Keep, [{"a": (program.Colour.RED,)}]), "Colour"),
        (lambda program: partial(Keep, frozenset({program.Pair(1)})), "Pair"),
        (lambda program: given(program.Count()), "Count"),
        (lambda program: DataFrameSink("out", schema=program.Word), "Word"),
        (lambda program: program.Factory().made, "Factory"),
    ],
)
def test_what_bolts_are_made_of(program: ModuleType, logic: Any, name: str) -> None:
    """Classes, and what partials, factories and bound methods bring along."""
    assert sentences(with_bolt(logic(program))) == needs("bolt 'bolt'", name)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("split", "Word"),
        ("helped", "Word"),
        ("total", "Total"),
        ("keyed", "Pair"),
        ("annotated", "Word"),
        ("nested", "Colour"),
    ],
)
def test_what_functions_use(program: ModuleType, function: str, name: str) -> None:
    """In their code, that of functions in it and that of functions they call; as defaults, and as annotations."""
    assert sentences(with_bolt(getattr(program, function))) == needs("bolt 'bolt'", name)


def test_what_closures_hold(program: ModuleType) -> None:
    """A cell without a value holds nothing."""
    assert sentences(with_bolt(program.closure())) == needs("bolt 'bolt'", "Colour")
    assert sentences(with_bolt(program.late())) == []


@pytest.mark.parametrize(("source", "name"), [("words", "Word"), ("Numbers", "Numbers")])
def test_what_spouts_are_made_of(program: ModuleType, source: str, name: str) -> None:
    """What the driver reads goes elsewhere, so its class must be known there."""
    assert sentences(with_spout(getattr(program, source))) == needs("spout 'numbers'", name)


def test_what_a_list_holds(program: ModuleType) -> None:
    """Each of its values goes elsewhere."""
    assert sentences(with_spout([1, program.Word("a")])) == needs("spout 'numbers'", "Word")


@pytest.mark.parametrize(
    "declare", [lambda word: word, lambda word: {"default": word}, lambda word: word | int]
)
def test_what_streams_declare(program: ModuleType, declare: Any) -> None:
    """A record, the record of a named stream, and one of several."""
    topology = with_spout([1], outputs=declare(program.Word))
    assert sentences(topology) == needs("spout 'numbers'", "Word")


@pytest.mark.parametrize(
    ("grouping", "by", "name"),
    [
        ("custom", lambda program: program.EveryOther(), "EveryOther"),
        ("custom", lambda program: Grouped(program.Colour), "Colour"),
        ("fields", lambda program: program.nested, "Colour"),
        ("partial_key", lambda program: program.nested, "Colour"),
    ],
)
def test_what_groupings_use(program: ModuleType, grouping: str, by: Any, name: str) -> None:
    """An object of a user's own, what it keeps, and key functions."""
    assert sentences(with_grouping(grouping, by(program))) == needs("bolt 'end'", name)


def test_several_classes_are_named_at_once(program: ModuleType) -> None:
    """One sentence for each component."""
    (sentence,) = sentences(with_bolt(partial(program.Count, program.Word, program.Total)))
    assert sentence == (
        "bolt 'bolt' needs the classes __main__.Count, __main__.Total and __main__.Word, which are not found on other "
        "machines; put them at the top level of a file that you import"
    )


def test_a_class_that_is_made_in_a_function() -> None:
    """It has no name under which it could be found."""

    class Inner(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            """Do nothing."""

    (sentence,) = sentences(with_bolt(Inner))
    assert (
        "the class tests.spark.engine.test_shipping.test_a_class_that_is_made_in_a_function.<locals>.In"
        in sentence
    )


def test_the_sentence_is_among_the_refusals(program: ModuleType) -> None:
    """Nothing starts with such a class."""
    with pytest.raises(InvalidTopology) as refused:
        check_batch(with_bolt(program.Count).describe())
    (sentence,) = needs("bolt 'bolt'", "Count")
    assert str(refused.value) == f"on Spark, {sentence}"


# What travels.


class Size(IntEnum):
    SMALL = 1


def words() -> Iterator[Kept]:
    yield Kept("a")


@pytest.mark.parametrize(
    "logic",
    [
        same,
        print,
        str.upper,
        Burst,
        partial(Burst, Size.SMALL),
        lambda value: Kept(value),
        lambda value, make=Kept: make(value),
        Grouped([]).choose,
        given(Burst()),
        DataFrameSink("out", schema=Kept),
    ],
)
def test_whatever_is_found_travels(logic: Any) -> None:
    """Functions of files and builtins by name; lambdas and closures by value, with classes of files."""
    assert sentences(with_bolt(logic)) == []


@pytest.mark.parametrize("function", ["plain", "attribute"])
def test_functions_of_the_program_travel(program: ModuleType, function: str) -> None:
    """If they need no class of it; an attribute of that name is none."""
    assert sentences(with_bolt(getattr(program, function))) == []


@pytest.mark.parametrize(
    "source", [words, [1, "a", Kept("a"), None], iter([1]), range(3), Counting, lambda: Counting()]
)
def test_sources_travel(source: Any) -> None:
    """Generator functions and values whose classes are in files."""
    assert sentences(with_spout(source, outputs=Kept)) == []


@pytest.mark.parametrize("by", [attrgetter("word"), lambda kept: kept.word])
def test_key_functions_travel(by: Any) -> None:
    """Lambdas too."""
    assert sentences(with_grouping("fields", by)) == []


def test_what_refers_to_itself_is_walked_once() -> None:
    """The walk ends."""
    ring: list[object] = []
    ring.append(ring)
    assert sentences(with_bolt(partial(Keep, ring))) == []
