"""Numbers that users pass as arguments: refused by name where they are none, or out of range.

``where`` opens the message: whose argument it is. Options have their own table, in :mod:`stormlet.model.configuration`.
"""

from __future__ import annotations

from math import isfinite
from typing import cast

from stormlet.errors import InvalidConfiguration


def is_int(value: object, least: int | None = None) -> bool:
    """True for an int from ``least``, of which True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least)


def check_int(where: str, name: str, value: object, least: int | None = None) -> None:
    """Raises :class:`~stormlet.errors.InvalidConfiguration` for what is no int from ``least``."""
    if not is_int(value, least):
        bound = "" if least is None else f" from {least}"
        raise InvalidConfiguration(f"{where}: {name} must be an int{bound}, not {value!r}")


def is_finite(value: object) -> bool:
    """True for a number that a float can hold, of which True and False are none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:
        return False


def is_seconds(value: object) -> bool:
    """True for a finite number from 0."""
    return is_finite(value) and cast("float", value) >= 0


def check_finite(where: str, name: str, value: object) -> None:
    """Raises :class:`~stormlet.errors.InvalidConfiguration` for what is no finite number."""
    if not is_finite(value):
        raise InvalidConfiguration(f"{where}: {name} must be a finite number, not {value!r}")


def check_seconds(where: str, name: str, value: object) -> None:
    """Raises :class:`~stormlet.errors.InvalidConfiguration` for what is no finite number from 0."""
    if not is_seconds(value):
        raise InvalidConfiguration(f"{where}: {name} must be a finite number of seconds >= 0, not {value!r}")
