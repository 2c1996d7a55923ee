"""Stream groupings: the choice of the consumer tasks of each value.

Theory of operation
-------------------
A grouping exists in three parts, each with an owner of its own:

- the *spec*, a frozen :class:`Grouping`: the user's declaration, part of the description and shared by all;
- the *routes*: the tasks of those keys that have been met, shared by the tasks of one producer;
- the *chooser*, a :class:`One` or a :class:`Many`: the state that one producer task keeps for one consumer.

The spec makes the other two when a run is assembled. A chooser of the kind ``One`` sends each value to exactly one
task. Nearly all groupings are of this kind, and an outlet for them delivers without making a list. Choosers answer with
indexes into the consumer's targets, so that nothing on the hot path looks up a task id.

*Shuffle* draws the order of the targets once and then goes round. That is cheaper than a draw for each tuple, and it
keeps Storm's promise that after n·k tuples each of n tasks got exactly k. Each producer task draws an order of its own,
so that the tasks of one producer do not all begin with the same consumer.

*Fields* takes the key's stable hash modulo the number of tasks, so that a key goes to the same task in every run and
process. No state is needed for that, but the hash of a key costs more than a look into a dict: hence the routes.

*Partial key* gives each key two candidates by the same hash and takes the one to which this producer task has sent
less. Tasks of a producer do not compare their counts; each evens out its own output, and so the sum is even, too.

Routes are keyed by ``==``, which is right because equal keys have equal hashes. A key that Python cannot look up, such
as a list, a dict or a mutable record, raises a TypeError there, and its route is computed each time. The same holds
for whatever else its own ``__hash__`` raises: the stable hash decides.

The names are Storm's, and so is the behaviour of shuffle, partial_key, all and global.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import cycle
from random import Random
from typing import ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

import msgspec

from stormlet.core.keys import KEYS, stable_hash, type_name
from stormlet.core.shortened import shortened, text_of
from stormlet.errors import InvalidEmit, StormletError, UnroutableKey

KeyFunction: TypeAlias = Callable[[object], object]
FieldNames: TypeAlias = tuple[str | int, ...]
"""The fields that make a key, by name or position, as the user gave them."""
_Route = TypeVar("_Route")

CACHED_KEYS = 65_536
"""Keys whose routes all tasks of a producer together remember before all are forgotten."""


class One:
    """A chooser that sends each value to exactly one task."""

    __slots__ = ()

    def pick(self, value: object) -> int:
        """Return the index of the task that gets the value."""
        raise NotImplementedError


class Many(ABC):
    """A chooser that sends each value to any number of tasks, none included."""

    __slots__ = ()

    @abstractmethod
    def choose(self, value: object) -> Sequence[int]:
        """Return the indexes of the tasks that get the value. The caller must not change the sequence."""


Chooser: TypeAlias = One | Many


class CustomGrouping(Protocol):
    """Interface of the user's own grouping, for ``stream.custom(...)``; Storm's CustomStreamGrouping.

    One object serves every task of the producer: ``prepare`` is called once for each of them, with the same
    targets.
    """

    def prepare(self, targets: Sequence[int]) -> None:
        """Take note of the consumer's task ids, in ascending order."""

    def choose(self, value: object) -> Sequence[int]:
        """Return the ids of the tasks that get the value: any of the targets, or none at all."""
        ...


class Grouping(msgspec.Struct, frozen=True):
    """Base of all specs."""

    name: ClassVar[str]

    def chooser(
        self, targets: Sequence[int], random: Random, label: str = "", routes: AnyRoutes | None = None
    ) -> Chooser:
        """Make the chooser of one producer task for the consumer tasks ``targets``: at least one, ascending.

        ``random`` is the producer task's own (law L16). ``label`` names the two ends in error messages, as in
        ``"'split' -> 'count'"``. ``routes`` are those that :meth:`routes` has made for as many tasks, if others share
        them.
        """
        raise NotImplementedError

    def routes(self, tasks: int, label: str = "") -> AnyRoutes | None:
        """Make the routes that the choosers of several producer tasks may share for this number of consumer tasks,
        whatever function gives them their keys; None for a grouping without routes."""
        return None

    def title(self, label: str) -> str:
        """Return the name of this grouping in error messages."""
        return f"{self.name} grouping of {label}" if label else f"{self.name} grouping"


