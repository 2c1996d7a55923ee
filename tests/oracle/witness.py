"""A naive model of a whole run: it stores every tuple tree for the oracle, which judges every outcome.

User code (:mod:`tests.oracle.actors`) reports what it does: what it emits and what that is anchored to, what it
executes, acks and fails. From the description alone the witness knows how many copies of a value each consumer must
get. It knows no ids, no XOR, no ledger and no clock but the simulated one, so that an outcome must come at the very
instant at which it is decided, unless its spout was busy with user code.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stormlet import DeadLetter, Failure, FailureKind
from stormlet.testing.chaos.oracle import Fate, Oracle, StoredTree
from tests.helpers import law_broken, now

TINY = 1e-9


class Value:
    """What travels through the topology; every emit makes a new one."""

    def __init__(self, number: int, key: int, depth: int, kept: bool = False) -> None:
        self.number = number
        self.key = key
        self.depth = depth
        self.kept = kept
        """Whether the engine may emit it several times: it came from a generator, an iterable or the host."""
        self.emissions: dict[int, Emission] = {}
        """By attempt."""

    def __repr__(self) -> str:
        return f"v{self.number}"


@dataclass(frozen=True)
class Said:
    """A failure as the bolt has put it."""

    at: float
    component: str
    task: int | None
    reason: str = ""
    exception: BaseException | None = None
    permanent: bool = False

    def is_told_by(self, failure: Failure) -> bool:
        """Whether the engine tells just this failure; a function bolt does not know its task."""
        task = failure.task if self.task is None else self.task
        told = (failure.component, failure.task, repr(failure.exception), failure.reason, failure.permanent)
        return told == (self.component, task, repr(self.exception), self.reason, self.permanent)


@dataclass(eq=False, repr=False)
class Copy:
    """A value delivered to one task."""

    emission: Emission
    component: str
    task: int | None = None
    executed: bool = False
    acked: bool = False
    failed: Said | None = None
    settled_at: float | None = None

    @property
    def fate(self) -> Fate:
        return Fate.ACKED if self.acked else Fate.FAILED if self.failed is not None else Fate.OPEN

    def __repr__(self) -> str:
        return f"{self.emission.value} at {self.component}: executed {self.executed}, failed {self.failed}"


@dataclass(eq=False)
class Emission:
    """One emit, all its copies, and the trees it belongs to."""

    value: Value
    component: str
    stream: str
    roots: tuple[Attempt, ...]
    at: float
    copies: list[Copy] = field(default_factory=list)


@dataclass(eq=False, kw_only=True)
class Attempt(StoredTree[Copy]):
    """One tracked emit of a spout."""

    component: str
    value: Value
    number: int
    discovered: bool = False
    """Whether the engine has begun it, a replay, which the witness only sees when it is executed."""
    overflowed: bool = False
    """Its emit reached no task, although there are consumers."""

    def fate(self, copy: Copy) -> Fate:
        return copy.fate

    @property
    def by_name(self) -> bool:
        """Whether a spout class knows it, and nobody else keeps it."""
        return not self.value.kept

    @property
    def complete(self) -> bool:
        return not (self.overflowed or self.missing)

    @property
    def completed_at(self) -> float:
        begun = 0.0 if self.discovered else self.began
        return max((copy.settled_at or 0.0 for copy in self.copies), default=begun)

    @property
    def failures(self) -> list[Said]:
        return [copy.failed for copy in self.copies if copy.failed is not None]

    @property
    def is_open(self) -> bool:
        return not (self.outcomes or self.overflowed or self.complete or self.failures)

    def is_touched(self, now: float) -> bool:
        """Whether something happens to it at this very instant."""
        return any(now in (copy.settled_at, copy.emission.at) for copy in self.copies)

    def holders(self, now: float) -> tuple[set[str], set[str]]:
        """The components that surely hold tuples of the tree, and those that may: what happens at this very instant
        may be seen or not."""
        surely = {
            copy.component for copy in self.copies if copy.settled_at is None and copy.emission.at < now
        }
        return surely, {copy.component for copy in self.copies if copy.settled_at in (None, now)}


@dataclass(frozen=True)
class Terms:
    """What was agreed about trees: the options that decide how they end."""

    ackers: int
    timeout: float | None
    buckets: int
    activity: bool
    high_water: int | None


Links = Mapping[tuple[str, str], Sequence[tuple[str, Callable[[Value], int]]]]
"""By component and stream, the consumers and how many copies of a value each gets."""


class Witness(Oracle):
    """Sees everything."""

    def __init__(self, terms: Terms, links: Links, component_of: Mapping[int, str]) -> None:
        super().__init__(law_broken, tolerance=TINY)
        self.timeout = terms.timeout
        if terms.timeout is not None:
            self.latest = terms.timeout * terms.buckets / (terms.buckets - 1)
        self.terms = terms
        self.links = links
        self.component_of = component_of
        self.emissions: list[Emission] = []
        self.attempts: list[Attempt] = []
        self.kept: dict[Value, str] = {}
        """Every value of a kept message, and its spout."""
        self.kept_stream: dict[Value, tuple[str, int | None]] = {}
        self.letters: dict[Value, list[DeadLetter]] = defaultdict(list)
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.deadline: float | None = None
        """When what is left fails with SHUTDOWN, once the end is asked for."""
        self.log: list[str] = []
        """Everything that happened, to compare runs (L16)."""
        self.given_up = 0
        self.unfinished: dict[tuple[str, int | None], None] = {}
        """Tasks that have executed something since their last finish."""
        self._values = 0

    def note(self, what: str) -> None:
        self.log.append(f"{now():.9f} {what}")

    # What actors do.

    def value(self, key: int, depth: int = 0, *, kept: bool = False) -> Value:
        self._values += 1
        return Value(self._values, key, depth, kept)

    def keep(self, value: Value, component: str, stream: str, task: int | None) -> None:
        """A generator yields it, or the host emits it: the engine keeps it until it is settled."""
        self.kept[value] = component
        self.kept_stream[value] = stream, task
        self.note(f"{component} keeps {value}")

    def emitted(
        self,
        value: Value,
        component: str,
        stream: str,
        roots: Iterable[Attempt] = (),
        task: int | None = None,
        reached: Sequence[int] | None = None,
        number: int = 1,
    ) -> Emission:
        """An emit, and if its caller knows it, which tasks it reached. ``number`` is the attempt."""
        distinct = tuple(dict.fromkeys(roots))
        emission = Emission(value, component, stream, distinct, now())
        emission.copies = [
            Copy(emission, consumer) for consumer in self.consumers(component, stream, value, task)
        ]
        if reached is not None:
            expected = Counter(copy.component for copy in emission.copies)
            assert Counter(self.component_of[each] for each in reached) == expected, (value, reached)
        for root in distinct:
            root.copies += emission.copies
        value.emissions[number] = emission
        self.emissions.append(emission)
        self.counts[component]["emitted"] += 1
        self.counts[component]["transferred"] += len(emission.copies)
        self.note(
            f"{component} emits {value} to {[copy.component for copy in emission.copies]} reached {reached}"
        )
        return emission

    def tracked(
        self, value: Value, component: str, stream: str, task: int | None, reached: Sequence[int]
    ) -> Attempt:
        """A spout class emits with a message id."""
        attempt = self.attempt(component, value, 1)
        consumers = self.consumers(component, stream, value, task)
        if consumers and not reached and self.terms.ackers:
            attempt.overflowed = True
            self.check_overflow()
            self.note(f"{component} emits {value} in vain")
        else:
            if consumers:
                self.check_no_overflow()
            self.emitted(value, component, stream, [attempt], task, reached)
        return attempt

    def attempt(self, component: str, value: Value, number: int, *, discovered: bool = False) -> Attempt:
        attempt = Attempt(
            name=f"{component}/{value}#{number}",
            began=now(),
            component=component,
            value=value,
            number=number,
            discovered=discovered,
        )
        self.attempts.append(attempt)
        return attempt

    def consumers(self, component: str, stream: str, value: Value, task: int | None) -> list[str]:
        if task is not None:
            return [self.component_of[task]]
        links = self.links.get((component, stream), ())
        return [consumer for consumer, copies in links for _ in range(copies(value))]

    def executed(self, component: str, value: Value, attempt: int = 1, task: int | None = None) -> Copy:
        """A consumer begins with one of its copies."""
        if value.kept and attempt not in value.emissions:
            self.discover(value, attempt)
        emission = value.emissions[attempt]
        left = [copy for copy in emission.copies if copy.component == component and not copy.executed]
        assert left, f"{component} executes {value} more often than it was delivered"
        copy = left[0]
        copy.executed = True
        copy.task = task
        self.counts[component]["executed"] += 1
        self.unfinished[component, task] = None
        self.note(f"{component}[{task}] executes {value} attempt {attempt}")
        return copy

    def discover(self, value: Value, number: int) -> None:
        """The first sign of an attempt at a kept message."""
        stream, task = self.kept_stream[value]
        attempt = self.attempt(self.kept[value], value, number, discovered=True)
        self.emitted(value, self.kept[value], stream, [attempt], task, number=number)

    def ack(self, copy: Copy) -> None:
        assert copy.settled_at is None
        copy.acked = True
        self._settled(copy, "acks")

    def fail(self, copy: Copy, said: Said) -> None:
        assert copy.settled_at is None
        copy.failed = said
        self._settled(copy, "fails")

    def _settled(self, copy: Copy, verb: str) -> None:
        copy.settled_at = now()
        if self.terms.activity:
            self.reset(copy)
        self.counts[copy.component][verb] += 1
        self.note(f"{copy.component}[{copy.task}] {verb} {copy.emission.value}")

    def reset(self, copy: Copy) -> None:
        for root in copy.emission.roots:
            root.restarts.append(now())

    # What the engine tells.

    def tells(self, attempt: Attempt, failure: Failure | None, *, prompt: bool) -> None:
        """The outcome of an attempt; ``prompt`` if nothing kept its spout from taking note at once."""
        self.note(f"{attempt.name} told {failure}")
        if self.terms.ackers == 0:
            assert (failure, attempt.outcomes) == (None, [])
            attempt.outcomes.append(None)
            return
        exact = prompt and not attempt.discovered
        under_way = not exact or attempt.is_touched(now())
        self.judge(attempt, failure, now() if exact else None, under_way=under_way)
        if failure is None:
            assert not attempt.overflowed
            assert not exact or attempt.completed_at == now(), f"{attempt.name} was complete"
        else:
            self.check_failure(attempt, failure, prompt)

    def check_failure(self, attempt: Attempt, failure: Failure, prompt: bool) -> None:
        done_at = attempt.completed_at if attempt.complete else None
        if prompt and done_at is not None:
            assert done_at == now(), f"{attempt.name} was complete at {done_at}, told {failure}"
        match failure.kind:
            case FailureKind.FAILED:
                said = [each for each in attempt.failures if each.is_told_by(failure)]
                assert said, f"nobody said {failure} of {attempt.name}"
                first = min(each.at for each in attempt.failures)
                assert min(each.at for each in said) == first, f"not the first failure of {attempt.name}"
                assert not prompt or first == now(), f"{attempt.name} failed at {first}"
            case FailureKind.TIMEOUT:
                assert self.timeout is not None
                if prompt and not attempt.discovered:
                    self.check_holders(attempt, failure)
            case FailureKind.OVERFLOW:
                self.check_told_overflow(attempt)
            case FailureKind.SHUTDOWN:
                assert self.deadline is not None
                assert now() >= self.deadline - TINY
            case _:
                raise AssertionError(f"{failure} of {attempt.name}")

    def check_told_overflow(self, attempt: Attempt) -> None:
        assert self.terms.high_water is not None
        self.counts[attempt.component]["overflowed"] += 1
        if not attempt.overflowed:
            # Nobody subscribes; but an emit is refused before its receivers are chosen.
            assert not attempt.copies
            self.counts[attempt.component]["emitted"] -= 1

    def check_holders(self, attempt: Attempt, failure: Failure) -> None:
        assert all(said.at == now() for said in attempt.failures), f"{attempt.name} had failed before"
        surely, maybe = attempt.holders(now())
        assert surely <= set(failure.holders) <= maybe, (attempt.name, failure, surely, maybe)

    def check_overflow(self) -> None:
        """There must be as many open trees as the mark allows, and they are at most those not yet told of (L13)."""
        assert self.terms.high_water is not None
        untold = sum(not attempt.outcomes for attempt in self.attempts)
        assert untold >= 2 * self.terms.high_water or self.kept

    def check_no_overflow(self) -> None:
        """What is surely open must leave room for another (L13); timeouts of what the engine keeps are not told."""
        if self.terms.ackers == 1 and self.terms.high_water is not None:
            surely = sum(attempt.is_open and attempt.by_name for attempt in self.attempts)
            assert surely < 2 * self.terms.high_water

    def buried(self, letter: DeadLetter) -> None:
        """A dead letter, or a message that was left over."""
        value = letter.value
        assert isinstance(value, Value)
        self.letters[value].append(letter)
        self.given_up += 1
        self.note(f"dead letter {value} {letter.attempts} {letter.failure}")

    # The end.

    @property
    def all_acked(self) -> bool:
        """Whether no tree failed, so that no message came too late for its tree."""
        told = any(failure for attempt in self.attempts for failure in attempt.outcomes)
        replays = any(attempt.number > 1 for attempt in self.attempts)
        return not (told or replays or self.given_up or self.deadline is not None)

    def check_acked(self, value: Value) -> None:
        """The engine says that one of its attempts at this message was complete."""
        stream, task = self.kept_stream[value]
        delivered = self.consumers(self.kept[value], stream, value, task)
        complete = any(emission.roots[0].complete for emission in value.emissions.values())
        assert complete or not delivered or self.terms.ackers == 0, f"false ack of {value}"

    def check_host(self, value: Value, failure: Failure) -> None:
        """The last failure of a message of the host."""
        self.given_up += 1
        if failure.kind is FailureKind.FAILED:
            said = [each for emission in value.emissions.values() for each in emission.roots[0].failures]
            assert any(each.is_told_by(failure) for each in said), (value, failure)
        if failure.kind is FailureKind.SHUTDOWN:
            assert self.deadline is not None
            assert now() >= self.deadline - TINY

    def check_collected(self, value: Value, component: str, stream: str, values: Sequence[object]) -> None:
        """What the tree of its last attempt sent to a stream, in the order of the emits (C4)."""
        there = [each for each in self.emissions if (each.component, each.stream) == (component, stream)]
        roots = [emission.roots[0] for emission in value.emissions.values() if emission.roots[0].complete]
        sent = [[each.value for each in there if root in each.roots] for root in roots]
        if not roots and (component, stream) == (self.kept[value], self.kept_stream[value][0]):
            sent = [[value]]  # nobody subscribes to it, so nobody has seen it
        assert list(values) in (sent or [[]])

    def check_letter(self, value: Value, letter: DeadLetter, most: int) -> None:
        """A message that was given up: why, and why each attempt before the last one failed (S6)."""
        history = letter.history
        assert letter.failure == history[-1]
        number = 1
        for failure in history:
            emission = value.emissions.get(number)
            if failure.kind is FailureKind.FAILED:
                assert emission is not None
                assert any(said.is_told_by(failure) for said in emission.roots[0].failures)
            if failure.kind is FailureKind.OVERFLOW:
                assert self.terms.high_water is not None
            number += failure.kind not in (FailureKind.OVERFLOW, FailureKind.SHUTDOWN)
        assert letter.attempts == number - 1
        if letter.failure.kind is FailureKind.SHUTDOWN:
            assert self.deadline is not None
        else:
            assert letter.attempts == most or letter.failure.permanent
        assert not any(failure.permanent for failure in history[:-1])
