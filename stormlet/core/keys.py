"""The stable hash of grouping keys: the same in every run and every process.

The law's paragraph "Groupings" fixes the types: None, bool, int, float, str, bytes, Decimal, date, datetime,
time, UUID, Enum, and tuples, lists and records (msgspec.Struct, dataclass, NamedTuple, dict) of these. Equal
keys hash equal, because a ``fields`` grouping promises one task for one key: ``1 == 1.0 == True ==
Decimal(1)``, aware datetimes of different zones are equal at one instant, a NamedTuple equals a plain tuple,
a dict has no order.

So the hash of a type follows whatever decides its equality: the nearest base class whose ``==`` is known here. A
subclass that redefines ``__eq__`` in Python is refused, because its equal keys could part ways. Unequal keys
may collide; a list and a tuple of the same items do, and so do records of different types with the same
contents.

Not used: the salted :func:`hash` of text, ``repr`` (addresses, float formats) and pickle (memo order,
versions). The hash of *numbers* is unsalted and agrees over int, float and Decimal, except for NaN. It
depends on the word size: the hashes here are those of 64-bit builds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from functools import lru_cache, partial
from math import isnan
from struct import Struct as Layout
from types import FunctionType, NoneType
from typing import Any, Final, cast
from uuid import UUID
from zlib import crc32

from msgspec import Struct

from stormlet.core.records import compared_fields, compares_fields
from stormlet.errors import UnroutableKey

KEYS: Final = (
    "keys are None, bool, int, float, str, bytes, Decimal, date, datetime, time, UUID, Enum, and tuples, lists and "
    "records of these, none with an __eq__ of its own"
)

_Hasher = Callable[[Any], int]

# Little-endian on every machine, so that processes agree.
_word = Layout("<q").pack
_three_words = Layout("<qqq").pack
_NONE = crc32(b"None")
_NAN = crc32(b"NaN")  # Python hashes NaN by the address of the object


def stable_hash(key: object) -> int:
    """Return the 32-bit unsigned hash of a grouping key: equal for equal keys, the same in every process.

    Raises :class:`UnroutableKey`, naming the type, for anything that has no stable hash.
    """
    if type(key) is str:  # these two are most keys, and save the look at the type's bases
        return _hash_str(key)
    if type(key) is int:
        return crc32(_word(hash(key)))
    kind: type = type(key)
    return _hasher_of(kind)(key)


def has_stable_hash(kind: type) -> bool:
    """Return True if :func:`stable_hash` takes instances of this class, as far as the class alone decides that: the
    items of a tuple, a list or a record may still have no stable hash."""
    try:
        _hasher_of(kind)
    except UnroutableKey:
        return False
    return True


@lru_cache(maxsize=1024)  # bounded, as a program may make classes at run time
def _hasher_of(kind: type) -> _Hasher:
    """Find the hash that follows the equality of a type."""
    for base in kind.__mro__:
        if base in _HASHERS:
            return _HASHERS[base]
        if compares_fields(base):
            return partial(_hash_fields, compared_fields(base))
        # An __eq__ of the user's own may call keys equal whose fields differ; their hashes would part them.
        if isinstance(base.__dict__.get("__eq__"), FunctionType):
            raise _unroutable(kind)
    if is_dataclass(cast("object", kind)):  # declared with eq=False
        return partial(_hash_fields, compared_fields(kind))
    raise _unroutable(kind)


def _unroutable(kind: type) -> UnroutableKey:
    return UnroutableKey(f"a key of type {type_name(kind)} has no stable hash; {KEYS}")


def type_name(kind: type) -> str:
    """Return the name of a class, with its module unless that is Python itself."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _hash_none(_: None) -> int:
    return _NONE


def _hash_str(text: str) -> int:
    return crc32(str.encode(text, "utf-8", "surrogatepass"))  # lone surrogates are legal text and legal keys


# A subclass may carry another __hash__ (an Enum mixin does), so that of the number itself is named.


def _hash_int(number: int) -> int:
    return crc32(_word(int.__hash__(number)))


def _hash_float(number: float) -> int:
    return _NAN if isnan(number) else crc32(_word(float.__hash__(number)))


def _hash_decimal(number: Decimal) -> int:
    return _NAN if number.is_nan() else crc32(_word(Decimal.__hash__(number)))


def _hash_date(day: date) -> int:
    return crc32(_word(day.toordinal()))


def _hash_datetime(moment: datetime) -> int:
    # Moments of one zone are equal whatever their fold, so the offset is that of fold 0. An aware moment may
    # lie before year 1 in UTC: a timedelta can say so, a datetime cannot.
    local = timedelta(moment.toordinal()) + _since_midnight(moment)
    return _hash_duration(local, moment.replace(fold=0).utcoffset())


def _hash_time(clock: time) -> int:
    return _hash_duration(_since_midnight(clock), clock.replace(fold=0).utcoffset())


def _since_midnight(clock: datetime | time) -> timedelta:
    return timedelta(
        hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond
    )


def _hash_duration(local: timedelta, offset: timedelta | None) -> int:
    utc = local if offset is None else local - offset
    return crc32(_three_words(utc.days, utc.seconds, utc.microseconds))


def _hash_uuid(uuid: UUID) -> int:
    return crc32(uuid.bytes)


def _hash_member(member: Enum) -> int:
    return _hash_str(member.name)  # the value may be of any type, and have no stable hash


def _hash_flag(flag: Flag) -> int:
    return stable_hash(flag.value)  # the name of a combination differs between versions of Python


def _hash_sequence(items: Iterable[object]) -> int:
    return _combine([stable_hash(item) for item in items])


def _hash_mapping(mapping: Mapping[Any, object]) -> int:
    # Sorted, as equal dicts may differ in their order; by hashes, as keys of different types cannot be compared.
    return _combine(sorted([_hash_sequence(pair) for pair in mapping.items()]))


def _hash_struct(record: Struct) -> int:
    return _hash_fields(record.__struct_fields__, record)


def _hash_fields(names: tuple[str, ...], record: object) -> int:
    return _hash_mapping({name: getattr(record, name) for name in names})


def _combine(hashes: Iterable[int]) -> int:
    # Four bytes for each part, so that the parts of different sequences never run together.
    return crc32(b"".join([part.to_bytes(4, "little") for part in hashes]))


# By the class that defines ``==``: a subclass is hashed as the nearest of its bases that stands here.
_HASHERS: dict[type, _Hasher] = {
    NoneType: _hash_none,
    str: _hash_str,
    bytes: crc32,
    int: _hash_int,  # and bool
    float: _hash_float,
    Decimal: _hash_decimal,
    date: _hash_date,
    datetime: _hash_datetime,
    time: _hash_time,
    UUID: _hash_uuid,
    Enum: _hash_member,
    Flag: _hash_flag,
    tuple: _hash_sequence,  # and NamedTuple
    list: _hash_sequence,
    dict: _hash_mapping,
    Struct: _hash_struct,
}
