"""The law's paragraph on groupings, on the running engine."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest

from stormlet import (
    BasicBolt,
    Collector,
    CustomGrouping,
    DirectStream,
    InvalidEmit,
    InvalidTopology,
    Stream,
    Subscription,
    TaskContext,
    To,
    Topology,
    TopologyCrashed,
    Tuple,
    UnroutableKey,
)
from stormlet.core import groupings
from stormlet.testing import run_simulated
from tests.helpers import ignore, run_to_end

Routes = Mapping[int, list[object]]
Grouped = Callable[[Stream[Any]], Subscription[Any]]


def noting(routes: dict[int, list[object]]) -> type[BasicBolt[object, object]]:
    """A bolt that notes its values, by task id."""

    class Note(BasicBolt[object, object]):
        def prepare(self, context: TaskContext) -> None:
            self.task = context.task
            routes[self.task] = []

        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            routes[self.task].append(tup.value)

    return Note


async def routes_of(
    values: Sequence[object], grouped: Grouped, *, tasks: int = 4, seed: int = 0, outputs: object = None
) -> Routes:
    """Which task got which values of one spout."""
    routes: dict[int, list[object]] = {}
    topology = Topology("routes")
    stream = topology.spout("values", values, outputs=outputs)
    topology.bolt("note", noting(routes), grouped(stream), parallelism=tasks)
    running = await run_to_end(topology, seed=seed)
    assert running.statistics().components["values"].acked == len(values)
    return routes


def tasks_of(routes: Routes, value: object) -> list[int]:
    """The tasks that got a value."""
    return [task for task, values in routes.items() if value in values]


# shuffle, and what means the same in one process.


@pytest.mark.simulated_time
@pytest.mark.parametrize("name", ["shuffle", "local_or_shuffle", "none"])
@pytest.mark.parametrize("tasks", [1, 3, 5])
@pytest.mark.parametrize("seed", [1, 2])
async def test_shuffle_gives_each_task_exactly_its_share(name: str, tasks: int, seed: int) -> None:
    """After n·k tuples each of n tasks got k."""
    routes = await routes_of(range(7 * tasks), lambda stream: getattr(stream, name)(), tasks=tasks, seed=seed)
    assert [len(values) for values in routes.values()] == [7] * tasks


@pytest.mark.simulated_time
async def test_shuffle_gives_the_share_at_any_moment() -> None:
    """Not only at the end: after every n tuples each task has got one more."""
    order: list[int] = []

    class Note(BasicBolt[object, object]):
        def prepare(self, context: TaskContext) -> None:
            self.task = context.task

        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            order.append(self.task)

    topology = Topology("share", max_spout_pending=1)
    topology.bolt("note", Note, topology.spout("values", range(40)).shuffle(), parallelism=4)
    await run_to_end(topology)
    assert all(len(set(order[start : start + 4])) == 4 for start in range(0, 40, 4))


@pytest.mark.simulated_time
async def test_shuffle_begins_anywhere() -> None:
    """The order of the tasks is drawn, so that single tuples of many producers do not meet in one task."""
    first = {tuple(tasks_of(await routes_of(["x"], Stream.shuffle, seed=seed), "x")) for seed in range(12)}
    assert len(first) > 1


# fields.


class Flavour(Enum):
    SWEET = "sweet"
    SOUR = "sour"


class Record(msgspec.Struct, frozen=True):
    word: str
    count: int


@dataclass(frozen=True)
class Data:
    word: str
    count: int


class Named(NamedTuple):
    word: str
    count: int


KEYS: list[object] = [
    None,
    *(False, 7, -3, 2**80),
    *(0.5, float("inf")),
    *("", "word", "größer", "\ud800"),
    *(b"", b"bytes"),
    *(Decimal("1.25"), Decimal("1e30")),
    *(date(2013, 1, 1), datetime(2013, 1, 1, 5), time(5, 17)),
    UUID("12345678123456781234567812345678"),
    *Flavour,
    *((), (1, "a"), (1, (2, None))),
    *([], [1, "a"], [date(2013, 1, 1), [Flavour.SOUR]]),
    *(Record("a", 1), Data("a", 2), Named("a", 3), {"word": "a", "count": 4}),
    (Record("nested", 1), [Data("nested", 2)]),
]


@pytest.mark.simulated_time
@pytest.mark.parametrize("tasks", [2, 7])
async def test_fields_sends_equal_keys_to_one_task(tasks: int) -> None:
    """Every type of key that the law names is routable, and all its occurrences meet."""
    routes = await routes_of(KEYS * 3, Stream.fields, tasks=tasks)
    for key in KEYS:
        (task,) = tasks_of(routes, key)
        assert routes[task].count(key) >= 3


@pytest.mark.simulated_time
async def test_fields_spreads_the_keys() -> None:
    """A thousand words over four tasks leave none with less than a fifth of them or so."""
    routes = await routes_of([f"word {number}" for number in range(1000)], Stream.fields)
    assert min(map(len, routes.values())) > 180


SAME: list[list[object]] = [
    [1, 1.0, True, Decimal(1), Decimal("1.00")],
    [0, 0.0, -0.0, False],
    [2**70, float(2**70), Decimal(2**70)],
    [(1, 2), (1.0, Decimal(2)), Named(1, 2)],  # type: ignore[arg-type]
    [
        datetime(2013, 1, 1, 5, tzinfo=UTC),
        datetime(2013, 1, 1, 7, tzinfo=timezone(timedelta(hours=2))),
    ],
    [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
]


@pytest.mark.simulated_time
@pytest.mark.parametrize("same", SAME)
async def test_fields_equal_keys_hash_equal_whatever_their_type(same: list[object]) -> None:
    """Since 1 == 1.0 == True, they meet, also when each comes from a producer that saw no other of them."""
    routes: dict[int, list[object]] = {}

    def share(context: TaskContext) -> Iterator[object]:
        yield same[context.task_index]

    topology = Topology("same")
    stream = topology.spout("values", share, parallelism=len(same))
    topology.bolt("note", noting(routes), stream.fields(), parallelism=97)
    await run_to_end(topology)
    assert [len(values) for values in routes.values() if values] == [len(same)]


class OwnEqual:
    """Equality that no hash of ours could follow."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


