"""Rows on their way to a committer (law X9, X10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from stormlet.core.state.commits import Column, Rows, Table, TableRows
from stormlet.core.state.outgoing import Epoch, Outgoing, OutgoingTable
from stormlet.errors import StateUnusable


class Entry(msgspec.Struct, frozen=True):
    """A row."""

    id: int
    note: str = ""


class More(Entry, frozen=True):
    """A row with a field that its declared type does not have."""

    more: int = 0


ENDLESS: list[object] = []
"""A list in itself."""
ENDLESS.append(ENDLESS)


def sealed(outgoing: Outgoing, *rows: object, epoch: int = 1) -> Rows | None:
    outgoing.gathered.extend(rows)
    outgoing.encode()
    return outgoing.seal(epoch)


def test_rows_are_due_when_their_epoch_is_durable() -> None:
    """Not before."""
    outgoing = Outgoing("write", Entry)
    assert sealed(outgoing, Entry(1), Entry(2)) is not None
    assert not outgoing.is_due
    outgoing.written()
    assert outgoing.first == (1, [Entry(1), Entry(2)])
    assert outgoing.due() == [(1, 2)]
    outgoing.had()
    assert (outgoing.is_due, outgoing.delivered) == (False, 1)


def test_rows_come_back_from_the_store() -> None:
    """As they were, in the order of the epochs."""
    rows = sealed(Outgoing("write", Entry), Entry(1, "one"))
    assert rows is not None
    outgoing = Outgoing("write", Entry)
    outgoing.load([rows])
    assert outgoing.first == (1, [Entry(1, "one")])


def test_an_epoch_without_rows_brings_nothing() -> None:
    """Its number is no committer's business."""
    outgoing = Outgoing("write", Entry)
    assert sealed(outgoing) is None
    outgoing.written()
    assert not outgoing.is_due


def test_rows_that_need_no_proof_before_are_proved_by_the_seal() -> None:
    """Whoever calls it alone."""
    outgoing = Outgoing("write", int)
    outgoing.gathered.append(1)
    assert outgoing.seal(1) == Rows("write", 1, b"\x91\x01")


def test_what_is_rolled_back_is_gone() -> None:
    """The next attempt begins with nothing."""
    outgoing = Outgoing("write", Entry)
    outgoing.gathered.append(Entry(1))
    outgoing.roll_back()
    assert sealed(outgoing) is None


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        (Entry, More(1, "", 2)),
        (Entry, 3),
        (int, "3"),
        (Any, Entry(1)),
        (Any, (1, 2)),
        (Any, object()),
        (int, 2**70),
        (list, ENDLESS),
    ],
)
def test_a_row_that_would_come_back_as_another_one_is_refused(kind: Any, row: object) -> None:
    """Before the commit, naming the row."""
    outgoing = Outgoing("write", kind)
    outgoing.gathered += [*([] if kind in (Any, list) else [kind(1)]), row]
    with pytest.raises(
        TypeError, match=r"committer 'write': the row .* cannot be kept as .*; declare the type"
    ):
        outgoing.encode()


def test_nan_comes_back_as_itself() -> None:
    """It is equal to nothing, but its bytes are."""
    assert sealed(Outgoing("write", float), float("nan")) is not None


def test_rows_of_another_type_than_before_are_refused() -> None:
    """What was durable cannot be delivered then."""
    with pytest.raises(
        StateUnusable, match=r"rows of epoch 7 were not delivered to committer 'write'.* no Entry"
    ):
        Outgoing("write", Entry).load([Rows("write", 7, b"\x91\x01")])


def test_an_epoch_in_words() -> None:
    """For logs and errors."""
    assert str(Epoch(12345, "line")) == "epoch 12,345"


def test_an_epoch_follows_the_one_before_it() -> None:
    """Of its own line, or of one that has ended before it."""
    assert Epoch(1, "a").follows(None)
    assert Epoch(2, "a").follows(Epoch(1, "a"))
    assert not Epoch(1, "a").follows(Epoch(1, "a"))
    assert Epoch(1, "b", is_durable=False).follows(Epoch(5, "a"))


def test_an_epoch_of_another_source_follows_none() -> None:
    """The sink has rows of which it knows nothing (law X8, X10)."""
    with pytest.raises(ValueError, match="as its source is another one or had a state"):
        Epoch(1, "b", by_source=True).follows(Epoch(5, "a"))


def test_an_epoch_follows_those_that_its_line_has_in_common_with_an_earlier_one() -> None:
    """A sink that has more than these must be put right first, also where the first epochs of the line have no rows."""
    rewound = Epoch(8, "c", ancestors=[("a", 4), ("b", 6)])
    assert rewound.follows(Epoch(4, "a"))
    assert rewound.follows(Epoch(6, "b"))
    with pytest.raises(ValueError, match="was rewound to epoch 4: the sink has rows up to epoch 5"):
        rewound.follows(Epoch(5, "a"))
    with pytest.raises(ValueError, match="remove those after epoch 6, and note that it has had epoch 6"):
        rewound.follows(Epoch(7, "b"))
    with pytest.raises(ValueError, match="began anew: the sink has rows up to epoch 1; remove them"):
        rewound.follows(Epoch(1, "z"))
    # Its rows were delivered before the state was rewound, and the file did not know.
    assert not Epoch(4, "b", ancestors=[("a", 5)]).follows(Epoch(4, "a"))


TABLE = Table("entries", [("id", "INTEGER")])


def table(columns_of: Callable[[Any], tuple[Column, ...]] = lambda row: (row,)) -> OutgoingTable:
    return OutgoingTable("write", TABLE, columns_of)


def test_rows_of_a_table_are_part_of_the_commit() -> None:
    """As columns."""
    outgoing = table()
    assert outgoing.seal() is None
    outgoing.gathered += [1, 2]
    assert outgoing.seal() == TableRows(TABLE, [(1,), (2,)])
    outgoing.gathered.append(3)
    outgoing.roll_back()
    assert outgoing.seal() is None


def test_a_row_without_columns_is_refused() -> None:
    """The committer is named."""

    def refuse(row: object) -> tuple[Column, ...]:
        raise TypeError("too large")

    outgoing = table(refuse)
    outgoing.gathered.append(1)
    with pytest.raises(TypeError, match="committer 'write': too large"):
        outgoing.encode()


def test_what_earlier_runs_have_left_is_delivered_in_its_order() -> None:
    """The first epoch first (law X9)."""
    outgoing = Outgoing("write", int)
    outgoing.load([Rows("write", 3, b"\x91\x01"), Rows("write", 5, b"\x91\x02")])
    assert outgoing.first == (3, [1])
    outgoing.had()
    assert (outgoing.delivered, outgoing.first) == (3, (5, [2]))
