"""Numbers that users pass as arguments."""

from __future__ import annotations

from math import inf, nan

import pytest

from stormlet.model.checks.numbers import is_finite, is_int, is_seconds


@pytest.mark.parametrize("value", [0, 1, 0.5, 10**300])
def test_seconds(value: float) -> None:
    """Finite numbers from 0."""
    assert is_seconds(value)


@pytest.mark.parametrize("value", [-1, -0.001, inf, nan, 10**400, True, "1", None])
def test_what_are_no_seconds(value: object) -> None:
    """A bool, text, and what no clock counts."""
    assert not is_seconds(value)


def test_a_number_may_be_negative_and_a_bool_is_none() -> None:
    """What is least is said by who asks."""
    assert is_finite(-1)
    assert not is_finite(True)
    assert is_int(-1)
    assert not is_int(0, 1)
    assert not is_int(True, 1)
