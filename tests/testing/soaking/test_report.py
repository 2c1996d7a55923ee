"""What the process weighs, and whether that grows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from stormlet.testing.soaking import report
from stormlet.testing.soaking.report import MIB, resident_bytes, start_and_end


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
    before = resident_bytes() or 0
    held = bytearray(b"x") * (64 * MIB)
    assert (resident_bytes() or 0) - before > 50 * MIB
    assert len(held) == 64 * MIB


def test_there_need_not_be_a_module_for_it() -> None:
    """Windows has no ``resource``: soaks can be imported there, and the memory is unknown."""
    code = """
import sys
sys.modules["resource"] = None
from stormlet.testing.soaking import report, soak
report._STATM = report.Path("there is none")
assert report.resident_bytes() is None
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_where_the_system_tells_only_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is what counts then, as on macOS."""
    now = resident_bytes()
    monkeypatch.setattr(report, "_STATM", report.Path("there is none"))
    most = resident_bytes()
    assert now is not None
    assert most is not None
    assert most > 0.9 * now > MIB
