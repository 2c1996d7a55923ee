"""The bottleneck of a topology in one sentence: the component that limits all others, and what to turn.

Theory of operation
-------------------
Bounded queues and ``max_spout_pending`` carry every limit back to the sources. So a topology whose sources are held up
has a component that is busy and waits for nobody itself; that one is the bottleneck (Flink's rule). In one process four
things may be used up, and they are asked for in this order, since each makes the next ones look busy as well:

1. *The loop.* All code that computes on it shares one core, with the host's. More tasks of the same code make nothing
   faster there.
2. *A bolt's places.* Its calls await something or run in threads, and all of them are taken; or those of one task are,
   as most keys go there.
3. *The source*, if it is known to have more to give: by its lag, or by what it has reported of its progress. One that
   waits for what has not happened yet is well.
4. *The messages that may be pending.* Nothing is busy, and still the sources are held up: by messages that wait for
   their dead letters to be taken, for their replays, or for their epoch; or by messages that only take their time.

A topology whose sources are not held up keeps pace, however busy its bolts are, and has no bottleneck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from stormlet.core.outcomes import spelt
from stormlet.core.shortened import counted
from stormlet.report.figures import ComponentFigures, Figures, TaskFigures
from stormlet.report.limits import (
    BACKLOG,
    BUSY,
    CROWDED,
    FULL_QUEUE,
    LONG_CALL,
    MOSTLY,
    ComponentFacts,
    Limits,
)


class BottleneckKind(Enum):
    """The things that may be used up."""

    COMPUTES = "computes"
    """A bolt's code keeps the loop busy."""
    AWAITS = "awaits"
    """A bolt's calls await something, and no more of them may be made at a time."""
    THREADS = "threads"
    """All threads of a bolt are at work."""
    SKEW = "skew"
    """One task of a bolt is busy, and others are not."""
    SOURCE = "source"
    """A source gives no more, although it has more."""
    PENDING = "pending"
    """As many messages are pending as may be, and nothing is busy."""
    FAILURES = "failures"
    """Messages that wait for their replays take the places of others."""
    DEAD_LETTERS = "dead letters"
    """``dead_letters=`` takes letters slowly: their messages take the places of others, or it holds the loop."""
    EPOCHS = "epochs"
    """Messages wait for their epoch to be durable."""
    ACKERS = "ackers"
    """The ackers follow more trees than there is time for."""
    LOOP = "loop"
    """Several components together keep the loop busy."""
    OTHERS = "others"
    """Code that is not the topology's holds the loop."""