class Shuffle(Grouping, frozen=True):
    """After n·k tuples each of n tasks got exactly k; Storm's ShuffleGrouping."""

    name: ClassVar[str] = "shuffle"

    def chooser(
        self, targets: Sequence[int], random: Random, label: str = "", routes: AnyRoutes | None = None
    ) -> One:
        """Draw the order of the tasks once; the chooser then goes round."""
        order = list(range(len(targets)))
        random.shuffle(order)
        return _RoundRobin(order)


class LocalOrShuffle(Shuffle, frozen=True):
    """Storm prefers tasks of the same worker; in one process all are, so this is shuffle."""

    name: ClassVar[str] = "local_or_shuffle"


class NoGrouping(Shuffle, frozen=True):
    """No preference: equivalent to shuffle, as in Storm's documentation."""

    name: ClassVar[str] = "none"


class Fields(Grouping, frozen=True):
    """Equal keys go to the same task, in every run and process; without a key function the whole value is the
    key."""

    key: KeyFunction | None = None
    names: FieldNames = ()
    """The fields that ``key`` reads; empty for a key function and for the whole value."""
    name: ClassVar[str] = "fields"

    def chooser(
        self, targets: Sequence[int], random: Random, label: str = "", routes: AnyRoutes | None = None
    ) -> One:
        """Make a chooser that raises :class:`UnroutableKey` for a key without a stable hash."""
        if not isinstance(routes, _TaskOfKey):
            routes = self.routes(len(targets), label)
        is_only = len(targets) == 1
        return _ByValue(routes, is_only) if self.key is None else _ByKey(routes, is_only, self.key)

    def routes(self, tasks: int, label: str = "") -> _TaskOfKey:
        """The task of each key."""
        return _TaskOfKey(tasks, self.title(label), self.names)


class PartialKey(Grouping, frozen=True):
    """Each key has two tasks, and each value goes to the one that got less so far; Storm's PartialKeyGrouping."""

    key: KeyFunction | None = None
    names: FieldNames = ()
    """The fields that ``key`` reads; empty for a key function and for the whole value."""
    name: ClassVar[str] = "partial_key"

    def chooser(
        self, targets: Sequence[int], random: Random, label: str = "", routes: AnyRoutes | None = None
    ) -> One:
        """Make a chooser that raises :class:`UnroutableKey` for a key without a stable hash."""
        if not isinstance(routes, _TasksOfKey):
            routes = self.routes(len(targets), label)
        return _LessLoaded(routes, len(targets), self.key)

    def routes(self, tasks: int, label: str = "") -> _TasksOfKey:
        """The two tasks of each key."""
        return _TasksOfKey(tasks, self.title(label), self.names)


class All(Grouping, frozen=True):
    """Every task gets a copy; Storm's AllGrouping."""

    name: ClassVar[str] = "all"

    def chooser(
        self, targets: Sequence[int], random: Random, label: str = "", routes: AnyRoutes | None = None
    ) -> Many:
        """Return a chooser whose answer is always the same."""
        return _Everyone(len(targets))


class Global(Grouping, frozen=True):
    """Everything goes to the task with the lowest id; Storm's GlobalGrouping."""

    name: ClassVar[str] = "global"

    def chooser(
        self, targets: Sequence[int], random: Random, label: str = "", routes: AnyRoutes | None = None
    ) -> One:
        """Return a chooser of the first target, as targets are in ascending order."""
        return _First()


