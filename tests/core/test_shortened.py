"""Values as messages show them."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase

import pytest

from stormlet.core.shortened import LONGEST, counted, cut, shortened, shown, text_of, visible


class Rude:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize("value", ["a word", ("a", 1), {"key": [1.5, None]}, ValueError("bad"), 10**40])
def test_what_is_short_is_its_repr(value: object) -> None:
    """Nothing is left out of what fits."""
    assert shortened(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    ["x" * 10_000_000, list(range(100_000)), {n: n for n in range(1000)}, ValueError("y" * 1000), 10**4000],
)
def test_what_is_long_is_cut(value: object) -> None:
    """However large a value is, it takes no more than 200 characters, and says that something is left out."""
    text = shortened(value)
    assert len(text) <= LONGEST
    assert "..." in text


def test_what_cannot_be_shown_is_named() -> None:
    """A value whose repr raises is shown by its type."""
    assert shortened(Rude()).startswith("<Rude instance at ")


def test_the_text_of_what_has_none_is_what_it_is_shown_as() -> None:
    """Every file can hold it."""
    assert text_of("a\ud800") == "a\\ud800"
    assert text_of(Rude()) == "<Rude, whose repr raised ValueError>"


def test_a_repr_may_have_a_lone_surrogate() -> None:
    """Every file can hold what is shown."""
    assert shown(type("Odd", (), {"__repr__": lambda _: "a\ud800"})()) == "a\\ud800"


@pytest.mark.parametrize("name", ["list", "dict", "str", "deque", "array"])
def test_a_class_may_have_any_name(name: str) -> None:
    """One that is called as a class of Python's own is shown by its own repr."""
    assert shortened(type(name, (), {"__repr__": lambda self: "mine"})()) == "mine"


def test_a_number_may_have_any_size() -> None:
    """Python refuses to write out more than some thousand digits; what is shown is the type, or what Python says."""
    lines = ("<list, whose repr raised ValueError>", "[[]<int instance with roughly 5001 digits*>]")
    assert fnmatchcase(shortened([10**5000]), lines[sys.version_info >= (3, 14)])


def test_a_text_stays_on_one_line() -> None:
    """Whatever a bolt gives as its reason, a log has one line of it, and a terminal's cursor stays where it is."""
    assert cut("one\ntwo\x1b[31m \u00e9") == "one\\ntwo\\x1b[31m \u00e9"
    assert "\n" not in cut("\n" * 10_000)


def test_what_is_escaped_counts_as_long_as_it_is_shown() -> None:
    """The bound holds for the line that people see."""
    assert len(cut("\n" * LONGEST)) <= LONGEST


def test_the_middle_is_cut() -> None:
    """Beginning and end of a long text stay."""
    text = cut("begin" + "x" * 300 + "end")
    assert text.startswith("begin")
    assert text.endswith("end")
    assert len(text) <= LONGEST


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("one line, größe", "one line, größe"),
        ("\x1b[2J\r\u202e\x85", "\\x1b[2J\\r\\u202e\\x85"),
        ("two\nlines", "two\n    lines"),
        ("at\n\tjava.lang\n  each", "at\n\tjava.lang\n  each"),
        ("a\n  b\n\nERROR c", "a\n      b\n\n    ERROR c"),
    ],
)
def test_a_text_of_several_lines_has_one_that_is_not_indented(text: str, seen: str) -> None:
    """What could be taken for another record, or moves a terminal's cursor, is visible as what it is."""
    assert visible(text) == seen


@pytest.mark.parametrize(
    ("number", "nouns", "text"),
    [
        (0, ("task",), "0 tasks"),
        (1, ("task",), "1 task"),
        (1_200, ("task",), "1,200 tasks"),
        (1, ("entry", "entries"), "1 entry"),
        (2, ("entry", "entries"), "2 entries"),
        (1, ("message waits", "messages wait"), "1 message waits"),
    ],
)
def test_one_thing_is_named_in_the_singular(number: int, nouns: tuple[str, ...], text: str) -> None:
    """Whatever the plural is made by."""
    assert counted(number, *nouns) == text


def test_a_number_may_be_rounded() -> None:
    """One is one before that."""
    assert counted(2, "letter", show=lambda number: f"some {number:.1f}") == "some 2.0 letters"
