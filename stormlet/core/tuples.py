"""Tuples: the values that bolts receive, with the ids that make them edges of trees.

Theory of operation
-------------------
A tuple is one *delivery*: every copy that reaches a task is an object of its own with an edge id of its own (law L1).
An acked word count makes several of them per message, so their size and the cost of making one decide the speed of the
whole.

- *The value* is shared by all replicas and replays, and must not be changed (law B10).
- *The tree* is two numbers, ``root`` and ``edge``. ``edge`` begins as the tuple's own edge id; every output that is
  anchored to the tuple is XORed into it. An ack therefore sends a single number, ``edge``, whatever the bolt has
  emitted (law L2). Root 0 means untracked.
- *A tuple of several trees*, an output anchored to inputs with different roots, is a :class:`JoinedTuple`: it keeps the
  edge of each root, and XORs the outputs anchored to it into all of them (law L7).
- *The state* goes from OPEN, if the bolt keeps the tuple beyond its call to HELD, and to ACKED or FAILED. The first
  outcome wins (law L15). LOST is for inputs that failed because their task died: an instance that is still winding up
  may ack them without an error, and without an effect.
- *Everything that many tuples have in common* stands once: :class:`Source` for a stream of a task, :class:`Lineage` for
  a message. Nearly all tuples have the same lineage, :data:`PLAIN`. The shortest way through a bolt tests for that one
  object; replays, origins, contexts and joined tuples take the careful way.

Compiled, a tuple is a structure of C: reading it needs no lookup, and the memory of released ones is used again. A
tuple that no reference cycle can go through is hidden from the garbage collector, as a bolt that holds a million tuples
made a full collection take 140 ms. A generic class cannot be laid out like that, so :class:`Delivered` is not generic,
and ``Tuple[T]`` is generic for type checkers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import Context
from functools import lru_cache
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, cast

import msgspec

from stormlet.core.directives import is_extension

T_co = TypeVar("T_co", covariant=True)

IS_COMPILED: Final = is_extension(__file__)
if not TYPE_CHECKING and IS_COMPILED:
    import cython
else:
    from stormlet.core import directives as cython

if TYPE_CHECKING:
    from stormlet.core.schema import Schema

    # Functions of C: the declarations beside this file have them.
    is_tracked: Callable[[object], bool]
    may_refer: Callable[[object], bool]
    untrack: Callable[[object], None]
    value_as_member: Callable[[type], None]

# The states are ordered: all up to HELD are unsettled. Plain ints, as an attribute of an Enum costs a lookup per tuple.
OPEN: Final = 0
HELD: Final = 1
ACKED: Final = 2
FAILED: Final = 3
LOST: Final = 4
"""Failed because its task died. Acks and fails by the dead instance are ignored."""
VERBS: Final = ("has open", "has open", "acked", "failed", "has lost")
"""Words for a state in messages, by state."""


class Source:
    """Producer of tuples: one stream of one task."""

    __slots__ = ("component", "schema", "stream", "task")

    def __init__(self, component: str, stream: str, task: int, schema: Schema) -> None:
        self.component = component
        self.stream = stream
        self.task = task
        self.schema = schema


# Without ==, so that lineages are compared and hashed by identity, whatever the origin is.
class Lineage(msgspec.Struct, eq=False):
    """Attributes of a message that its tuples inherit along their anchors."""

    attempt: int = 1
    origin: object = None
    context: Context | None = None
    """The context variables of the spout or host, or None where they are those of the topology (law B10)."""
    trace: tuple[Any, ...] = ()
    """The executions that it comes from, where its message is traced: several, if it was joined."""

    def of_next_attempt(self) -> Lineage:
        """Return the lineage of the replay."""
        if self.origin is None and self.context is None and not self.trace:
            return _replayed(self.attempt + 1)
        return Lineage(self.attempt + 1, self.origin, self.context, self.trace)


@lru_cache(maxsize=128)
def _replayed(attempt: int) -> Lineage:
    """Return the lineage of replays without an origin and a context; shared, as many may be replayed at once."""
    return Lineage(attempt)


PLAIN: Final = Lineage()
"""The lineage of first attempts without an origin and a context; shared by nearly all tuples."""

_JOINED: Final = Lineage()
"""The same for joined tuples, which need more care: another object, as the test is for identity."""


def joined(lineages: Iterable[Lineage]) -> Lineage:
    """Return the lineage of an output anchored to several inputs: with the highest attempt, the first origin, the
    first context, and the traces of all."""
    # A dict, not a set, as "first" must be the same in each run with one seed (law L16).
    distinct = list(dict.fromkeys(lineages))
    if len(distinct) == 1:
        return distinct[0]
    attempt = max(each.attempt for each in distinct)
    origin = next((each.origin for each in distinct if each.origin is not None), None)
    context = next((each.context for each in distinct if each.context is not None), None)
    return Lineage(attempt, origin, context, tuple(edge for each in distinct for edge in each.trace))


# The free list, because 700,000 tuples that were each allocated anew also had the garbage collector look around 600
# times. It holds what 64 tasks of each bolt have under way: 600 kB. The trashcan, because a chain of that many tuples,
# each the value of the next, overflowed the stack of C.
@cython.freelist(8192)
@cython.trashcan(True)
@cython.cclass
class Delivered:
    """One value delivered to one task; the class of a :class:`Tuple` at run time.

    Users read ``value``, ``tup["field"]``, ``component``, ``stream``, ``task``, ``attempt``, ``roots`` and
    ``origin``; the other attributes belong to the engine.
    """

    __slots__ = ("edge", "lineage", "root", "source", "state", "value")

    def __class_getitem__(cls, kind: object) -> GenericAlias:
        """``Tuple[str]``."""
        return GenericAlias(cls, kind)

    def __init__(
        self, value: Any, source: Source, lineage: Lineage, root: int, edge: int, state: int = OPEN
    ) -> None:
        self.value = value
        """The emitted value. It must not be changed: replicas and replays share it (law B10)."""
        self.source = source
        self.lineage = lineage
        self.root = root
        """The root of the only tree it belongs to; 0 if it is untracked or belongs to several."""
        self.edge = edge
        """Its edge id XOR those of everything anchored to it so far: the number that its ack sends (law L2)."""
        self.state = state

    @property
    def component(self) -> str:
        """The component that emitted it."""
        return self.source.component

    @property
    def stream(self) -> str:
        """The stream it was emitted on."""
        return self.source.stream

    @property
    def task(self) -> int:
        """The id of the task that emitted it."""
        return self.source.task

    @property
    def attempt(self) -> int:
        """Number of the attempt at its message, from 1; the highest one where several messages are joined."""
        return self.lineage.attempt

    @property
    def origin(self) -> object:
        """Its source's own remark on it, inherited through the anchors; None if there is none."""
        return self.lineage.origin

    @property
    def roots(self) -> tuple[int, ...]:
        """The roots of the trees it belongs to; empty if it is untracked."""
        return (self.root,) if self.root else ()

    def edges(self) -> Mapping[int, int]:
        """Return the numbers that the ack of this tuple sends to the ackers, by root (law L2)."""
        return {self.root: self.edge} if self.root else {}

    def __getitem__(self, field: str) -> object:
        """Return the value of a declared field; raise :class:`KeyError` naming the fields that exist."""
        return self.source.schema.get(self.value, field)

    def __repr__(self) -> str:
        return f"<Tuple {self.value!r} from {self.component!r} (task {self.task}), stream {self.stream!r}>"


