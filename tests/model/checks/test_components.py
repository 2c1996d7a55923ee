"""What is checked of a component when it is added."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stormlet.errors import InvalidConfiguration, InvalidTopology
from stormlet.model.checks.components import (
    check_id,
    check_one_of,
    check_sharing,
    check_tick,
    declared_outputs,
)
from stormlet.model.logic import LogicKind, SourceKind


class Alone:
    """A source that says so of itself."""

    single_task = True


def test_an_id_is_a_str() -> None:
    """What it is instead is shown."""
    with pytest.raises(InvalidTopology, match=r"^spout 7: an id is a str, not 7$"):
        check_id("spout 7", 7)


def test_an_id_is_text_that_a_file_can_hold() -> None:
    """Python has halves of characters in texts, and UTF-8 has none."""
    check_id("spout 'größer 漢'", "größer 漢")
    with pytest.raises(InvalidTopology, match=r"^spout 's': a name must not have halves of characters"):
        check_id("spout 's'", "s\ud800")


def test_the_choices_are_listed() -> None:
    """And the one that is none of them is shown."""
    with pytest.raises(
        InvalidConfiguration, match=r"^bolt 'b': on_error must be one of 'fail', 'stop', not 'go'$"
    ):
        check_one_of("bolt 'b'", "on_error", "go", ("fail", "stop"))


def test_a_source_may_be_for_one_task() -> None:
    """Several tasks of it would emit the same (law S8)."""
    check_sharing("rows", Alone(), SourceKind.FACTORY, 1)
    with pytest.raises(
        InvalidTopology, match=r"^spout 'rows': with parallelism=2 every task would emit the same"
    ):
        check_sharing("rows", Alone(), SourceKind.FACTORY, 2)


def test_an_iterable_is_for_one_task() -> None:
    """Every task would yield the same values, and the message says how they could share them (law S8)."""
    check_sharing("rows", [1], SourceKind.ITERABLE, 1)
    with pytest.raises(
        InvalidTopology,
        match=r"^spout 'rows': with parallelism=2 every .* same values; use .* def rows\(context\)",
    ):
        check_sharing("rows", [1], SourceKind.ITERABLE, 2)


def test_ticks_are_heard() -> None:
    """Where no method would hear them, they are refused (law B5)."""
    check_tick("bolt 'b'", print, LogicKind.FUNCTION, None)
    with pytest.raises(InvalidTopology, match=r"^bolt 'b' has tick=5, but no method tick\(self, out\)"):
        check_tick("bolt 'b'", print, LogicKind.FUNCTION, 5)


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({7: int}, "bolt 'b': a stream's name is a str, not 7"),
        ({"": int}, "bolt 'b': '' is no valid stream name; it must not be empty or begin with '__'"),
        (
            {"__own": int},
            "bolt 'b': '__own' is no valid stream name; it must not be empty or begin with '__'",
        ),
        (
            {"\ud800": int},
            (
                "bolt 'b', stream '\\ud800': a name must not have halves of characters (lone surrogates), which no "
                "file can hold; choose another one"
            ),
        ),
        ({}, "bolt 'b': outputs declares no stream; leave it out for one default stream"),
    ],
)
def test_streams_have_names(streams: Any, message: str) -> None:
    """At least one, and none of the engine's own."""
    with pytest.raises(InvalidTopology) as raised:
        declared_outputs("bolt 'b'", streams, cast("object", print))
    assert str(raised.value) == message
