"""Faults of a simulation: each kind with its rate, or exactly where it strikes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log1p
from random import Random
from typing import Any, TypeAlias

from stormlet.errors import InvalidConfiguration
from stormlet.model.checks.numbers import check_int, is_finite


class FaultKind(StrEnum):
    """The kinds of faults."""

    KILL = "kill"
    """A task dies: a bolt at an input, before or after executing it; a spout or an acker at a message to the
    ackers; and each of them wherever it waits, after a step of its coroutine."""
    ERROR = "error"
    """User code raises: a bolt instead of executing an input or a batch, or with all of its outputs emitted; before or
    after any other method of an instance, ``commit`` too, where a restart follows that the task has left; or a key
    function."""
    SLOW = "slow"
    """A bolt takes up to twenty seconds longer for an input."""
    DELAY = "delay"
    """A message to an acker arrives up to ten seconds later, behind others (law L3)."""
    DUPLICATE = "duplicate"
    """The acks and fails of a message to an acker arrive twice (law L5)."""
    DROP = "drop"
    """The acks and fails of a message to an acker never arrive (law L5)."""
    JUMP = "jump"
    """The clock jumps up to forty seconds ahead, as after a host that has blocked the loop."""
    CROWD = "crowd"
    """Queues and ``max_spout_pending`` are one to three for the whole run."""
    ENGINE = "engine"
    """stormlet itself raises, as an input is delivered or taken, an outcome arrives, or a message goes to an acker. The
    topology crashes, or the message comes again; every message must be counted (laws N1, N2)."""
    CRASH = "crash"
    """With ``state=``, the process is killed after a step of any coroutine, and begins again with what its store has.
    Stores are in memory here."""
    WRITE = "write"
    """With ``state=``, the write of an epoch fails, before it is done or after it: the topology crashes, and begins
    again."""
    SILENCE = "silence"
    """With ``state=``, a source is asked for nothing for up to a minute."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the ``number``-th opportunity, from 1, for this kind at this place."""

    kind: FaultKind
    place: str
    """A task, such as ``split[0]``, or ``clock``, ``queues``, ``store``, ``process``."""
    number: int
    at_step: bool = False
    """True if ``number`` counts the steps of the task's coroutine: it dies after that one, where it waits then, or up
    to five seconds later; of the place ``process``, those of all coroutines."""

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.place}@{'step:' if self.at_step else ''}{self.number}"


@dataclass(frozen=True, slots=True)
class Faults:
    """The probability of each kind of fault at each opportunity; a kind that has 0 does not happen. After ``most``
    faults a run is left in peace, so that it can come to its end; ``engine`` mostly ends it at once, and so is 0 unless
    it is asked for."""

    kill: float = 0.01
    error: float = 0.02
    slow: float = 0.03
    delay: float = 0.05
    duplicate: float = 0.01
    drop: float = 0.01
    jump: float = 0.005
    crowd: float = 0.5
    engine: float = 0.0
    most: int = 20
    crash: float = 0.005
    write: float = 0.05
    silence: float = 0.01

    def __post_init__(self) -> None:
        for kind in FaultKind:
            if not is_finite(self.rate(kind)) or not 0.0 <= self.rate(kind) <= 1.0:
                raise InvalidConfiguration(
                    f"Faults: {kind.value} must be a number from 0 to 1, not {self.rate(kind)!r}"
                )
        check_int("Faults", "most", self.most, 0)

    def rate(self, kind: FaultKind) -> float:
        """Of one kind."""
        rate: float = getattr(self, kind.value)
        return rate


NO_FAULTS = Faults(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, crash=0.0, write=0.0, silence=0.0)

FaultsLike: TypeAlias = Faults | Sequence[Fault] | str
"""Rates, or exactly these; as a text, ``kill=0.1 drop=0`` or ``kill:split[0]@3 drop:count[1]@7``."""

_EXACT = re.compile(r"(\w+):(\S.*?)@(step:)?(\d{1,18})(?:\s+|$)")
"""One of several; the name of a component may have spaces."""
_RATE = re.compile(r"(\w+)=([\d.eE+-]+)")


def read_faults(text: str) -> Faults | Sequence[Fault]:
    """Read what a command line says; "none" is no fault at all.

    Raises :class:`~stormlet.errors.InvalidConfiguration`, with what is understood.
    """
    listed = text.replace(",", " ").strip()
    if listed == "none":
        return NO_FAULTS
    exact = list(_EXACT.finditer(listed))
    if exact and "".join(match[0] for match in exact) == listed:
        return [_exact(match) for match in exact]
    rates = [_RATE.fullmatch(word) for word in listed.split()]
    if not all(rates):
        raise InvalidConfiguration(
            f"faults {text!r}: write rates such as 'kill=0.1 drop=0', exact ones such as 'kill:split[0]@3', or 'none'"
        )
    given: dict[str, Any] = {_kind(match[1]).value: _rate(match[2]) for match in rates if match}
    return replace(Faults(), **given)


