"""The ack values of one task that are on their way to an acker, in two columns: of roots, and of values.

A root may be there several times; the acker XORs all of its values into one checksum, in any order (law L2, L3). The
task has XORed before what it said of one root in a row. Compiled, the columns are arrays of C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from stormlet.core.directives import is_extension

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython

if TYPE_CHECKING:  # functions of C: the declarations beside this file have them
    resized: Callable[[Any, int], Any]
    release: Callable[[Any], None]

FIRST_ROOM: Final = 16


class Acks:
    """Ack values, each with its root."""

    __slots__ = ("_room", "count", "roots", "values")

    def __init__(self, acks: Iterable[tuple[int, int]] = ()) -> None:
        self.count = 0
        self._room: int = 0
        if not cython.compiled:
            self.roots: list[int] = []
            self.values: list[int] = []
        for root, value in acks:
            self.add(root, value)

    def __dealloc__(self) -> None:
        if cython.compiled:
            release(self.roots)  # noqa: F821
            release(self.values)  # noqa: F821

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for place in range(self.count):
            yield self.roots[place], self.values[place]

    def add(self, root: int, value: int) -> None:
        """Note one more value."""
        if cython.compiled:
            if self.count == self._room:
                room = 2 * self._room or FIRST_ROOM
                self.roots = resized(self.roots, room)  # noqa: F821
                self.values = resized(self.values, room)  # noqa: F821
                self._room = room  # last, as either may raise MemoryError
            self.roots[self.count] = root
            self.values[self.count] = value
        else:
            self.roots.append(root)
            self.values.append(value)
        self.count += 1

    def xored(self) -> dict[int, int]:
        """The XOR of the values of each root."""
        xored: dict[int, int] = {}
        for root, value in self:
            xored[root] = xored.get(root, 0) ^ value
        return xored
