"""The state of bolts, from one epoch of a stream to the next.

Theory of operation
-------------------
The state of a bolt is what its instance has changed in itself since ``prepare``. Each epoch has new instances. They
are prepared, then given the state that the epoch before has left, and asked for theirs when the epoch is over. So the
arguments of a constructor are no state, and a new version of a program may change them.

An attribute has changed if it is pickled to other bytes than after ``prepare``. Of those only the number and a hash are
kept, as ``prepare`` may make large things. All attributes that have changed are pickled together, so that what they
share stays shared. What ``prepare`` makes and pickle refuses, such as a connection, is made anew in each epoch. What
the constructor makes must be pickled, as else a change in it would be lost without a word. The context of the task and
what it shares are no state: wherever they stand in one, the next instance finds its own. A class with a
``__getstate__`` of its own says by itself what its state is, as for :mod:`pickle`; None says that it has none.

An instance that dies has lost what it did in the epoch. So it is not replaced: the epoch fails, and is begun again from
the state before it.
"""

from __future__ import annotations

import copyreg
import math
import pickle
from collections import ChainMap
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import blake2b
from io import BytesIO
from typing import Any, Final, NoReturn, TypeAlias, cast

from stormlet.core.tuples import Delivered, JoinedTuple
from stormlet.model.components import BoltBase, SharedObjects, Spout, TaskContext
from stormlet.model.plan import TaskPlan
from stormlet.model.state.keyed import KeyedBolt
from stormlet.runtime.run.kit import Kit

Attributes: TypeAlias = Mapping[str, Any]

NOT_THERE: Final = object()
"""Stands for an attribute that has no value yet."""


class Unsavable(Exception):
    """The state of a bolt cannot be pickled; ``__cause__`` says why."""

    def __init__(self, component: str, attribute: str) -> None:
        super().__init__(component, attribute)
        self.component = component
        self.attribute = attribute
        """The attribute that cannot be."""


class Unfit(Exception):
    """A state cannot be given to the bolt of this component; ``__cause__`` says why."""

    def __init__(self, component: str) -> None:
        super().__init__(component)
        self.component = component


class BoltStates(Kit):
    """Takes and gives the states of the bolts of one partition."""

    def __init__(self) -> None:
        self._bolts: dict[str, BoltBase[Any, Any]] = {}
        self._contexts: Mapping[str, TaskContext] = {}
        self._constructed: dict[str, Attributes] = {}
        self._prepared: dict[str, Mapping[str, _Prepared]] = {}

    def instance(self, plan: TaskPlan, instance: BoltBase[Any, Any] | Spout[Any]) -> None:
        """See :meth:`Kit.instance <stormlet.runtime.run.kit.Kit.instance>`."""
        # What a keyed bolt declares belongs to its task, and what it does not is lost (law K3).
        if isinstance(instance, BoltBase) and not isinstance(instance, KeyedBolt):
            object.__setattr__(instance, "restartable", False)  # as classes may be frozen
            self._bolts[plan.component] = instance
            self._constructed[plan.component] = attributes(instance)

    def prepared(self, contexts: Mapping[str, TaskContext]) -> None:
        """All bolts have been prepared, with these contexts, and nothing was executed. Raise :class:`Unsavable`."""
        self._contexts = contexts
        for component, bolt in self._bolts.items():
            if not has_own_state(bolt):
                self._prepared[component] = {
                    name: _Prepared(value, self._print_of(component, name, value))
                    for name, value in attributes(bolt).items()
                }

    def give(self, saved: bytes) -> None:
        """Give the bolts what :meth:`take` has returned. Raise :class:`Unfit`."""
        states: Mapping[str, bytes] = pickle.loads(saved)
        for component, state in states.items():
            try:
                with _restored_into(self._contexts[component]):
                    _give(self._bolts[component], pickle.loads(state))
            except Exception as error:
                raise Unfit(component) from error

    def take(self) -> bytes:
        """Return the states of all bolts; nothing if none has any. Raise :class:`Unsavable`."""
        states = {id: state for id, bolt in self._bolts.items() if (state := self._state_of(id, bolt))}
        return _pickled(states) if states else b""

    def _print_of(self, component: str, name: str, value: Any) -> _Print | None:
        """The print of an attribute; None if it has none, and ``prepare`` has made it."""
        try:
            return _Print.of(value)
        except Exception as error:
            if value is not self._constructed[component].get(name, NOT_THERE):
                return None
            raise Unsavable(component, name) from error

    def _state_of(self, component: str, bolt: BoltBase[Any, Any]) -> bytes:
        if has_own_state(bolt):
            try:
                state = bolt.__getstate__()
                return b"" if state is None else _pickled(state)
            except Exception as error:
                raise Unsavable(component, "__getstate__()") from error
        before, now = self._prepared[component], attributes(bolt)
        changed = {
            name: value
            for name, value in now.items()
            if name not in before or before[name].differs_from(value)
        }
        try:
            return _pickled(changed) if changed else b""
        except Exception as error:
            raise Unsavable(component, next(filter(partial(_is_unsavable, changed), changed), "")) from error