@pytest.mark.simulated_time
@pytest.mark.parametrize("key", [object(), {1, 2}, 1j, OwnEqual(), (1, object()), {"a": {1}}, len])
async def test_fields_anything_else_raises_naming_type_and_grouping(key: object) -> None:
    """No repr, no pickle: what has no stable hash is refused, also inside other keys."""
    with pytest.raises(TopologyCrashed) as crash:
        await routes_of([key], Stream.fields)
    error = crash.value.__cause__
    assert isinstance(error, UnroutableKey)
    assert "fields grouping of 'values' -> 'note'" in str(error)
    culprits = ("object", "set", "complex", "OwnEqual", "builtin_function_or_method")
    assert any(name in str(error) for name in culprits)


@pytest.mark.simulated_time
async def test_fields_a_bolt_that_emits_an_unroutable_key_fails_its_input() -> None:
    """Inside a bolt there is a tuple that answers for it."""
    topology = Topology("bolt", max_attempts=1)
    stream = topology.bolt("make", lambda _: {1, 2}, topology.spout("one", [1]).shuffle())
    topology.bolt("note", noting({}), stream.fields(), parallelism=2)
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert isinstance(letter.failure.exception, UnroutableKey)
    assert "'make' -> 'note'" in str(letter.failure.exception)


PROGRAM = """
import asyncio, json
from tests.law.test_grouping_rules import Stream, WORDS, routes_of, run_simulated
routes = run_simulated(routes_of(WORDS, Stream.fields))
print(json.dumps({task: sorted(words) for task, words in routes.items()}))
"""
WORDS = [f"{letter}{number}" for letter in "abc" for number in range(20)]


@pytest.mark.parametrize("salt", ["1", "2"])
def test_fields_the_same_key_goes_to_the_same_task_in_every_process(salt: str) -> None:
    """Processes whose ``hash`` is salted differently route sixty words alike."""
    environment = {"PYTHONHASHSEED": salt, "PYTHONPATH": ":".join(filter(None, sys.path)) + ":."}
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True, text=True
    )
    here = run_simulated(routes_of(WORDS, Stream.fields))
    assert json.loads(program.stdout) == {str(task): sorted(map(str, words)) for task, words in here.items()}


@pytest.mark.simulated_time
async def test_fields_the_same_key_goes_to_the_same_task_in_every_run() -> None:
    """Neither the seed nor an earlier run makes a difference."""
    routes = [await routes_of(KEYS, Stream.fields, seed=seed) for seed in range(3)]
    assert all(
        {task: Counter(map(str, values)) for task, values in each.items()}
        == {task: Counter(map(str, values)) for task, values in routes[0].items()}
        for each in routes
    )


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    ("outputs", "values"),
    [
        (Record, [Record(word, number) for number in range(4) for word in "ab"]),
        (Data, [Data(word, number) for number in range(4) for word in "ab"]),
        (Named, [Named(word, number) for number in range(4) for word in "ab"]),
        (["word", "count"], [(word, number) for number in range(4) for word in "ab"]),
    ],
)
async def test_fields_takes_the_key_by_name(outputs: object, values: list[Any]) -> None:
    """Values whose named field is equal meet, whatever else is in them."""
    routes = await routes_of(values, lambda stream: stream.fields("word"), tasks=97, outputs=outputs)
    assert sorted([word_of(value) for value in each] for each in routes.values() if each) == [
        ["a"] * 4,
        ["b"] * 4,
    ]


