"""Comparisons of runs of the same input: what must be the same, and is not.

A run in which nothing fails is held against runs in which calls of user code come one at a time: in the order of the
inputs, and in any order in which they could have ended. What these agree on, whatever takes how long, and is less where
calls overlap, was lost between an ``await`` and the next line. What those in order agree on, and no others, depends on
which call ends first. What differs even there depends on time, on chance, or on who gets which input, and is nobody's
fault.

A run in which something fails shows what replays do: of a ``Spout`` class that never emits again what has failed, and
of a join that takes the replay of its first input for the second one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, product
from typing import Final, TypeAlias

from stormlet.errors import StormletError
from stormlet.testing.chaos.data import is_less, spelt
from stormlet.testing.chaos.evidence import (
    FINISHES,
    KEEPS,
    Evidence,
    Left,
    Result,
    Results,
    SeedResult,
    Way,
)
from stormlet.testing.chaos.faults import NO_FAULTS, Fault, FaultKind, Faults

RunOnce: TypeAlias = Callable[[int, Faults | Iterable[Fault], Way], SeedResult]
"""Runs the topology under a seed and collects the results."""
KINDS: Final = frozenset({"joins", "replays", "updates", "order", "state"})
HARMLESS: Final = frozenset({FaultKind.SLOW, FaultKind.CROWD, FaultKind.SILENCE})
"""After these nothing is replayed, unless it times out."""
IN_ORDER, IN_ANY_ORDER = 8, 24
"""Runs that must agree before somebody is accused."""
LEAST_FAILURES: Final = 3
NO_JOIN: Final = (
    "as long as nothing fails it joins what comes on different streams, but a message may come twice: hold the new one "
    "instead, and ack the first"
)
NO_REPLAY: Final = (
    "emit it again after fail(), or derive from ReliableSpout; of what has no message_id nobody expects that"
)
OLD_AFTERWARDS: Final = (
    "what is read before an await may be old after it; "
    "read and write without one between them, or hold an asyncio.Lock"
)
WHO_IS_FIRST: Final = (
    "it depends on which call of a bolt with concurrency ends first; "
    "make it the same in any order, or set concurrency=1"
)
NOT_THE_SAME: Final = (
    "each message counts once in it, whatever fails; a bolt may work with nothing that it keeps in another place, such "
    "as an attribute that is no declared state"
)
LEAST_SEEDS, ENOUGH_SEEDS, MOST_SUSPECTS = 10, 200, 50


class Compared:
    """The results of a simulation that are compared with others, when all its seeds are done: what a topology does to
    the world outside must not come between the run of a seed and what ``on_seed`` has to say of it."""

    def __init__(self, run: RunOnce, allowed: Collection[str], faults: Faults | Iterable[Fault]) -> None:
        self.harmless = is_harmless(faults)
        """True if the results of all its runs can be compared."""
        self._others = OtherRuns(run)
        self._allowed = allowed
        self._rates = faults if isinstance(faults, Faults) and not self.harmless else None
        self._seeds: list[int] = []
        self._suspects: list[SeedResult] = []
        self._left: list[tuple[int, Sequence[Fault], Fingerprint]] = []
        """Of each run, its seed, its faults, and what it has left behind."""

    def add(self, result: SeedResult) -> None:
        """One more."""
        if len(self._seeds) < ENOUGH_SEEDS:
            self._seeds.append(result.seed)
        if len(self._suspects) < MOST_SUSPECTS and result.evidence.is_suspicious:
            self._suspects.append(result)
        if result.evidence.left is not None:
            self._left.append((result.seed, result.faults, fingerprint(result.evidence.left)))

    def judged(self) -> Iterator[SeedResult]:
        """Those that may be wrong, and some more in which nothing fails, each with a violation if it has one."""
        if KINDS.issubset(self._allowed):
            return
        if self._rates is None or len(self._seeds) >= LEAST_SEEDS:
            yield from map(self.judge, self._with_other_state())
        if self._rates is None:
            yield from map(self.judge, self._suspects)
        elif len(self._seeds) >= LEAST_SEEDS:
            seeds = self._seeds[: max(LEAST_SEEDS, len(self._seeds) // 5)]
            more = self._others.overlapping(seeds, self._rates)
            yield from map(self.judge, chain(self._suspects, more))

    def _with_other_state(self) -> Iterator[SeedResult]:
        expected: Fingerprint = fingerprint(self._others.left) if self._left else {}
        for seed, faults, found in self._left:
            if any(found[name] != each for name, each in expected.items()):
                yield self._others.again(seed, faults)

    def judge(self, result: SeedResult) -> SeedResult:
        """The same result, with a violation if other runs show one."""
        for kind, violation in () if result.violations else self._violations(result):
            if kind not in self._allowed:
                return replace(result, violations=[violation])
        return result

    def _violations(self, result: SeedResult) -> Iterator[tuple[str, str]]:
        evidence, usual = result.evidence, self._others.usual
        yield from _other_state(evidence, self._others)
        yield from _own_replays(evidence, self._others)
        yield from _lost_messages(evidence, self._others)
        here, there = evidence.results, usual.results
        if here is not None and there is not None and here.sources == there.sources:
            yield from _Difference(result, here, there, self._others).violations()


def is_harmless(faults: Faults | Iterable[Fault]) -> bool:
    """True if nothing is replayed after these, unless it times out."""
    if isinstance(faults, Faults):
        return all(kind in HARMLESS or not faults.rate(kind) for kind in FaultKind)
    return all(fault.kind in HARMLESS for fault in faults)


Fingerprint: TypeAlias = Mapping[str, int]


def fingerprint(left: Left) -> Fingerprint:
    """The rest, in short form."""
    return {name: hash(frozenset(each.items())) for name, each in left.kept.items()}


def _other_state(evidence: Evidence, others: OtherRuns) -> Iterator[tuple[str, str]]:
    if evidence.left is None or evidence.left.given != others.left.given:
        return
    for name, usual in others.left.kept.items():
        here = evidence.left.kept[name]
        if here != usual:
            what = f"{name} has {spelt(here - usual)} where it has {spelt(usual - here)} when nothing fails"
            yield "state", f"{what}: {NOT_THE_SAME}"


def _own_replays(evidence: Evidence, others: OtherRuns) -> Iterator[tuple[str, str]]:
    for component, joins in evidence.joins.items():
        if joins.own_replay and _joins_streams(component, others):
            what = f"{component!r} joins {joins.own_replay} with a replay of it"
            yield "joins", f"{what}; {NO_JOIN}"


def _joins_streams(component: str, others: OtherRuns) -> bool:
    """True if it joins nothing else, as long as nothing fails."""
    runs = others.usual, others.in_any_order(0), others.in_any_order(1)
    joins = [each.joins[component] for each in runs if component in each.joins]
    return bool(joins) and all(each.of_streams and not each.others for each in joins)


def _lost_messages(evidence: Evidence, others: OtherRuns) -> Iterator[tuple[str, str]]:
    for component, kept in evidence.spouts.items():
        usual = others.usual.spouts.get(component)
        if usual is None or kept.emitted != usual.emitted or kept.acked >= usual.acked:
            continue
        if _never_replays(component, others):
            what = f"{component!r} never emits again what has failed"
            counts = f"{kept.acked} of {kept.emitted} messages were acked, and {usual.acked} are when nothing fails"
            yield "replays", f"{what}: {counts}; {NO_REPLAY}"


def _never_replays(component: str, others: OtherRuns) -> bool:
    usual = others.usual.spouts[component]
    runs = [each.spouts[component] for each in others.with_a_failure if component in each.spouts]
    failed = [each for each in runs if each.acked < usual.acked]
    return len(failed) >= LEAST_FAILURES and all(each.emitted == usual.emitted for each in runs)


class _Difference:
    """Between the results of a run and those of the usual one."""

    def __init__(self, result: SeedResult, here: Results, usual: Results, others: OtherRuns) -> None:
        self._result = result
        self._here = here
        self._usual = usual
        self._others = others

    def violations(self) -> Iterator[tuple[str, str]]:
        """Those that other runs show, upstream first."""
        for key in self._here.differing(self._usual):
            if self._is_lost(key):
                yield "updates", f"{self._said(key)} come one at a time, in whatever order: {OLD_AFTERWARDS}"
            if self._depends_on_order(key):
                yield "order", f"{self._said(key)} come in order: {WHO_IS_FIRST}"

    def _is_lost(self, key: Result) -> bool:
        """True if the value is less than in any order of the calls, one after another."""
        if not all(is_less(self._here.value(each), self._usual.value(each)) for each in self._beside(key)):
            return False
        runs = map(self._others.in_any_order, range(IN_ANY_ORDER))
        return self._agree(key, runs) and self._agree(key, [self._others.one_at_a_time_as(self._result)])

    def _beside(self, key: Result) -> list[Result]:
        """The results of which none may have become more: a count of misses does where that of hits becomes less."""
        differing = self._here.differing(self._usual) if key.kind == KEEPS else [key]
        return [each for each in differing if (each.component, each.kind) == (key.component, key.kind)]

    def _depends_on_order(self, key: Result) -> bool:
        """True if it is all that a bolt emits, and always the same in order."""
        alone = [
            each for each in self._usual.values if each.component == key.component and each.kind != KEEPS
        ]
        if key.kind != FINISHES or alone != [key]:
            return False
        in_any_order = map(self._others.in_any_order, range(IN_ANY_ORDER))
        if all(self._is_usual(key, run) is not False for run in in_any_order):
            return False
        return self._agree(key, map(self._others.in_order, range(IN_ORDER)))

    def _agree(self, key: Result, runs: Iterable[Evidence]) -> bool:
        return all(self._is_usual(key, run) for run in runs)

    def _is_usual(self, key: Result, run: Evidence) -> bool | None:
        """None if the run cannot be compared: it has not come to its end, or has had another input."""
        results = run.results
        if results is None or results.sources != self._usual.sources:
            return None
        return results.value(key) == self._usual.value(key)

    def _said(self, key: Result) -> str:
        here, usual = self._here.value(key), self._usual.value(key)
        if isinstance(here, Counter) and isinstance(usual, Counter):
            here, usual = here - usual, usual - here
        if key.kind == KEEPS:
            subject, verb, again = f"{key.name} of {key.component!r}", "grows by", "by"
        else:
            subject, verb, again = repr(key.component), key.kind, "with" if key.kind == FINISHES else "emits"
        return f"{subject} {verb} {spelt(here)} where calls overlap, and {again} {spelt(usual)} where they"


SLOW: Final = replace(NO_FAULTS, slow=0.5, most=1000)
MOST_BOLTS, FIRST_INPUTS = 5, 3
"""Of so many tasks so many inputs are made to fail, one in each run."""


class OtherRuns:
    """Those of one simulation."""

    def __init__(self, run: RunOnce) -> None:
        self._run_once = run
        self._made: dict[tuple[Way, int], Evidence] = {}

    @property
    def usual(self) -> Evidence:
        """Nothing fails, nothing is slow, and one call follows another."""
        return self.in_order(0)

    def in_order(self, number: int) -> Evidence:
        """Nothing fails, and each task has executed an input before it begins with the next one."""
        return self._one_at_a_time(Way.IN_ORDER, number)

    def in_any_order(self, number: int) -> Evidence:
        """Nothing fails, and calls come one at a time, though perhaps not in the order in which they began."""
        return self._one_at_a_time(Way.ANY_ORDER, number)

    def _one_at_a_time(self, way: Way, number: int) -> Evidence:
        if (way, number) not in self._made:
            self._made[way, number] = self._run(number, SLOW if number else NO_FAULTS, way)
        return self._made[way, number]

    def _run(self, seed: int, faults: Faults | Iterable[Fault], way: Way = Way.AS_DECLARED) -> Evidence:
        """Nothing is known of a topology that runs only once."""
        try:
            return self._run_once(seed, faults, way).evidence
        except StormletError:
            return Evidence()

    def one_at_a_time_as(self, result: SeedResult) -> Evidence:
        """As slow as in this run, so that calls come in about the same order."""
        return self._run(result.seed, result.faults, Way.ANY_ORDER)

    def overlapping(self, seeds: Iterable[int], most: Faults) -> Iterator[SeedResult]:
        """Nothing fails; nor is anything slow or crowded if it is not to be."""
        crowd, slow = bool(most.crowd) * 0.5, bool(most.slow) * 0.3
        for number, seed in enumerate(seeds):
            faults = replace(NO_FAULTS, crowd=crowd, slow=slow if number % 2 else 0.0)
            yield self._run_once(seed, faults, Way.AS_DECLARED)

    @cached_property
    def left(self) -> Left:
        """All that is left behind whatever the order, the time and the ends of epochs are, as far as that is the same
        where nothing fails."""
        runs = [self.usual, self._one_at_a_time(Way.ALONE, 0), *map(self.in_any_order, range(4))]
        found = [each.left for each in runs if each.left is not None]
        if len(found) < len(runs) or any(each.given != found[0].given for each in found):
            return Left(frozenset(), {})
        first = found[0]
        same = {
            name: each
            for name, each in first.kept.items()
            if all(other.kept.get(name) == each for other in found)
        }
        return Left(first.given, same)

    def again(self, seed: int, faults: Sequence[Fault]) -> SeedResult:
        """A run that was made before."""
        return self._run_once(seed, faults, Way.AS_DECLARED)

    @cached_property
    def with_a_failure(self) -> list[Evidence]:
        """One input fails, another one in each run."""
        places = product(self.usual.bolts[:MOST_BOLTS], range(1, FIRST_INPUTS + 1))
        errors = ([Fault(FaultKind.ERROR, name, number)] for name, number in places)
        return [self._run(0, faults) for faults in errors]
