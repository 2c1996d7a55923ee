from __future__ import annotations

from stormlet.core.acks import Acks

HIGHEST = 2**64 - 1


def test_each_value_is_kept_in_its_order() -> None:
    """A root may come several times, and each value has up to 64 bits."""
    acks = Acks([(7, HIGHEST), (HIGHEST, 1)])
    acks.add(7, 2)
    assert [*acks] == [(7, HIGHEST), (HIGHEST, 1), (7, 2)]
    assert (len(acks), acks.count, bool(acks), bool(Acks())) == (3, 3, True, False)


def test_the_values_of_a_root_are_xored() -> None:
    """As the ledger does, in any order (law L2)."""
    assert Acks([(7, 1), (8, 2), (7, 5), (8, 2)]).xored() == {7: 4, 8: 0}


def test_there_is_room_for_many() -> None:
    """The columns grow."""
    pairs = [(root, 3 * root) for root in range(10_000)]
    assert [*Acks(pairs)] == pairs