class Bottleneck(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of a topology's throughput."""

    component: str
    """The component that limits it, or does most of what does; empty if that is none of the topology's."""
    kind: BottleneckKind
    sentence: str
    """The finding, and what to turn."""

    def __str__(self) -> str:
        return self.sentence


def bottleneck(figures: Figures, facts: Mapping[str, ComponentFacts]) -> Bottleneck | None:
    """Return the bottleneck of a window; None if nothing limits the topology. ``facts`` has all spouts and bolts; a
    component that is not among them counts as an acker."""
    view = Limits(figures, facts)
    rules: Sequence[Callable[[Limits], Bottleneck | None]] = (
        _others, _loop, _places, _source, _overflows, _pending,
    )  # fmt: skip
    return next((found for rule in rules if (found := rule(view)) is not None), None)


# The rules: in this order, as what comes first makes the next ones look busy as well.


def _others(view: Limits) -> Bottleneck | None:
    if view.others < MOSTLY and not (view.is_full and view.others >= view.own):
        return None
    sentence = (
        f"other code holds the loop {percent(view.others)} of the time: move it to a thread or a process, or let it "
        f"await more often"
    )
    return Bottleneck(component="", kind=BottleneckKind.OTHERS, sentence=sentence)


def _loop(view: Limits) -> Bottleneck | None:
    if not view.is_full:
        return None
    id = max(view.on_loop, key=lambda id: view.on_loop[id])
    share = view.on_loop[id]
    if share < MOSTLY * view.own:
        return _found(
            id,
            BottleneckKind.LOOP,
            f"all components together hold the loop {percent(view.own)} of the time, {id!r} most of all with "
            f"{percent(share)}: make tuples fewer and larger, {ELSEWHERE}; more tasks do not help in one process",
        )
    if id not in view.facts:
        return _found(
            id,
            BottleneckKind.ACKERS,
            f"the ackers hold the loop {percent(share)} of the time: make tuples fewer and larger, or anchor less of "
            f"them; more ackers do not help in one process",
        )
    if view.facts[id].is_spout:
        if view.spouts[id].in_dead_letters >= MOSTLY * share:
            return _blocking_letters(view, id)
        return _found(
            id,
            BottleneckKind.SOURCE,
            f"the source gives no more: {id!r} computes {percent(share)} of the time; make its code cheaper, or "
            f"await what it waits for",
        )
    return _found(
        id,
        BottleneckKind.COMPUTES,
        f"{id!r} computes {percent(share)} of the time: make its code cheaper, {ELSEWHERE}; more tasks do not help in "
        f"one process",
    )


ELSEWHERE: Final = 'give it executor="thread" if it leaves the GIL, or run on Spark'


def _places(view: Limits) -> Bottleneck | None:
    """The busiest of the bolts that hold others up."""
    busy = {id: each for id, each in view.bolts.items() if view.is_busy(id, each)}
    if not busy:
        return None
    id = max(busy, key=lambda id: (bool(view.crowded(id)), busy[id].busiest.shares.busy))
    bolt, facts = busy[id], view.facts[id]
    if facts.by_epochs:
        return _committer(id, bolt)
    if len(bolt.tasks) > 1 and _is_uneven(bolt):
        return _uneven(view, id, bolt)
    if facts.has_threads:
        return _threads(view, id, bolt, facts)
    return _awaiting(view, id, bolt, facts)


def _committer(id: str, bolt: ComponentFigures) -> Bottleneck:
    share = percent(bolt.busiest.shares.busy)
    return _found(
        id,
        BottleneckKind.EPOCHS,
        f"{id!r} writes epochs {share} of its time: raise epoch_messages and epoch_seconds for fewer, larger writes",
    )


def _awaiting(view: Limits, id: str, bolt: ComponentFigures, facts: ComponentFacts) -> Bottleneck:
    shares = bolt.busiest.shares
    if shares.executing > shares.awaiting:
        return _found(
            id,
            BottleneckKind.COMPUTES,
            f"{id!r} computes {percent(shares.executing)} of its time{_full(view, id)}: make its code cheaper, "
            f"{ELSEWHERE}",
        )
    way_out = _time_limit(view, bolt) or f": raise its {_more_calls(facts)}"
    return _found(
        id,
        BottleneckKind.AWAITS,
        f"{id!r} awaits {percent(shares.awaiting)} of its time{_full(view, id)}{way_out}",
    )


def _time_limit(view: Limits, bolt: ComponentFigures) -> str:
    """The way out for calls that do not come back: more of them would only fill more places."""
    seconds = view.figures.seconds
    if bolt.executed or seconds < LONG_CALL:
        return ""
    return f", and none of its calls has come back in {seconds:.0f} s: give what they wait for a time limit"


def _threads(view: Limits, id: str, bolt: ComponentFigures, facts: ComponentFacts) -> Bottleneck:
    number = facts.parallelism * facts.concurrency
    threads = "the thread" if number == 1 else f"all {number} threads"
    limit = _time_limit(view, bolt)
    way_out = (
        f"{limit}, or cut their work into smaller pieces"
        if limit
        else f": raise its {_more_calls(facts)}, unless it computes in Python, where threads take turns"
    )
    return _found(
        id,
        BottleneckKind.THREADS,
        f"{threads} of {id!r} {'is' if number == 1 else 'are'} busy {percent(bolt.busiest.shares.busy)} of the time"
        f"{way_out}",
    )


def _is_uneven(bolt: ComponentFigures) -> bool:
    """The other tasks have time left, less than half of theirs being used."""
    hottest = bolt.busiest
    others = [each.shares.busy for each in bolt.tasks.values() if each is not hottest]
    return sum(others) / len(others) < MOSTLY * hottest.shares.busy


def _uneven(view: Limits, id: str, bolt: ComponentFigures) -> Bottleneck:
    hottest, number = bolt.busiest, len(bolt.tasks)
    task = next(index for index, each in enumerate(bolt.tasks.values()) if each is hottest)
    part = hottest.executed / bolt.executed if bolt.executed else 0.0
    busy = f"is busy {percent(hottest.shares.busy)} of its time"
    if part >= 1.5 / number:
        groupings = " and ".join(
            dict.fromkeys(each.grouping for each in view.figures.edges if each.consumer == id)
        )
        return _found(
            id,
            BottleneckKind.SKEW,
            f"one of {number} tasks, {id}[{task}], has {percent(part)} of the tuples and {busy}: choose a grouping "
            f"that spreads them better than {groupings}, such as partial_key, or a finer key",
        )
    return _found(
        id,
        BottleneckKind.SKEW,
        f"one of {number} tasks, {id}[{task}], {busy}, and the others are not: its tuples take longer; choose "
        f"another key, or raise its concurrency",
    )


def _more_calls(facts: ComponentFacts) -> str:
    if facts.parallelism == 1:
        return f"concurrency (now {facts.concurrency})"
    return f"concurrency (now {facts.concurrency}) or parallelism (now {facts.parallelism})"


def _full(view: Limits, id: str) -> str:
    edges = view.crowded(id)
    if not edges:
        return ""
    full = sum(each.fullest >= FULL_QUEUE for each in edges)
    if full:
        one = "the queue before it is full" if len(edges) == 1 else "a queue before it is full"
        return f" and {one if full == 1 else f'{full} queues before it are full'}"
    fullest = max(each.fullest for each in edges)
    if fullest >= CROWDED:
        return f" and the queue before it is {percent(fullest)} full"
    return f" and its inputs wait for room {percent(max(each.waited for each in edges))} of the time"


def _source(view: Limits) -> Bottleneck | None:
    for id, spout in view.spouts.items():
        shares = spout.shares
        if shares.busy >= BUSY and (spout.is_ahead or _backlog(spout)):
            waits = f" with {counted(spout.lag or 0, 'message')} at its broker" if _backlog(spout) else ""
            return _found(
                id,
                BottleneckKind.SOURCE,
                f"the source gives no more: {id!r} awaits {percent(shares.awaiting)} of its time{waits}; have it read "
                f"larger pieces or several at a time, or raise its parallelism",
            )
    return None


def _backlog(spout: ComponentFigures) -> bool:
    return spout.lag is not None and spout.lag - spout.pending > max(spout.emitted, 1.0) * BACKLOG


def _overflows(view: Limits) -> Bottleneck | None:
    for id, spout in view.spouts.items():
        if spout.overflowed > MOSTLY * max(spout.failed, spout.acked):
            return _found(
                id,
                BottleneckKind.ACKERS,
                f"{percent(spout.overflowed / spout.failed)} of the failed attempts of {id!r} find the ackers full: "
                f"lower its max_spout_pending, or raise ackers or acker_high_water",
            )
    return None


WAIT: Final = ("message waits for its epoch", "messages wait for their epoch")


def _pending(view: Limits) -> Bottleneck | None:
    limited = {id: max(map(_limited, (each, *each.tasks.values()))) for id, each in view.spouts.items()}
    id = max(limited, key=lambda id: limited[id], default=None)
    if id is None or limited[id] < MOSTLY:
        return None
    spout, share = view.spouts[id], percent(limited[id])
    if spout.giving_up >= MOSTLY * spout.pending > 0:
        return _dead_letters(view, id, share)
    if spout.failed > spout.acked:
        return _failures(view, id, share)
    epoch = view.figures.epoch
    if epoch is not None and epoch.withheld >= MOSTLY * spout.pending > 0:
        return _found(
            id,
            BottleneckKind.EPOCHS,
            f"{id!r} waits {share} of its time, and {counted(epoch.withheld, *WAIT)}: lower "
            f"epoch_messages or epoch_seconds, or raise max_spout_pending",
        )
    are_pending = f"{counted(spout.pending, 'message is', 'messages are')} pending, and nothing is busy"
    if not spout.pending:  # the run has ended
        are_pending = "its max_spout_pending was reached, and nothing was busy"
    return _found(
        id,
        BottleneckKind.PENDING,
        f"{id!r} waits {share} of its time, as {are_pending}: raise its "
        f"max_spout_pending (now {view.facts[id].max_pending}){_by_littles_law(spout)}",
    )


def _limited(task: TaskFigures) -> float:
    return task.shares.limited


def _dead_letters(view: Limits, id: str, share: str) -> Bottleneck:
    spout, failing = view.spouts[id], _failing(view, id)
    return _found(
        id,
        BottleneckKind.DEAD_LETTERS,
        f"{id!r} waits {share} of its time, as {spout.giving_up:,} of {spout.pending:,} pending messages wait for "
        f"dead_letters= to return: have it return sooner, such as by writing many letters at once, or mend what fails "
        f"in {failing!r}",
    )


def _blocking_letters(view: Limits, id: str) -> Bottleneck:
    share, failing = percent(view.spouts[id].in_dead_letters), _failing(view, id)
    return _found(
        id,
        BottleneckKind.DEAD_LETTERS,
        f"dead_letters= holds the loop {share} of the time, with what {id!r} gives up: have it return sooner, such as "
        f"by handing its letters to a thread, or mend what fails in {failing!r}",
    )


def _failing(view: Limits, id: str) -> str:
    """The bolt in which most fails; the spout itself if there is none."""
    return max(view.bolts, key=lambda bolt: view.bolts[bolt].failed, default=id)


def _failures(view: Limits, id: str, share: str) -> Bottleneck:
    failing = _failing(view, id)
    return _found(
        failing,
        BottleneckKind.FAILURES,
        f"most attempts of {id!r} fail, most of them in {failing!r}, and it waits {share} of its time for replays: "
        f"mend what fails, or lower replay_delay",
    )


def _by_littles_law(spout: ComponentFigures) -> str:
    times = spout.complete
    if times is None or not times.mean:
        return ""
    return f"; a message takes {spelt(times.mean)}, so that they make {spout.acked:,.0f} a second"


def _found(component: str, kind: BottleneckKind, sentence: str) -> Bottleneck:
    return Bottleneck(component=component, kind=kind, sentence=sentence)


def percent(part: float) -> str:
    """``97 %``."""
    return f"{part * 100:.0f} %"