class Direct(Grouping, frozen=True):
    """The producer names the task in each emit, so nothing is left to choose."""

    name: ClassVar[str] = "direct"

    def chooser(
        self, targets: Sequence[int], random: Random, label: str = "", routes: AnyRoutes | None = None
    ) -> Chooser:
        """Raise :class:`InvalidEmit`: an emit to this consumer must name its task."""
        raise InvalidEmit(f"{self.title(label)}: the emit needs task=")


class Custom(Grouping, frozen=True):
    """The user's own grouping; see :class:`CustomGrouping`."""

    grouping: CustomGrouping
    name: ClassVar[str] = "custom"

    def chooser(
        self, targets: Sequence[int], random: Random, label: str = "", routes: AnyRoutes | None = None
    ) -> Many:
        """Prepare the user's object; the chooser raises :class:`InvalidEmit` for a task that is none of the
        targets."""
        self.grouping.prepare(tuple(targets))
        return _Chosen(self.grouping, targets, self.title(label))


class _RoundRobin(One):
    __slots__ = ("_next",)

    def __init__(self, order: Sequence[int]) -> None:
        self._next = cycle(order).__next__  # goes round in C, without an index of its own

    def pick(self, value: object) -> int:
        return self._next()


class _First(One):
    __slots__ = ()

    def pick(self, value: object) -> int:
        return 0


class _Everyone(Many):
    __slots__ = ("_indexes",)

    def __init__(self, tasks: int) -> None:
        self._indexes = tuple(range(tasks))

    def choose(self, value: object) -> Sequence[int]:
        return self._indexes


class _Chosen(Many):
    __slots__ = ("_choose", "_index", "_title")

    def __init__(self, grouping: CustomGrouping, targets: Sequence[int], title: str) -> None:
        self._choose = grouping.choose
        self._index = {task: index for index, task in enumerate(targets)}
        self._title = title

    def choose(self, value: object) -> Sequence[int]:
        try:
            chosen = self._choose(value)
        except Exception as error:
            raise InvalidEmit(f"{self._title} raised {shortened(error)} for {shortened(value)}") from error
        try:
            return [self._index[task] for task in chosen]
        except (KeyError, TypeError):  # TypeError: the answer is no sequence, or an id in it cannot be hashed
            raise InvalidEmit(f"{self._title} chose {chosen!r}; its tasks are {list(self._index)}") from None


class _Routes(ABC, Generic[_Route]):
    """The routes of keys: those that are ``known``, and the rule for all others.

    ``known`` never grows past ``CACHED_KEYS`` and is then cleared: learning the routes again costs less per key than
    keeping an order of use.
    """

    __slots__ = ("_names", "_tasks", "_title", "known")

    def __init__(self, tasks: int, title: str, names: FieldNames) -> None:
        self._tasks = tasks
        self._title = title
        self._names = names
        self.known: dict[object, _Route] = {}

    def learn(self, key: object) -> _Route:
        """Find the route of a key that is not known yet."""
        route = self.of(key)
        if len(self.known) >= CACHED_KEYS:
            self.known.clear()
        self.known[key] = route
        return route

    def of(self, key: object) -> _Route:
        """Find the route of a key without the cache. This works for keys that Python cannot hash, too."""
        try:
            return self._route(stable_hash(key))
        except Exception as error:  # which names the type alone; here the grouping is known
            raise UnroutableKey(
                f"{self._title}{self._field(key)}: {_reason(key, error)}; {WAY_OUT}"
            ) from None

    def _field(self, key: object) -> str:
        """Name the field whose value has no route, where the key is made of fields."""
        names, parts = self._names, key if len(self._names) > 1 else (key,)
        found = (
            name for name, part in zip(names, cast("FieldNames", parts), strict=False) if not _has_hash(part)
        )
        return next((f", field {name!r}" for name in found), "")

    def refuse_unread(self, value: object, error: Exception) -> None:
        """Raise :class:`InvalidEmit` where a value has not had the fields that make its key; what a key function has
        raised is left as it is."""
        if not self._names or isinstance(error, StormletError):
            return
        fields = f"field{'s' if len(self._names) > 1 else ''} {', '.join(map(repr, self._names))}"
        raise InvalidEmit(
            f"{self._title}: {shortened(value)}, of type {type_name(type(value))}, cannot be asked for its {fields} "
            f"({type(error).__name__}: {text_of(error)}); emit values that have it, or group by a function of the value"
        ) from None

    @abstractmethod
    def _route(self, hashed: int) -> _Route:
        """Return the route of a key with this hash."""


