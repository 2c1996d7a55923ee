"""What the process weighs, and whether that grows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stormlet.testing.soaking.memory import MIB, resident_bytes, start_and_end


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([1, 2, 3, 4, 5, 6, 7], None),
        ([0, 0, 5, 5, 5, 5, 5, 5], (5, 5)),
        ([9, 9, 9, 1, 2, 3, 90, 4, 5, 11, 10, 12], (2, 11)),
    ],
)
def test_medians_of_the_start_and_of_the_end(
    readings: Sequence[int], expected: tuple[int, int] | None
) -> None:
    """The warm-up does not count, nor does a single peak, and too few readings say nothing."""
    assert start_and_end(readings) == expected


def test_what_is_allocated_weighs() -> None:
    """The process weighs more by what it holds."""
    before = resident_bytes()
    held = bytearray(b"x") * (64 * MIB)
    assert resident_bytes() - before > 50 * MIB
    assert len(held) == 64 * MIB
