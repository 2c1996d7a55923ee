"""Random topologies and random ways of running them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from stormlet import (
    DeadLetter,
    DirectStream,
    Running,
    Stream,
    Subscription,
    Topology,
    TopologyStopping,
    TupleFailed,
)
from tests.helpers import now
from tests.oracle.actors import FUNCTIONS, GENERATORS, KEYS, Plot, Stage, make_logic, make_source
from tests.oracle.witness import Links, Terms, Value, Witness

CALM = {"ack": 1}
WILD = {"ack": 12, "fail": 1, "raise": 1, "hold": 3, "drop": 2}
PATIENT = {"ack": 12, "fail": 1, "raise": 1, "hold": 3}
GROUPINGS = ("shuffle", "fields", "partial_key", "all", "global_", "local_or_shuffle", "none", "custom")
FOR_EVER = 3000.0
"""Simulated seconds after which a run that has not ended never will."""


class Some:
    """A custom grouping: the first so many tasks, or none, as the key of the value says."""

    def prepare(self, targets: Sequence[int]) -> None:
        self.targets = targets

    def choose(self, value: object) -> Sequence[int]:
        assert isinstance(value, Value)
        return self.targets[: copies_of_some(len(self.targets), value)]


def copies_of_some(tasks: int, value: Value) -> int:
    return value.key % (tasks + 1)


@dataclass(frozen=True)
class Case:
    """One random topology, and how it is run."""

    seed: int
    terms: Terms
    spouts: tuple[Plot, ...]
    bolts: tuple[Plot, ...]
    options: dict[str, Any]
    end: str
    """``finish``: wait for the finite spouts; ``stop``: ask for the end after a while; ``deadline``: in a hurry."""
    after: float
    host: int = 0
    """How many messages the host emits."""
    pause: float | None = None
    """When the topology is deactivated for a while."""
    burial: float = 0.0
    """How long the host takes for a dead letter."""

    swift: bool = False
    """Whether nothing takes time and nothing is dropped, so that no tree may ever time out: what is held is flushed as
    soon as nothing else can happen (B8)."""


def random_case(seed: int) -> Case:
    random = Random(f"case {seed}")
    terms = Terms(
        ackers=random.choices((0, 1, 2, 3), (1, 8, 6, 6))[0],
        timeout=random.choice((None, 2.0, 2.0, 5.0, 30.0)),
        buckets=random.choice((2, 3, 4)),
        activity=random.random() < 0.2,
        high_water=random.choice((None, None, None, 1, 3)),
    )
    most_attempts = random.choice((1, 1, 2, 3))
    options: dict[str, Any] = {
        "message_timeout": terms.timeout,
        "timeout_buckets": terms.buckets,
        "timeout_restarts_on": "activity" if terms.activity else "init",
        "ackers": terms.ackers,
        "acker_high_water": terms.high_water,
        "max_attempts": most_attempts,
        "queue_capacity": random.choice((1, 2, 5, 1024)),
        "drain_timeout": None,
    }
    spouts = random_spouts(random)
    fed = any(spout.kind == "fed" for spout in spouts)
    # A spout that the host feeds ends only when the topology drains (S5).
    end = random.choice(
        ("stop", "stop", "deadline") if fed else ("finish", "finish", "finish", "stop", "deadline")
    )
    if end == "deadline":
        options["drain_timeout"] = random.choice((0.0, 0.5, 3.0))
    bolts = random_bolts(random, spouts, terms, replays=most_attempts > 1)
    bolts = with_order(bolts)
    spouts, bolts = with_direct_targets(spouts, bolts, terms.ackers)
    after = random.choice((0.0, 0.2, 1.0, 4.0, 20.0))
    pause = random.choice((None, None, None, 0.0, 0.3))
    burial = 0.0 if end == "deadline" else random.choice((0.0, 0.0, 0.7))
    case = Case(seed, terms, spouts, bolts, options, end, after, 8 if fed else 0, pause, burial)
    return made_swift(random, case) if random.random() < 0.15 else case


def made_swift(random: Random, case: Case) -> Case:
    """The same case without a pause in it, and with bolts that hold so much that spouts soon have to wait."""

    def swift_spout(plot: Plot) -> Plot:
        kind = random.choice(("sync", "generator"))
        return replace(plot, kind=kind, slow=False, options={"max_spout_pending": random.choice((1, 2, 5))})

    def swift_bolt(plot: Plot) -> Plot:
        verbs = {"ack": 3, "fail": 1, "hold": 3}
        return replace(plot, kind=random.choice(("holding", "auto", "batch")), verbs=verbs, options={})

    terms = replace(case.terms, timeout=30.0)
    options = {**case.options, "message_timeout": 30.0, "drain_timeout": None}
    spouts, bolts = tuple(map(swift_spout, case.spouts)), with_order(tuple(map(swift_bolt, case.bolts)))
    return replace(
        case,
        terms=terms,
        spouts=spouts,
        bolts=bolts,
        options=options,
        end="finish",
        host=0,
        pause=None,
        burial=0.0,
        swift=True,
    )


def random_streams(random: Random) -> dict[str, tuple[int, ...] | None]:
    """The default stream, and perhaps another one, and a direct one, whose tasks are filled in later."""
    extra = random.choice(((), (), ("side",), ("direct",), ("side", "direct")))
    return {"default": None, **{name: () if name == "direct" else None for name in extra}}


def random_spouts(random: Random) -> tuple[Plot, ...]:
    kinds = [random.choice(("sync", "async", "sync", "async", "generator", "async generator", "fed"))]
    kinds += random.choices(("sync", "async", "generator", "fed"), k=random.choice((0, 0, 1, 2)))
    return tuple(
        Plot(
            id=f"spout{number}",
            kind=kind,
            streams=random_streams(random),
            verbs={},
            messages=random.randint(1, 10),
            slow=kind == "async" and random.random() < 0.2,
            parallelism=random.choice((1, 1, 2, 3)),
            options={"max_spout_pending": random.choice((1, 2, 5, 100, None))},
        )
        for number, kind in enumerate(kinds)
    )


def random_bolts(random: Random, spouts: Sequence[Plot], terms: Terms, *, replays: bool) -> tuple[Plot, ...]:
    verbs = random.choice((CALM, PATIENT, WILD, WILD))
    if terms.timeout is None and verbs is WILD:
        verbs = PATIENT
    plots: list[Plot] = []
    for number in range(random.randint(1, 5)):
        plots.append(random_bolt(random, f"bolt{number}", [*spouts, *plots], verbs, replays=replays))
    if len(plots) > 1 and random.random() < 0.2:
        plots = with_cycle(random, plots)
    return tuple(plots)


def random_bolt(
    random: Random, id: str, upstream: Sequence[Plot], verbs: dict[str, int], *, replays: bool
) -> Plot:
    sources = random.sample(upstream, random.randint(1, min(2, len(upstream))))
    inputs = []
    for source in sources:
        stream = random.choice(list(source.streams))
        grouping = "direct" if stream == "direct" else random.choice(GROUPINGS)
        inputs.append((source.id, stream, grouping))
    classes = ("holding", "async holding", "auto", "async auto", "batch")
    kinds = classes if replays and any(is_kept(each) for each in sources) else (*classes, *FUNCTIONS)
    kind = random.choice(kinds)
    options: dict[str, Any] = {}
    if "async" in kind or kind == "coroutine":
        options["concurrency"] = random.choice((1, 1, 3))
    if kind in ("auto", "batch", "plain", "generator") and random.random() < 0.1:
        options["executor"] = "thread"
    if random.random() < 0.3:
        options["queue_capacity"] = random.choice((1, 3))
    if "holding" in kind and random.random() < 0.3:
        options["tick"] = 0.9
    return Plot(
        id=id,
        kind=kind,
        streams=random_streams(random),
        verbs=verbs,
        parallelism=random.choice((1, 2, 3)),
        inputs=tuple(inputs),
        options=options,
    )


def is_kept(plot: Plot) -> bool:
    return plot.kind in GENERATORS or plot.kind == "fed"


def with_cycle(random: Random, plots: Sequence[Plot]) -> list[Plot]:
    """Feed the output of a bolt back to an earlier one, or to itself; all between may then be in the cycle."""
    first = random.randrange(len(plots))
    last = random.randrange(first, len(plots))
    back = (plots[last].id, "default", "shuffle")
    looped = [replace(plot, in_cycle=True) for plot in plots]
    looped[first] = replace(looped[first], inputs=(*looped[first].inputs, back))
    return looped


def with_order(plots: Sequence[Plot]) -> tuple[Plot, ...]:
    """Tell each bolt which ones must have finished before it does; those that may be in a cycle have no order."""
    upstream: dict[str, frozenset[str]] = {}
    for plot in plots:
        sources = {source for source, _, _ in plot.inputs if source in upstream}
        upstream[plot.id] = frozenset(sources).union(*(upstream[source] for source in sources))
    report = {plot.id for plot in plots if "holding" in plot.kind and not plot.in_cycle}
    return tuple(replace(plot, finish_after=upstream[plot.id] & report) for plot in plots)


def with_direct_targets(
    spouts: Sequence[Plot], bolts: Sequence[Plot], ackers: int
) -> tuple[tuple[Plot, ...], tuple[Plot, ...]]:
    """Tell each component which tasks it can name on its direct stream."""
    tasks = task_ids([*spouts, *bolts], ackers)

    def named(plot: Plot) -> Plot:
        if "direct" not in plot.streams:
            return plot
        receivers = [bolt for bolt in bolts if (plot.id, "direct", "direct") in bolt.inputs]
        return replace(
            plot, streams={**plot.streams, "direct": tuple(id for each in receivers for id in tasks[each.id])}
        )

    return tuple(map(named, spouts)), tuple(map(named, bolts))


def task_ids(plots: Sequence[Plot], ackers: int) -> dict[str, range]:
    """Ackers first, then spouts and bolts as declared."""
    following = ackers + 1
    ids = {}
    for plot in plots:
        ids[plot.id] = range(following, following + plot.parallelism)
        following += plot.parallelism
    return ids


def links_of(case: Case) -> Links:
    links: dict[tuple[str, str], list[tuple[str, Callable[[Value], int]]]] = {}
    for bolt in case.bolts:
        for source, stream, grouping in bolt.inputs:
            links.setdefault((source, stream), []).append((bolt.id, copies_by(grouping, bolt.parallelism)))
    return links


def copies_by(grouping: str, tasks: int) -> Callable[[Value], int]:
    """How many copies of a value this grouping makes."""
    if grouping == "all":
        return lambda value: tasks
    if grouping == "custom":
        return lambda value: copies_of_some(tasks, value)
    return lambda value: 1


def subscribe(stream: Stream[Any], grouping: str) -> Subscription[Any]:
    match grouping:
        case "fields" | "partial_key":
            return getattr(stream, grouping)(lambda value: value.key)
        case "custom":
            return stream.custom(Some())
        case _:
            return getattr(stream, grouping)()


class Play:
    """One run of one case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        plots = [*case.spouts, *case.bolts]
        ids = task_ids(plots, case.terms.ackers)
        component_of = {id: plot.id for plot in plots for id in ids[plot.id]}
        self.witness = Witness(case.terms, links_of(case), component_of)
        self.stage = Stage(case.seed, self.witness)
        self.streams: dict[str, Stream[Any]] = {}
        self.topology = self.build()

    def build(self) -> Topology:
        topology = Topology("model", **self.case.options)
        for plot in self.case.spouts:
            source = make_source(self.stage, plot)
            self.streams[plot.id] = topology.spout(
                plot.id, source, parallelism=plot.parallelism, outputs=outputs_of(plot), **plot.options
            )
        for plot in self.case.bolts:
            inputs = [self.subscription(each) for each in plot.inputs if each[0] in self.streams]
            self.streams[plot.id] = topology.bolt(
                plot.id,
                make_logic(self.stage, plot),
                *inputs,
                parallelism=plot.parallelism,
                outputs=outputs_of(plot),
                **plot.options,
            )
        return self.closed(topology)

    def closed(self, topology: Topology) -> Topology:
        """Add the inputs that lead back."""
        seen = {plot.id for plot in self.case.spouts}
        for plot in self.case.bolts:
            for each in plot.inputs:
                if each[0] not in seen:
                    topology.connect(self.streams[plot.id], self.subscription(each))
            seen.add(plot.id)
        return topology

    def subscription(self, each: tuple[str, str, str]) -> Subscription[Any]:
        component, stream, grouping = each
        return subscribe(self.streams[component].named(stream), grouping)

    async def run(self) -> Running:
        """Run to the end; whatever goes wrong in user code is raised."""
        try:
            return await self.run_through()
        finally:
            for wrong in self.stage.wrong:
                raise wrong

    async def run_through(self) -> Running:
        async with (
            asyncio.timeout(FOR_EVER),
            self.topology.run(seed=self.case.seed, dead_letters=self.bury) as running,
            asyncio.TaskGroup() as group,
        ):
            hosts = [group.create_task(self.emit(running, number)) for number in range(self.case.host)]
            hosts.append(group.create_task(self.pause(running)))
            if self.case.end == "finish":
                await asyncio.gather(*hosts)
                await running.finished()
            await self.leave(running)
        self.ended_at = now()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return running

    async def bury(self, letter: DeadLetter) -> None:
        await asyncio.sleep(self.case.burial)
        self.witness.buried(letter)

    async def pause(self, running: Running) -> None:
        """No spout is asked for tuples for a while."""
        if self.case.pause is not None:
            await asyncio.sleep(self.case.pause)
            running.deactivate()
            await asyncio.sleep(0.5)
            running.activate()

    async def leave(self, running: Running) -> None:
        if self.case.end != "finish":
            await asyncio.sleep(self.case.after)
        self.stage.ending = True
        limit = self.case.options["drain_timeout"]
        self.witness.deadline = None if limit is None else now() + limit
        running.stop()
        await running.finished()

    async def emit(self, running: Running, number: int) -> None:
        """The host emits a message and waits for its tree (C4)."""
        random = self.stage.random("host", number)
        fed = random.choice([plot for plot in self.case.spouts if plot.kind == "fed"])
        await asyncio.sleep(random.choice((0.0, 0.0, 0.4, 2.0)))
        value = self.witness.value(random.randrange(KEYS), kept=True)
        attempts = random.randint(1, self.case.options["max_attempts"])
        collected = random.choice(list(self.streams.values()))
        try:
            tree = await running.emit(self.streams[fed.id], value, attempts=attempts, collect=collected)
        except TopologyStopping:
            assert self.stage.ending
            return
        self.witness.keep(value, fed.id, "default", None)
        if self.case.terms.ackers == 0:
            return
        try:
            values = await tree
        except TupleFailed as error:
            self.witness.check_host(value, error.failure)
        else:
            self.witness.check_acked(value)
            self.witness.check_collected(value, collected.component, collected.name, values)


def outputs_of(plot: Plot) -> dict[str, object]:
    return {name: DirectStream() if name == "direct" else None for name in plot.streams}
