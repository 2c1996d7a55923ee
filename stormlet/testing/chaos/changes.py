"""Changes of data in a run, and the comparison of those of two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from math import fsum
from typing import cast

from stormlet.core.shortened import cut
from stormlet.testing.chaos.data import DIGITS, Amount, Data, rounded
from stormlet.testing.chaos.journal import described


def changes(before: Data, after: Data) -> Data:
    """By how much numbers have grown, and what collections have more of, or less."""
    found: Data = {}
    for place, amount in (dict.fromkeys(before, 0.0) | after).items():
        with suppress(TypeError):  # it has become something else
            found[place] = _sum(amount, before.get(place, 0.0), -1)
    return found


def added(one: Data, other: Data) -> Data:
    """Both changes together, as of two tasks of one bolt."""
    both = dict(one)
    for place, amount in other.items():
        with suppress(TypeError):
            both[place] = _sum(amount, both.get(place, 0.0), 1)
    return both


def _sum(one: Amount, other: Amount, sign: int) -> Amount:
    """The number 0.0 stands for nothing, beside a collection too."""
    if not isinstance(one, Counter) and not isinstance(other, Counter):
        return rounded(one + sign * other)
    total = Counter[Hashable](_counter(one))
    total.update({each: sign * count for each, count in _counter(other).items()})
    return total


def _counter(amount: Amount) -> Counter[Hashable]:
    if isinstance(amount, Counter):
        return amount
    if amount:
        raise TypeError(f"{amount} is no collection")
    return Counter()


def is_less(one: Amount, other: Amount) -> bool:
    """True if less has come about: fewer things or smaller numbers, and nothing more."""
    (things, size), (other_things, other_size) = _mass(one), _mass(other)
    same = (things, size) == (other_things, other_size)
    return things <= other_things and size <= other_size and not same


def _mass(value: object) -> tuple[Counter[Hashable], float]:
    """The parts of a value that are no numbers, and the sum of the others."""
    if isinstance(value, int | float | Decimal | Fraction):
        return Counter(), abs(float(value))
    if isinstance(value, Counter):
        counts = cast("Counter[Hashable]", value)
        parts = [_mass(each) for each, count in counts.items() for _ in range(abs(count))]
    elif isinstance(value, tuple | frozenset):
        parts = list(map(_mass, cast("Iterable[object]", value)))
    else:
        return Counter([value]), 0.0
    things = Counter[Hashable]()
    for each, _ in parts:
        things.update(each)
    return things, fsum(size for _, size in parts)


def spelt(value: object) -> str:
    """A change, or what a value was frozen to, in words."""
    if isinstance(value, Counter):
        counts = cast("Counter[Hashable]", value).items()
        each_one = sorted((spelt(each) for each, count in counts for _ in range(abs(count))), key=_by_size)
        return cut(f"[{', '.join(each_one)}]")
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(spelt, cast('Iterable[object]', value)), key=_by_size))}}}"
    return _spelt_tuple(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else described(value)


def _spelt_tuple(value: tuple[object, ...]) -> str:
    parts = list(map(spelt, value))
    if value and isinstance(value[0], type):
        return f"{parts[0]}({', '.join(parts[1:])})"
    return f"({', '.join(parts)})"


def _by_size(text: str) -> tuple[int, str]:
    return len(text), text