def _exact(match: re.Match[str]) -> Fault:
    fault = Fault(_kind(match[1]), match[2], int(match[4]), at_step=match[3] is not None)
    if fault.at_step and fault.kind not in AT_STEPS:
        raise InvalidConfiguration(f"fault {str(fault)!r}: only kills and crashes strike at a step")
    return fault


def _kind(text: str) -> FaultKind:
    try:
        return FaultKind(text)
    except ValueError:
        kinds = ", ".join(kind.value for kind in FaultKind)
        raise InvalidConfiguration(f"there is no fault {text!r}, only {kinds}") from None


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0.0 <= rate <= 1.0:
        raise InvalidConfiguration(f"the rate of a fault is a number from 0 to 1, not {text!r}")
    return rate


PROCESS = "process"
"""The place of crashes."""
AT_STEPS = (FaultKind.KILL, FaultKind.CRASH)
STEPS_PER_INPUT = 4
"""About how many steps of coroutines a run takes for each input: so much rarer is a kill at one."""


class Injector:
    """Decides at each opportunity whether a fault happens: by the seed, or by an exact list."""

    def __init__(self, seed: int, faults: Faults | Iterable[Fault]) -> None:
        self.injected: list[Fault] = []
        """Those that have happened, in order."""
        self._seed = seed
        self._rates = {kind: faults.rate(kind) for kind in FaultKind} if isinstance(faults, Faults) else None
        self._most = faults.most if isinstance(faults, Faults) else None
        self._exact = frozenset[Fault]() if isinstance(faults, Faults) else frozenset(faults)
        self._random = Random(f"{seed}/faults").random
        self._opportunities = Counter[tuple[FaultKind, str]]()
        self.steps = Counter[str]()
        """The steps of coroutines so far, by task, and all of them by :data:`PROCESS`."""
        self._random_of_steps = Random(f"{seed}/steps").random
        self._log_spared: dict[FaultKind, float] = {}
        if self._rates is not None:
            self._log_spared = {
                FaultKind.KILL: log1p(-self._rates[FaultKind.KILL] / STEPS_PER_INPUT),
                FaultKind.CRASH: log1p(-min(self._rates[FaultKind.CRASH], 0.5)),
            }

    @property
    def missed(self) -> Sequence[Fault]:
        """Those of an exact list that have not happened."""
        return sorted(self._exact.difference(self.injected), key=str)

    def check_places(self, tasks: Iterable[str]) -> None:
        """Raises :class:`~stormlet.errors.InvalidConfiguration` for an exact fault at a place that there is not."""
        known = [*tasks, "clock", "queues", "store", PROCESS]
        for fault in self._exact:
            if fault.place not in known:
                raise InvalidConfiguration(
                    f"fault {str(fault)!r}: there is no {fault.place!r} here, only {', '.join(known)}"
                )

    def strikes(self, kind: FaultKind, place: str) -> Random | None:
        """An opportunity: None if nothing happens, else where the fault takes its size from."""
        if kind is FaultKind.ENGINE and self._rates is not None and not self._rates[kind]:
            return None  # and nothing is drawn, so that seeds do the same as without this kind
        key = (kind, place)
        self._opportunities[key] += 1
        if self._rates is not None:
            if self._random() >= self._rates[kind] or len(self.injected) == self._most:
                return None
            fault = Fault(kind, place, self._opportunities[key])
        else:
            fault = Fault(kind, place, self._opportunities[key])
            if fault not in self._exact:
                return None
        return self._inject(fault)

    def next_step(self, kind: FaultKind, place: str) -> int:
        """The next step at this place after which it is to die; 0 if there is none."""
        after = self.steps[place]
        if self._rates is None:
            wanted = (
                each.number
                for each in self._exact
                if each.at_step and (each.kind, each.place) == (kind, place)
            )
            return min((number for number in wanted if number > after), default=0)
        if not self._log_spared[kind]:
            return 0
        return after + 1 + int(log1p(-self._random_of_steps()) / self._log_spared[kind])

    def strikes_at_step(self, kind: FaultKind, place: str) -> Random | None:
        """The place has come to a step that :meth:`next_step` has named: None if it is spared."""
        if len(self.injected) == self._most:
            return None
        return self._inject(Fault(kind, place, self.steps[place], at_step=True))

    def _inject(self, fault: Fault) -> Random:
        self.injected.append(fault)
        return Random(f"{self._seed}/{fault}")
