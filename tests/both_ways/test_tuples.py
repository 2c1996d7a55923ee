"""A tuple is a Python object like others, whether it is laid out by C or not."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import pydoc
import typing
from collections.abc import Callable
from typing import Any
from weakref import ref

import msgspec
import pytest

from stormlet import Bolt, Collector, Topology, Tuple, is_compiled
from stormlet.core.schema import schema_of
from stormlet.core.tuples import PLAIN, Delivered, Lineage, Source, joined_tuple, plain_tuple
from tests.helpers import run_to_end

SOURCE = Source("split", "words", 3, schema_of(["word", "count"]))
TOP = 2**64 - 1


def plain() -> Any:
    return plain_tuple(("cow", 2), SOURCE, PLAIN, 7, TOP)


def joining() -> Any:
    return joined_tuple(("cow", 2), SOURCE, Lineage(attempt=4, origin="pasture"), {7: TOP, 8: 1})


def face(tup: Delivered) -> dict[str, object]:
    names = ("value", "component", "stream", "task", "attempt", "roots", "origin", "state")
    return {"kind": type(tup), "edges": tup.edges(), **{name: getattr(tup, name) for name in names}}


def pickled(tup: Delivered) -> Delivered:
    return pickle.loads(pickle.dumps(tup))


@pytest.mark.parametrize("make", [plain, joining])
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickled])
def test_copies_are_equal(make: Callable[[], Any], how: Callable[[Delivered], Delivered]) -> None:
    """Nothing is lost: neither an edge of 64 bits, nor the trees of a joined tuple, nor what became of it."""
    tup = make()
    tup.edge ^= 5
    tup.state = 2
    assert face(how(tup)) == face(tup)


@pytest.mark.parametrize("make", [plain, joining])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_protocol(make: Callable[[], Any], protocol: int) -> None:
    """From the second on, as with all classes that have slots."""
    assert face(pickle.loads(pickle.dumps(make(), protocol))) == face(make())


def test_a_copy_has_its_own_fields() -> None:
    """What happens to the one does not happen to the other."""
    tup = plain()
    other = copy.copy(tup)
    other.state = 3
    assert tup.state == 0


@pytest.mark.parametrize("make", [plain, joining])
def test_a_value_is_read_from_its_place(make: Callable[[], Any]) -> None:
    """Not by a function, which the interpreter calls for every other attribute: it is what bolts read most."""
    assert inspect.ismemberdescriptor(vars(Delivered)["value"])
    tup = make()
    assert tup.value == ("cow", 2)
    if is_compiled():
        with pytest.raises(AttributeError, match="readonly attribute"):
            tup.value = ("moon", 1)
        with pytest.raises(AttributeError, match="readonly attribute"):
            del tup.value
    assert tup.value == ("cow", 2)


def test_memory_that_is_used_again_is_empty() -> None:
    """A tuple that is gone leaves nothing to the next one, however many there were."""
    for _ in range(3):
        many = [plain_tuple(Knowing(), SOURCE, Lineage(origin=number), 7, TOP) for number in range(3000)]
        gone = [ref(tup.value) for tup in many]
        del many
        assert {value() for value in gone} == {None}
        assert face(plain_tuple("cow", SOURCE, PLAIN, 0, 0)) == {
            "kind": Delivered, "edges": {}, "value": "cow", "component": "split", "stream": "words", "task": 3,
            "attempt": 1, "roots": (), "origin": None, "state": 0,
        }  # fmt: skip


def test_a_long_chain_is_dropped() -> None:
    """Each tuple is the value of the next: a recursion through all of them would not fit on the stack."""
    chain: Any = "first"
    for _ in range(1_000_000):
        chain = plain_tuple(chain, SOURCE, PLAIN, 0, 0)
    del chain


class Knowing:
    """A value that knows the tuple it travels in."""

    def __init__(self) -> None:
        self.tup: Delivered | None = None


class Fixed(msgspec.Struct, frozen=True):
    """A record that nobody can change."""

    word: object


class Loose(msgspec.Struct):
    """A record that somebody may have refer to its own tuple."""

    word: object


@pytest.mark.parametrize("lineage", [PLAIN, Lineage(origin="pasture")])
def test_a_cycle_is_collected(lineage: Lineage) -> None:
    """Whatever the collector is spared."""
    value = Knowing()
    value.tup = plain_tuple(value, SOURCE, lineage, 7, TOP)
    there = ref(value)
    del value
    gc.collect()
    assert there() is None


def test_the_collector_is_spared_what_cannot_be_a_cycle() -> None:
    """Compiled, it looks into a tuple where its value may refer to something, now or later, or its lineage."""
    for value, lineage in (
        ("cow", PLAIN),
        (Fixed("cow"), PLAIN),
        ((), PLAIN),
        ("cow", Lineage(origin="pasture")),
    ):
        assert gc.is_tracked(plain_tuple(value, SOURCE, lineage, 7, TOP)) is not is_compiled()
    for value in (["cow"], {}, ("cow", []), Fixed(["cow"]), Loose("cow"), Knowing()):
        assert gc.is_tracked(plain_tuple(value, SOURCE, PLAIN, 7, TOP))
    assert gc.is_tracked(plain_tuple("cow", SOURCE, Lineage(origin=["pasture"]), 7, TOP))


def test_the_collector_is_spared_by_one_type_of_record_after_another() -> None:
    """Whichever came before: the type that was looked at last is kept."""
    for _ in range(3):
        assert gc.is_tracked(plain_tuple(Fixed("cow"), SOURCE, PLAIN, 7, TOP)) is not is_compiled()
        assert gc.is_tracked(plain_tuple(Loose("cow"), SOURCE, PLAIN, 7, TOP))


def takes_words(tup: Tuple[str]) -> Tuple[int]:
    raise NotImplementedError


def test_annotations() -> None:
    """``Tuple[str]`` can be read back, and is not needed to ask what something is."""
    assert typing.get_type_hints(takes_words) == {"tup": Tuple[str], "return": Tuple[int]}
    assert typing.get_origin(Tuple[str]) is Tuple
    assert typing.get_args(Tuple[str]) == (str,)
    assert isinstance(plain(), Tuple)
    assert isinstance(joining(), Tuple)
    assert not isinstance(("cow", 2), Tuple)


def test_help() -> None:
    """Every attribute that users read is there with what it means."""
    text = pydoc.render_doc(Tuple, renderer=pydoc.plaintext)
    assert "One value delivered to one task" in text
    for name in ("component", "stream", "task", "attempt", "roots", "origin"):
        assert f" {name}\n" in text
        assert inspect.getdoc(getattr(Tuple, name))


@pytest.mark.parametrize("name", ["reply_to", "valeu"])
def test_there_are_no_other_attributes(name: str) -> None:
    """A slip is an error; a tuple is no place to keep things."""
    with pytest.raises(AttributeError, match=name):
        setattr(plain(), name, 1)


def test_each_is_itself() -> None:
    """Tuples are equal to no other, and so can be in sets and be keys."""
    first, second = plain(), plain()
    assert first != second
    assert {first: 1, second: 2}[first] == 1


def test_pytest_shows_what_it_is(pytester: pytest.Pytester) -> None:
    """A failing assertion about a tuple prints the tuple and what was read of it."""
    pytester.makepyfile(
        """
        from stormlet.core.schema import schema_of
        from stormlet.core.tuples import PLAIN, Source, plain_tuple

        def test_value():
            tup = plain_tuple("cow", Source("split", "words", 3, schema_of(None)), PLAIN, 7, 1)
            assert tup.value == 1
        """
    )
    done = pytester.runpytest_inprocess("-p", "no:asyncio", "-p", "no:cacheprovider")
    done.stdout.fnmatch_lines(
        [
            "E       AssertionError: assert 'cow' == 1",
            "E        +  where 'cow' = <Tuple 'cow' from 'split' (task 3), stream 'words'>.value",
        ]
    )


@pytest.mark.simulated_time
async def test_collectors_say_what_they_take() -> None:
    """What a bolt is given can be asked for its parameters and their meaning."""
    signatures: dict[str, list[str]] = {}
    meanings: dict[str, str | None] = {}

    class Curious(Bolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            for name in ("emit", "ack", "fail", "reset_timeout"):
                method = getattr(out, name)
                signatures[name] = list(inspect.signature(method).parameters)
                meanings[name] = inspect.getdoc(method)
            out.ack(tup)

    topology = Topology("curious")
    topology.bolt("curious", Curious, topology.spout("numbers", range(1)).shuffle())
    await run_to_end(topology)
    assert signatures == {
        "emit": ["value", "anchors", "stream", "task"],
        "ack": ["tup"],
        "fail": ["tup", "reason", "exception", "permanent"],
        "reset_timeout": ["tup"],
    }
    assert all(meanings.values())
