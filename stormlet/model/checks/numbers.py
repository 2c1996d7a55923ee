"""Checks of numbers that users pass as arguments.

``where`` opens the message and names the function or component. Options have their own table, in
:mod:`stormlet.model.configuration`.
"""

from __future__ import annotations

from math import isfinite
from typing import cast

from stormlet.errors import InvalidConfiguration


def is_int(value: object, least: int | None = None) -> bool:
    """Return True for an int from ``least``; a bool does not count as one."""
    return isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least)


def check_int(where: str, name: str, value: object, least: int | None = None) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` unless the value is an int from ``least``."""
    if not is_int(value, least):
        bound = "" if least is None else f" from {least}"
        raise InvalidConfiguration(f"{where}: {name} must be an int{bound}, not {value!r}")


def is_finite(value: object) -> bool:
    """Return True for a finite number that a float can hold; a bool does not count as one."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:
        return False


def is_seconds(value: object) -> bool:
    """Return True for a finite number from 0."""
    return is_finite(value) and cast("float", value) >= 0


def check_finite(where: str, name: str, value: object) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` unless the value is a finite number."""
    if not is_finite(value):
        raise InvalidConfiguration(f"{where}: {name} must be a finite number, not {value!r}")


def check_positive(where: str, name: str, value: object) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` unless the value is a finite number above 0."""
    if not is_finite(value) or cast("float", value) <= 0:
        raise InvalidConfiguration(f"{where}: {name} must be a finite number above 0, not {value!r}")


def check_seconds(where: str, name: str, value: object) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` unless the value is a finite number from 0."""
    if not is_seconds(value):
        raise InvalidConfiguration(f"{where}: {name} must be a finite number of seconds >= 0, not {value!r}")
