"""A bolt that follows a script: what it does with each value is written down beforehand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from stormlet.core.components import Bolt, Collector
from stormlet.core.tuples import Tuple

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ack:
    """Emit these values anchored to the input, then ack it."""

    emits: Sequence[object] = ()


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail the input."""

    reason: str = ""
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Raise:
    """Raise this."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Hold:
    """Neither ack nor fail the input: the test may do that with ``bolt.ack(value)`` or ``bolt.fail(value)``."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Take so many seconds, then do something else."""

    seconds: float
    then: Ack | Fail | Raise | Hold = field(default_factory=Ack)


Step: TypeAlias = Ack | Fail | Raise | Hold | Delay
Script: TypeAlias = Mapping[Any, Step | Sequence[Step]] | Callable[[Any], Step]


class ScriptedBolt(Generic[T]):
    """The logic of a bolt: ``topology.bolt("write", ScriptedBolt({"bad": [Fail("once"), Ack()]}), rows.shuffle())``.

    The script has a step for a value, or several: one for each time that the value comes, the last one for all
    times after. A function of the value gives the step, too. ``default`` is for values that are not in the script.
    """

    outputs: object = None

    def __init__(self, script: Script | None = None, default: Step | None = None) -> None:
        self.executed: list[T] = []
        """The value of every input, in the order of execution, those of all tasks together."""
        self._script: Script = {} if script is None else script
        self._default = Ack() if default is None else default
        self._times = Counter[object]()
        self._held: list[tuple[Tuple[T], Collector[Any]]] = []

    def __call__(self) -> Bolt[T, Any]:
        """A bolt for one task."""
        return _Follows(self)

    @property
    def held(self) -> list[T]:
        """The values of the inputs that are held."""
        return [tup.value for tup, _ in self._held]

    def ack(self, value: T) -> None:
        """Ack the input with this value that is held longest; raises :class:`KeyError` if there is none."""
        tup, out = self._take(value)
        out.ack(tup)

    def fail(self, value: T, reason: str = "") -> None:
        """Fail the input with this value that is held longest; raises :class:`KeyError` if there is none."""
        tup, out = self._take(value)
        out.fail(tup, reason)

    def _take(self, value: T) -> tuple[Tuple[T], Collector[Any]]:
        for place, (tup, _) in enumerate(self._held):
            if tup.value == value:
                return self._held.pop(place)
        raise KeyError(f"{value!r} is not held; held are {self.held}")

    def follow(self, tup: Tuple[T], out: Collector[Any]) -> Awaitable[None] | None:
        """Do with this input what the script says."""
        self.executed.append(tup.value)
        return self._do(self._step(tup.value), tup, out)

    def _step(self, value: T) -> Step:
        if not isinstance(self._script, Mapping):
            return self._script(value)
        steps = self._script.get(value, self._default) if _is_hashable(value) else self._default
        if not isinstance(steps, Sequence):
            return steps
        time, self._times[value] = self._times[value], self._times[value] + 1
        return steps[min(time, len(steps) - 1)]

    def _do(self, step: Step, tup: Tuple[T], out: Collector[Any]) -> Awaitable[None] | None:
        match step:
            case Ack():
                for value in step.emits:
                    out.emit(value, anchors=tup)
                out.ack(tup)
            case Fail():
                out.fail(tup, step.reason, permanent=step.permanent)
            case Raise():
                raise step.error
            case Hold():
                self._held.append((tup, out))
            case Delay():
                return self._delay(step, tup, out)
        return None

    async def _delay(self, step: Delay, tup: Tuple[T], out: Collector[Any]) -> None:
        await asyncio.sleep(step.seconds)
        self._do(step.then, tup, out)


class _Follows(Bolt[T, Any]):
    def __init__(self, scripted: ScriptedBolt[T]) -> None:
        self._scripted = scripted

    def execute(self, tup: Tuple[T], out: Collector[Any]) -> Awaitable[None] | None:
        return self._scripted.follow(tup, out)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