WAY_OUT = "group by a function of the value that returns one of these"


def _reason(key: object, error: Exception) -> str:
    if isinstance(error, UnroutableKey):
        return str(error)
    is_endless = isinstance(error, RecursionError)
    why = "it is nested too deeply, or has itself inside" if is_endless else shortened(error)
    return f"a key of type {type_name(type(key))} has no stable hash ({why}); {KEYS}"


def _has_hash(part: object) -> bool:
    try:
        stable_hash(part)
    except Exception:
        return False
    return True


class _TaskOfKey(_Routes[int]):
    __slots__ = ()

    def _route(self, hashed: int) -> int:
        return hashed % self._tasks


class _TasksOfKey(_Routes[tuple[int, int]]):
    """Two distinct candidates for each key, every pair equally likely; a single task stands twice."""

    __slots__ = ()

    def _route(self, hashed: int) -> tuple[int, int]:
        # The second comes from the quotient that the first leaves over. A crc32 with another seed would not do: the two
        # checksums differ by a constant for all keys of one length, which leaves few of the pairs.
        rest, first = divmod(hashed, self._tasks)
        # At least one step on, and less than a whole round: the second is never the first.
        step = 1 + rest % (self._tasks - 1) if self._tasks > 1 else 0
        return first, (first + step) % self._tasks


AnyRoutes: TypeAlias = _TaskOfKey | _TasksOfKey
"""Routes of either kind."""


# The lookups below are spelled out in each class because a call would cost as much again. A task that is the only one
# gets every key that has a stable hash, which texts and numbers always have.


class _ByValue(One):
    __slots__ = ("_is_only", "_known", "_routes")

    def __init__(self, routes: _TaskOfKey, is_only: bool) -> None:
        self._routes = routes
        self._known = routes.known
        self._is_only = is_only

    def pick(self, value: object) -> int:
        if self._is_only and (type(value) is str or type(value) is int):
            return 0
        try:
            route = self._known.get(value)
        except Exception:
            return self._routes.of(value)
        return self._routes.learn(value) if route is None else route


class _ByKey(One):
    __slots__ = ("_is_only", "_key", "_known", "_routes")

    def __init__(self, routes: _TaskOfKey, is_only: bool, key: KeyFunction) -> None:
        self._routes = routes
        self._known = routes.known
        self._is_only = is_only
        self._key = key

    def pick(self, value: object) -> int:
        key = None
        try:
            key = self._key(value)
            if self._is_only and (type(key) is str or type(key) is int):
                return 0
            route = self._known.get(key)
        except Exception as error:
            if key is None:  # which can be looked up
                self._routes.refuse_unread(value, error)
                raise
            return self._routes.of(key)
        return self._routes.learn(key) if route is None else route


class _LessLoaded(One):
    """The first of two candidates, unless the second got less from this producer task."""

    __slots__ = ("_counts", "_key", "_known", "_routes")

    def __init__(self, routes: _TasksOfKey, tasks: int, key: KeyFunction | None) -> None:
        self._routes = routes
        self._known = routes.known
        self._counts = [0] * tasks
        self._key = key

    def pick(self, value: object) -> int:
        key = None
        try:
            key = value if self._key is None else self._key(value)
            route = self._known.get(key)
        except Exception as error:
            if key is None:
                self._routes.refuse_unread(value, error)
                raise
            route = self._routes.of(key)
        first, second = self._routes.learn(key) if route is None else route
        counts = self._counts  # of this producer task alone: shared ones would need a look at all of them
        index = second if counts[second] < counts[first] else first
        counts[index] += 1
        return index