class _Print:
    """A file that keeps of its content the number of bytes and a hash, and raises beyond ``most`` bytes."""

    __slots__ = ("_hash", "_most", "size")

    def __init__(self, most: float = math.inf) -> None:
        self.size = 0
        self._most = most
        self._hash = blake2b(digest_size=16)

    @classmethod
    def of(cls, value: object, most: float = math.inf) -> _Print:
        """Return that of a pickled value. Raise whatever pickle raises, and ValueError beyond ``most`` bytes."""
        made = cls(most)
        _pickle_into(made, value)
        return made

    def write(self, data: bytes) -> None:
        """Take in what comes next."""
        self.size += len(data)
        if self.size > self._most:
            raise ValueError
        self._hash.update(data)

    def is_of(self, value: object) -> bool:
        """True if this is the print of the value, too."""
        try:
            other = _Print.of(value, self.size)
        except Exception:  # more bytes, or none at all
            return False
        return (self.size, self._hash.digest()) == (other.size, other._hash.digest())


class _Prepared:
    """An attribute as ``prepare`` has left it."""

    __slots__ = ("_print", "_value")

    def __init__(self, value: Any, print_: _Print | None) -> None:
        self._value = value if print_ is None else None
        self._print = print_

    def differs_from(self, value: Any) -> bool:
        """True if the attribute has another value now."""
        return value is not self._value if self._print is None else not self._print.is_of(value)


def _is_unsavable(attributes: Attributes, name: str) -> bool:
    try:
        _pickled(attributes[name])
    except Exception:
        return True
    return False


def _pickled(value: object) -> bytes:
    file = BytesIO()
    _pickle_into(file, value)
    return file.getvalue()


def _pickle_into(file: object, value: object) -> None:
    pickler = pickle.Pickler(cast("Any", file), pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(value)


def _refuse(tup: object) -> NoReturn:
    raise TypeError("an input belongs to its epoch: settle it in flush, and keep its value")


_restoring: Final = ContextVar[TaskContext]("stormlet_restoring")
"""The context of the task whose state is unpickled."""


@contextmanager
def _restored_into(context: TaskContext) -> Generator[None]:
    token = _restoring.set(context)
    try:
        yield
    finally:
        _restoring.reset(token)


def live_context() -> TaskContext:
    """Return it; states are pickled with this in its place."""
    return _restoring.get()


def live_shared() -> SharedObjects:
    """Return the objects that it shares, likewise."""
    return _restoring.get().shared


def _as_live_context(context: TaskContext) -> tuple[Callable[[], TaskContext], tuple[()]]:
    return live_context, ()


def _as_live_shared(shared: SharedObjects) -> tuple[Callable[[], SharedObjects], tuple[()]]:
    return live_shared, ()


_REDUCERS: Final = ChainMap[type, Any](
    {
        # An epoch that has ended knows its inputs no more: to settle them later would do nothing, or raise.
        Delivered: _refuse,
        JoinedTuple: _refuse,
        TaskContext: _as_live_context,
        SharedObjects: _as_live_shared,
    },
    copyreg.dispatch_table,
)
"""Classes whose objects are pickled in another way."""


def has_own_state(bolt: BoltBase[Any, Any]) -> bool:
    """Return True if the class of a bolt says by itself what its state is."""
    return type(bolt).__getstate__ is not object.__getstate__


def attributes(bolt: BoltBase[Any, Any]) -> dict[str, Any]:
    """Return the attributes of a bolt that have a value, those in slots, too."""
    state = cast("Any", object.__getstate__(bolt))
    if not isinstance(state, tuple):
        return dict(state or {})
    of_dict, of_slots = cast("tuple[dict[str, Any] | None, dict[str, Any]]", state)
    return {**(of_dict or {}), **of_slots}


def _give(bolt: BoltBase[Any, Any], state: Any) -> None:
    own: Callable[[Any], None] | None = getattr(bolt, "__setstate__", None)
    if own is not None:
        own(state)
        return
    attributes: Attributes = {**state[0], **state[1]} if isinstance(state, tuple) else state
    for name, value in attributes.items():
        object.__setattr__(bolt, name, value)
