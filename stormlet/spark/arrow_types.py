"""Which types of Arrow say the same in different ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import DataType


def same(given: DataType, wanted: DataType) -> bool:
    """Whether values of one type mean the same as values of the other: strings of either layout, integers of any
    width, moments with a zone, whichever. Whether each value has room is for the cast to say."""
    from pyarrow import types

    if types.is_dictionary(given):
        given = given.value_type
    if given == wanted or types.is_null(given):
        return True
    parts, wanted_parts = _parts(given), _parts(wanted)
    if parts is None or wanted_parts is None:
        widened = types.is_floating(given) and types.is_float64(wanted)
        return widened or any(is_kind(given) and is_kind(wanted) for is_kind in _kinds())
    return list(parts) == list(wanted_parts) and all(same(parts[name], wanted_parts[name]) for name in parts)


def _parts(kind: DataType) -> dict[str, DataType] | None:
    """What a type is made of, if it is made of others."""
    from pyarrow import types

    if types.is_map(kind):
        return {"a key": kind.key_type, "a value": kind.item_type}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"an element": kind.value_type}
    if types.is_struct(kind):
        return {f".{field.name}": field.type for field in kind}
    return None


def _kinds() -> Sequence[Callable[[DataType], bool]]:
    from pyarrow import types

    return (
        types.is_integer,
        types.is_decimal,
        types.is_duration,
        lambda kind: types.is_string(kind) or types.is_large_string(kind),
        lambda kind: types.is_binary(kind) or types.is_large_binary(kind),
        lambda kind: types.is_timestamp(kind) and kind.tz is None,
        lambda kind: types.is_timestamp(kind) and kind.tz is not None,
    )