# Bolts read the value of every tuple. The interpreter reads a member by itself; for a property it calls a function.
if IS_COMPILED:
    value_as_member(Delivered)  # noqa: F821  # pyright: ignore[reportUnboundVariable]

if TYPE_CHECKING:

    class Tuple(Delivered, Generic[T_co]):
        """One value delivered to one task."""

        value: T_co

else:
    Tuple = Delivered

AnyTuple: TypeAlias = Tuple[Any]


class JoinedTuple(Delivered):
    """A tuple of several trees: an output anchored to inputs with different roots (law L7)."""

    __slots__ = ("by_root",)

    by_root: Mapping[int, int]
    """The edges that it was delivered with."""

    @property
    def roots(self) -> tuple[int, ...]:
        """The roots of all its trees."""
        return tuple(self.by_root)

    def edges(self) -> Mapping[int, int]:
        """Return the numbers that the ack of this tuple sends to the ackers, by root. Everything anchored to it joined
        all its trees under one edge (Storm's ``ackVal``)."""
        return {root: edge ^ self.edge for root, edge in self.by_root.items()}


def plain_tuple(value: object, source: Source, lineage: Lineage, root: int, edge: int) -> Any:
    """Return a :class:`Tuple` of at most one tree."""
    # As calling the class does, at three quarters of the price. The result is Any because a cast would cost a quarter.
    tup = Delivered.__new__(Delivered)
    tup.value = value
    tup.source = source
    tup.lineage = lineage
    tup.root = root
    tup.edge = edge
    tup.state = OPEN
    if IS_COMPILED and not may_refer(value) and (lineage is PLAIN or not is_tracked(lineage)):  # noqa: F821
        untrack(tup)  # noqa: F821 - no cycle can go through it, whatever becomes of it
    return tup


def unseen(tuples: list[Any]) -> list[Any]:
    """Return the list, hidden from the garbage collector where the modules are compiled.

    It is for a short-lived copy of all that a bolt holds. The caller must release it, as a cycle through it would never
    be collected.
    """
    if IS_COMPILED:
        untrack(tuples)  # noqa: F821
    return tuples


def joined_tuple(value: object, source: Source, lineage: Lineage, edges: Mapping[int, int]) -> AnyTuple:
    """Return a tuple of several trees, delivered with these edges by root; its lineage is never the plain one."""
    tup = JoinedTuple.__new__(JoinedTuple)  # see plain_tuple
    tup.value = value
    tup.source = source
    tup.lineage = _JOINED if lineage is PLAIN else lineage
    tup.root = 0
    tup.edge = 0  # from here on it has the outputs anchored to it alone
    tup.state = OPEN
    tup.by_root = edges
    return cast("AnyTuple", tup)