def word_of(value: Any) -> object:
    """The word of a record."""
    return value[0] if isinstance(value, tuple) else value.word


@pytest.mark.simulated_time
@pytest.mark.parametrize("key", [0, lambda value: value[0]])
async def test_fields_takes_the_key_by_index_and_by_function(key: Any) -> None:
    """``fields(0)`` and a key function decide by the first item alone."""
    values = [(word, number) for number in range(4) for word in "ab"]
    routes = await routes_of(values, lambda stream: stream.fields(key), tasks=97)
    assert sorted(len(each) for each in routes.values() if each) == [4, 4]


@pytest.mark.simulated_time
async def test_fields_two_fields_are_a_key_of_both() -> None:
    """Values meet only if both are equal."""
    values = [Record(word, count) for _ in range(3) for word in "ab" for count in range(2)]
    routes = await routes_of(values, lambda stream: stream.fields("word", "count"), tasks=97, outputs=Record)
    assert sorted(len(each) for each in routes.values() if each) == [3, 3, 3, 3]


class Key(str):
    """A key that can be watched."""

    __slots__ = ("__weakref__",)


@pytest.mark.simulated_time
@pytest.mark.parametrize("grouping", ["fields", "partial_key"])
async def test_fields_the_key_cache_is_bounded(grouping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 keys that were routed, no more than the bound are kept; and routes stay what they were."""
    monkeypatch.setattr(groupings, "CACHED_KEYS", 10)
    alive: weakref.WeakSet[Key] = weakref.WeakSet()

    def keys() -> Iterator[Key]:
        for number in range(200):
            key = Key(f"key {number}")
            alive.add(key)
            yield key

    topology = Topology("cache")
    stream = topology.spout("keys", keys)
    topology.bolt("ignore", ignore, getattr(stream, grouping)(), parallelism=3)
    async with topology.run() as running:
        await running.finished()
        await asyncio.sleep(1)
        gc.collect()
        assert len(alive) <= 12


# partial_key.


@pytest.mark.simulated_time
async def test_partial_key_gives_each_key_two_tasks_and_an_even_load() -> None:
    """One hot key is shared evenly by two tasks, and by no third one."""
    routes = await routes_of(["hot"] * 100, Stream.partial_key, tasks=5)
    assert sorted(len(values) for values in routes.values()) == [0, 0, 0, 50, 50]


@pytest.mark.simulated_time
async def test_partial_key_every_key_has_at_most_two_tasks() -> None:
    """Whatever the load, a key never goes to a third task; the tasks are loaded evenly."""
    values = [f"key {number % 40}" for number in range(4000)]
    routes = await routes_of(values, Stream.partial_key, tasks=5)
    assert all(1 <= len(tasks_of(routes, key)) <= 2 for key in set(values))
    assert max(map(len, routes.values())) < 1.3 * min(map(len, routes.values()))


@pytest.mark.simulated_time
async def test_partial_key_takes_keys_like_fields() -> None:
    """By name, and raising for what has no stable hash."""
    values = [Record("a", number) for number in range(40)]
    routes = await routes_of(values, lambda stream: stream.partial_key("word"), tasks=9, outputs=Record)
    assert sorted(len(each) for each in routes.values())[-3:] == [0, 20, 20]
    with pytest.raises(TopologyCrashed) as crash:
        await routes_of([object()], Stream.partial_key)
    assert "partial_key grouping of 'values' -> 'note'" in str(crash.value.__cause__)


# all, global_, direct, custom.


@pytest.mark.simulated_time
async def test_all_gives_every_task_every_tuple() -> None:
    """Four tasks get the three values each."""
    routes = await routes_of(["a", "b", "c"], Stream.all)
    assert list(routes.values()) == [["a", "b", "c"]] * 4


@pytest.mark.simulated_time
async def test_global_gives_everything_to_the_task_with_the_lowest_id() -> None:
    """The other tasks get nothing."""
    routes = await routes_of(range(20), Stream.global_)
    assert routes[min(routes)] == list(range(20))
    assert sum(map(len, routes.values())) == 20


@pytest.mark.simulated_time
async def test_direct_goes_to_the_task_that_the_producer_names() -> None:
    """From a spout, and from a bolt, on streams that are declared direct."""
    first: dict[int, list[object]] = {}
    second: dict[int, list[object]] = {}
    topology = Topology("direct")
    spout = topology.spout("values", [To(n, task=4 + n % 2) for n in range(6)], outputs=DirectStream())
    topology.bolt("first", noting(first), spout.direct(), parallelism=2)
    forward = topology.bolt("forward", lambda value: value, topology.spout("more", range(6)).shuffle())
    bolt = topology.bolt("choose", lambda n: To(n, task=8 + n % 2), forward.shuffle(), outputs=DirectStream())
    topology.bolt("second", noting(second), bolt.direct(), parallelism=2)
    await run_to_end(topology)
    assert first == {4: [0, 2, 4], 5: [1, 3, 5]}
    assert second == {8: [0, 2, 4], 9: [1, 3, 5]}


@pytest.mark.simulated_time
@pytest.mark.parametrize("task", [None, 1, 99])
async def test_direct_refuses_an_emit_to_nobody_and_to_a_stranger(task: int | None) -> None:
    """The message names the tasks that may be named."""
    topology = Topology("direct")
    stream = topology.spout("values", [To("x", task=task)], outputs=DirectStream())
    topology.bolt("note", noting({}), stream.direct(), parallelism=2)
    with pytest.raises(TopologyCrashed) as crash:
        await run_to_end(topology)
    assert isinstance(crash.value.__cause__, InvalidEmit)
    assert "[3, 4]" in str(crash.value.__cause__)


@pytest.mark.simulated_time
async def test_direct_a_value_that_does_not_fit_is_refused() -> None:
    """The declared fields hold for a tuple whose receiver is named, too."""
    topology = Topology("direct")
    stream = topology.spout("values", [To(1, task=3)], outputs=DirectStream(["word"]), max_restarts=0)
    topology.bolt("bolt", ignore, stream.direct())
    with pytest.raises(TopologyCrashed) as crash:
        await run_to_end(topology)
    assert "does not fit its declared fields" in str(crash.value.__cause__)


def test_direct_streams_and_direct_groupings_belong_together() -> None:
    """Either one without the other is refused when the topology is built."""
    topology = Topology("direct")
    with pytest.raises(InvalidTopology, match="not declared direct"):
        topology.spout("plain", ["x"]).direct()
    with pytest.raises(InvalidTopology, match="declared direct"):
        topology.spout("direct", ["x"], outputs=DirectStream()).shuffle()


class ByLength(CustomGrouping):
    """Sends a text to as many tasks as it has letters."""

    targets: Sequence[int] = ()

    def prepare(self, targets: Sequence[int]) -> None:
        self.targets = targets

    def choose(self, value: object) -> Sequence[int]:
        return self.targets[: len(str(value))]


@pytest.mark.simulated_time
async def test_custom_goes_to_the_tasks_that_it_chooses() -> None:
    """To several, to one or to none; a message that reaches none is acked (L11)."""
    routes = await routes_of(["", "a", "bb", "ccc"], lambda stream: stream.custom(ByLength()))
    assert list(routes.values()) == [["a", "bb", "ccc"], ["bb", "ccc"], ["ccc"], []]


@pytest.mark.simulated_time
async def test_custom_knows_its_targets_in_ascending_order() -> None:
    """``prepare`` gets the consumer's task ids before the first value."""
    grouping = ByLength()
    routes = await routes_of(["a"], lambda stream: stream.custom(grouping))
    assert list(grouping.targets) == sorted(routes)


@pytest.mark.simulated_time
async def test_custom_a_task_that_is_no_target_is_refused() -> None:
    """The message names the grouping, what it chose and what it may choose."""

    class Wrong(ByLength):
        def choose(self, value: object) -> Sequence[int]:
            return [99]

    with pytest.raises(TopologyCrashed) as crash:
        await routes_of(["x"], lambda stream: stream.custom(Wrong()))
    assert isinstance(crash.value.__cause__, InvalidEmit)
    assert "custom grouping of 'values' -> 'note' chose [99]" in str(crash.value.__cause__)


# Several subscriptions.


@pytest.mark.simulated_time
async def test_each_subscription_deals_by_its_own_grouping() -> None:
    """Two bolts on one stream, and one bolt on two streams, get what their own groupings say."""
    by_key, everyone = defaultdict[int, list[object]](list), defaultdict[int, list[object]](list)
    topology = Topology("several")
    stream = topology.spout("values", ["a", "b", "a", "b"])
    other = topology.spout("others", ["a"])
    topology.bolt("keyed", noting(by_key), stream.fields(), other.all(), parallelism=3)
    topology.bolt("everyone", noting(everyone), stream.all(), parallelism=2)
    await run_to_end(topology)
    assert sorted(value for values in everyone.values() for value in values) == ["a"] * 4 + ["b"] * 4
    assert Counter(value for values in by_key.values() for value in values) == {"a": 5, "b": 2}
