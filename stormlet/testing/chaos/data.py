"""The data that the code of a bolt can reach: numbers and collections in its instance, in the variables that its
functions close over, and in the globals that they name; its changes in a run, and the comparison of those of two runs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import fsum
from types import BuiltinMethodType, CellType, CodeType, FunctionType, MethodType
from typing import Any, Final, TypeAlias, cast

from stormlet.core.shortened import cut
from stormlet.testing.chaos.journal import described
from stormlet.testing.images import ATOMS, field_names

MOST_PARTS: Final = 1000
"""Of a collection that is looked into, and of what is found in all."""
DIGITS: Final = 9
"""Of a float that count: the last ones of a sum are others in another order."""

Amount: TypeAlias = float | Counter[Hashable]
"""A number, or how often each thing is in a collection."""
Data: TypeAlias = dict[str, Amount]
"""By where it is."""


def rounded(number: float) -> float:
    """The digits that count."""
    return float(f"{number:.{DIGITS}g}")


def frozen(value: object) -> Hashable:
    """An image of a value that is the same for equal values of two runs, and for lists in another order. Of what cannot
    be looked into it is the class alone."""
    try:
        found = _frozen(value)
        hash(found)
    except Exception:  # a class of the user's may do anything
        return cast("Hashable", type(value))
    return found


def _frozen(value: object) -> Hashable:
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, ATOMS):
        return cast("Hashable", value)
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value).items()
        return frozenset((_frozen(key), _frozen(each)) for key, each in pairs)
    if isinstance(value, tuple):
        return tuple(map(_frozen, cast("Iterable[object]", value)))
    if isinstance(value, list | set | frozenset | deque):
        return frozenset(Counter(map(_frozen, cast("Iterable[object]", value))).items())
    kind, names = cast("Hashable", type(value)), field_names(value)
    return kind if names is None else (kind, *(_frozen(getattr(value, name, None)) for name in names))


def data_of(instance: object | None, logic: object) -> Data:
    """The data that a bolt can reach, by the instance that a class or factory has made, or by its function."""
    code = logic if instance is None else type(instance)
    finder = _Finder(getattr(code, "__module__", None))
    with suppress(Exception):  # a class of the user's may do anything
        if instance is not None:
            finder.look_at_attributes("self", instance)
        for name, value in _reached(code):
            finder.look(name, value)
    return finder.data


class _Finder:
    """Looks into values, each once."""

    def __init__(self, module: str | None) -> None:
        self.data: Data = {}
        self._module = module
        self._seen: dict[int, object] = {}

    def look(self, place: str, value: object) -> None:
        """Note what data there is."""
        if isinstance(value, bool) or len(self.data) >= MOST_PARTS or id(value) in self._seen:
            return
        if isinstance(value, int | float | Decimal | Fraction):
            with suppress(OverflowError):
                self.data[place] = float(value)
            return
        self._seen[id(value)] = value
        if isinstance(value, dict):
            self._look_at_items(place, cast("dict[object, object]", value))
        elif isinstance(value, list | tuple | set | frozenset | deque):
            self._look_at_members(place, cast("list[object]", value))
        elif field_names(value) is not None or (
            type(value).__module__ == self._module and not callable(value)
        ):
            self.look_at_attributes(place, value)

    def look_at_attributes(self, place: str, owner: object) -> None:
        """Of a record, or of an object of the user's own."""
        names = field_names(owner)
        for name in list(getattr(owner, "__dict__", ())) if names is None else names:
            self.look(f"{place}.{name}", getattr(owner, name, None))

    def _look_at_items(self, place: str, items: Mapping[object, object]) -> None:
        for key, value in items.items() if len(items) <= MOST_PARTS else ():
            self.look(f"{place}[{described(key)}]", value)

    def _look_at_members(self, place: str, members: list[object]) -> None:
        if len(members) <= MOST_PARTS:
            self.data[place] = Counter(map(frozen, filter(_is_data, members)))


def _is_data(value: object) -> bool:
    """True if it can be known again in another run."""
    collection = isinstance(value, dict | list | tuple | set | frozenset | deque)
    return collection or isinstance(value, ATOMS) or field_names(value) is not None


def _reached(logic: object) -> Iterator[tuple[str, object]]:
    """Values that functions and classes can reach without being given them."""
    if isinstance(logic, partial):
        made = cast("partial[object]", logic)
        yield from ((f"argument {number}", each) for number, each in enumerate(made.args, 1))
        yield from made.keywords.items()
        yield from _reached(made.func)
    elif isinstance(logic, FunctionType):
        yield from _named_by(logic)
    elif isinstance(logic, MethodType | BuiltinMethodType):
        yield "self", logic.__self__
        yield from _reached(getattr(logic, "__func__", None))
    elif isinstance(logic, type):
        for cls in (each for each in logic.__mro__ if each.__module__ == logic.__module__):
            for name, value in vars(cls).items():
                if not name.startswith("__"):
                    yield f"{cls.__name__}.{name}", value
                yield from _reached(value)


def _named_by(function: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, _content(cell)
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


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
