"""The tuple as bolts see it, and what the engine must know of it.

A ``Tuple`` is one delivery: every copy that reaches a task is an object of its own with an edge id of its own
(law L1). Fields that are the same for many tuples stand once: ``Source`` per producing task and stream,
``Lineage`` per message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import Context
from functools import lru_cache
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, cast

import msgspec

from stormlet.core.directives import is_extension
from stormlet.core.schema import Schema

T_co = TypeVar("T_co", covariant=True)

IS_COMPILED: Final = is_extension(__file__)
if not TYPE_CHECKING and IS_COMPILED:
    import cython
else:
    from stormlet.core import directives as cython

if TYPE_CHECKING:  # functions of C: the declarations beside this file have them
    may_refer: Callable[[object], bool]
    untrack: Callable[[object], None]
    value_as_member: Callable[[type], None]

OPEN: Final = 0
HELD: Final = 1
ACKED: Final = 2
FAILED: Final = 3
LOST: Final = 4
"""Failed because its task died: what the dead instance still does with it changes nothing."""
VERBS: Final = ("has open", "has open", "acked", "failed", "has lost")
"""What a state says in a message, by state."""


class Source:
    """Where tuples come from: one stream of one task."""

    __slots__ = ("component", "schema", "stream", "task")

    def __init__(self, component: str, stream: str, task: int, schema: Schema) -> None:
        self.component = component
        self.stream = stream
        self.task = task
        self.schema = schema


class Lineage(msgspec.Struct, eq=False):
    """What a message's tuples inherit from it along their anchors."""

    attempt: int = 1
    origin: object = None
    context: Context | None = None
    """The context variables of the spout or host, or None where they are those of the topology (law B10)."""

    def of_next_attempt(self) -> Lineage:
        """The same for a replay."""
        if self.origin is None and self.context is None:
            return _replayed(self.attempt + 1)
        return Lineage(self.attempt + 1, self.origin, self.context)


@lru_cache(maxsize=128)
def _replayed(attempt: int) -> Lineage:
    """Of replays that say nothing of themselves: shared, as the plain one is, for many may be replayed at once."""
    return Lineage(attempt)


PLAIN: Final = Lineage()
"""The lineage of first attempts that say nothing of themselves; shared by nearly all tuples.

Whatever needs more care than the shortest way through a bolt has another one: replays, origins, contexts,
joined tuples."""

_JOINED: Final = Lineage()


def joined(lineages: Iterable[Lineage]) -> Lineage:
    """What an output anchored to several inputs inherits: the highest attempt, the first origin and the first
    context."""
    distinct = list(dict.fromkeys(lineages))
    if len(distinct) == 1:
        return distinct[0]
    attempt = max(each.attempt for each in distinct)
    origin = next((each.origin for each in distinct if each.origin is not None), None)
    context = next((each.context for each in distinct if each.context is not None), None)
    return Lineage(attempt, origin, context)


@cython.freelist(1024)
@cython.trashcan(True)
@cython.cclass
class Delivered:
    """One value delivered to one task: what a :class:`Tuple` is at run time. Type checkers know it as generic in its
    value, which a class that can be laid out as a C structure cannot be.

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
        """What was emitted. It must not be changed: replicas and replays share it (law B10)."""
        self.source = source
        self.lineage = lineage
        self.root = root
        """The root of the only tree it belongs to; 0 if it is untracked or belongs to several."""
        self.edge = edge
        """Its edge id XOR those of everything anchored to it so far: what its ack will tell the acker (law L2)."""
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
        """Which attempt at its message this is, from 1; the highest one where several messages are joined."""
        return self.lineage.attempt

    @property
    def origin(self) -> object:
        """What its source said of itself, inherited through the anchors; None if it said nothing."""
        return self.lineage.origin

    @property
    def roots(self) -> tuple[int, ...]:
        """The roots of the trees it belongs to; empty if it is untracked."""
        return (self.root,) if self.root else ()

    def edges(self) -> Mapping[int, int]:
        """By root, what the ack of this tuple tells the acker (law L2)."""
        return {self.root: self.edge} if self.root else {}

    def __getitem__(self, field: str) -> object:
        """The value of a declared field; raises :class:`KeyError` naming the fields that exist."""
        return self.source.schema.get(self.value, field)

    def __repr__(self) -> str:
        return f"<Tuple {self.value!r} from {self.component!r} (task {self.task}), stream {self.stream!r}>"


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

    def __init__(self, value: object, source: Source, lineage: Lineage, by_root: Mapping[int, int]) -> None:
        super().__init__(value, source, lineage, 0, 0)
        self.by_root = by_root
        """The edges that it was delivered with."""

    @property
    def roots(self) -> tuple[int, ...]:
        """The roots of all its trees."""
        return tuple(self.by_root)

    def edges(self) -> Mapping[int, int]:
        """By root, what the ack of this tuple tells the acker: everything anchored to it joined all its trees
        under one edge (Storm's ``ackVal``)."""
        return {root: edge ^ self.edge for root, edge in self.by_root.items()}


def plain_tuple(value: object, source: Source, lineage: Lineage, root: int, edge: int) -> Any:
    """A :class:`Tuple` of at most one tree. The same as calling the class, at three quarters of the price, of which a
    cast would be another one."""
    tup = Delivered.__new__(Delivered)
    tup.value = value
    tup.source = source
    tup.lineage = lineage
    tup.root = root
    tup.edge = edge
    tup.state = OPEN
    if IS_COMPILED and lineage is PLAIN and not may_refer(value):  # noqa: F821
        untrack(tup)  # noqa: F821 - no cycle can go through it: the collector need not look at all that a bolt holds
    return tup


def unseen(tuples: list[Any]) -> list[Any]:
    """The list, into which the garbage collector does not look where the modules are compiled: a copy of all that a
    bolt holds, for a while. Whoever has it must let it go, as a cycle through it is not found."""
    if IS_COMPILED:
        untrack(tuples)  # noqa: F821
    return tuples


def joined_tuple(value: object, source: Source, lineage: Lineage, edges: Mapping[int, int]) -> AnyTuple:
    """A tuple that was delivered with these edges, by root; its lineage is never the plain one."""
    lineage = _JOINED if lineage is PLAIN else lineage
    return cast("AnyTuple", JoinedTuple(value, source, lineage, edges))
