"""Open trees, and the table in which an acker keeps those of one age, by root.

Compiled, :class:`TreeTable` is an open-addressing hash table of C: roots are random, so that their lowest bits are the
hash, and each tree knows its own root, so that no keys are kept. A dict has an integer object for each key.
Interpreted, a dict is faster than whatever is written in Python, so :func:`tree_table` gives one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from stormlet.core.directives import is_extension
from stormlet.core.outcomes import Failure
from stormlet.core.tuples import unseen

IS_COMPILED: Final = is_extension(__file__)
if not TYPE_CHECKING and IS_COMPILED:
    import cython
else:
    from stormlet.core import directives as cython

if TYPE_CHECKING:  # functions of C: the declarations beside this file have them
    renewed: Callable[[Any, int], Any]
    release: Callable[[Any], None]
    prefetch_for_put: Callable[[Any, list[OpenTree], int], None]


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
class OpenTree:
    """One tracked message: its checksum, the spout task that waits for its verdict, and in the end the verdict.

    Compiled, the garbage collector does not look into it, as open trees were most of the objects it looked at. The
    verdict breaks a cycle through a tree, and every end of a run gives all verdicts (law C3). Only a loop that is
    closed in the middle of a run gives none, and leaks the cycle. User code never gets hold of a tree.
    """

    __slots__ = ("checksum", "failure", "message_id", "root", "spout")

    def __init__(
        self,
        *,
        root: int = 0,
        message_id: object = None,
        checksum: int = 0,
        spout: int = 0,
        failure: Failure | None = None,
    ) -> None:
        self.root = root
        """The root of the running or last attempt; 0 before the first one that found room."""
        self.checksum = checksum
        self.spout = spout
        """The index of the spout task that gets the verdict."""
        self.message_id = message_id
        """The name of the message at that task."""
        self.failure: Failure | None = failure
        """The failure, once it has failed."""


def new_tree(message_id: object) -> OpenTree:
    """Return the tree of a message that is emitted now."""
    # As calling the class does, at a fraction of the price: one is made for each message.
    tree = OpenTree.__new__(OpenTree)
    tree.root = 0
    tree.checksum = 0
    tree.spout = 0
    tree.message_id = message_id
    tree.failure = None
    return tree


EMPTY: Final = 0
TAKEN_OUT: Final = -1
"""A slot whose tree was taken out: the search for one behind it must go on."""
LEAST: Final = 64
"""Slots of a new table, a power of two."""
_MISSING: Final = object()


@cython.no_gc
@cython.cclass
class TreeTable:
    """A map from roots to open trees, in the order in which they were put; it has what a ledger asks of a dict.

    The trees stand in a list, each where it was put, until it is taken out. Of the slots, of which there are twice as
    many, each names a place in the list, counted from 1. When the list is full, both are made anew without the gaps.
    """

    __slots__ = ("_mask", "_size", "_slots", "_trees")

    def __init__(self) -> None:
        self._make_anew(LEAST, [])

    def __dealloc__(self) -> None:
        if cython.compiled:
            release(self._slots)  # noqa: F821

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        for tree in self._trees:
            if tree is not None:
                yield tree.root

    def __contains__(self, root: object) -> bool:
        return self.get(cast("int", root)) is not None

    def __getitem__(self, root: int) -> OpenTree:
        tree = self.get(root)
        if tree is None:
            raise KeyError(root)
        return tree

    def __setitem__(self, root: int, tree: OpenTree) -> None:
        self.pop(root, None)
        self.put(tree)

    def items(self) -> Iterator[tuple[int, OpenTree]]:
        """The roots with their trees."""
        for tree in self._trees:
            if tree is not None:
                yield tree.root, tree

    def values(self) -> Sequence[OpenTree]:
        """The trees there are now."""
        return [tree for tree in self._trees if tree is not None]

    def get(self, root: int) -> OpenTree | None:
        """Return the tree of this root, or None."""
        slot = self._slot_of(root)
        return None if slot < 0 else self._trees[self._slots[slot] - 1]

    def pop(self, root: int, default: object = _MISSING) -> OpenTree | None:
        """Take out the tree of this root, or return the default. Raises :class:`KeyError` if there is neither."""
        slot = self._slot_of(root)
        if slot < 0:
            if default is _MISSING:
                raise KeyError(root)
            return cast("OpenTree | None", default)
        place = self._slots[slot] - 1
        tree: OpenTree = self._trees[place]
        self._trees[place] = None
        self._slots[slot] = TAKEN_OUT
        self._size -= 1
        return tree

    def clear(self) -> None:
        """Take out all of them."""
        self._make_anew(LEAST, [])

    def put(self, tree: OpenTree) -> None:
        """Put a tree under its root, which must not be there: to search for it would read another tree."""
        if 2 * len(self._trees) > self._mask:
            self._make_room()
        self._trees.append(tree)
        self._enter(tree.root, len(self._trees))
        self._size += 1

    def _enter(self, root: int, place: int) -> None:
        slot = root & self._mask
        while self._slots[slot] > EMPTY:
            slot = (slot + 1) & self._mask
        self._slots[slot] = place

    def _slot_of(self, root: int) -> int:
        """The slot of this root, or -1."""
        slot = root & self._mask
        place = self._slots[slot]
        while place != EMPTY:
            if place > EMPTY:
                tree = self._trees[place - 1]
                if tree.root == root:
                    return slot
            slot = (slot + 1) & self._mask
            place = self._slots[slot]
        return -1

    def _make_room(self) -> None:
        trees = [tree for tree in self._trees if tree is not None]
        slots = LEAST
        while slots < 4 * len(trees):  # at least half of the places are free then
            slots *= 2
        self._make_anew(slots, trees)
        for place, tree in enumerate(trees):
            if cython.compiled:
                prefetch_for_put(self, trees, place)  # noqa: F821
            self._enter(tree.root, place + 1)

    def _make_anew(self, slots: int, trees: list[OpenTree]) -> None:
        self._slots: Any = renewed(self._slots, slots) if cython.compiled else [EMPTY] * slots  # noqa: F821
        self._mask = slots - 1
        self._size = len(trees)
        self._trees: list[Any] = unseen(trees)  # trees, and None where one was taken out


def tree_table() -> dict[int, OpenTree]:
    """Return an empty map from roots to open trees: a dict, or compiled a :class:`TreeTable`."""
    return cast("dict[int, OpenTree]", TreeTable()) if cython.compiled else {}
