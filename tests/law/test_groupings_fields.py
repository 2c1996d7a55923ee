"""Groupings by key: fields and partial_key."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec
import pytest

from stormlet import InvalidEmit, Stream, TaskContext, Topology, TopologyCrashed, UnroutableKey
from stormlet.core import groupings
from stormlet.testing import run_simulated
from tests.cast import ignore
from tests.engines import IN_PROCESS, Engine
from tests.helpers import run_to_end
from tests.law.routes import noting, routes_of, tasks_of

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
async def test_fields_sends_equal_keys_to_one_task(engine: Engine, tasks: int) -> None:
    """Every type of key that the law names is routable, and all its occurrences meet."""
    routes = await routes_of(engine, KEYS * 3, Stream.fields, tasks=tasks)
    for key in KEYS:
        (task,) = tasks_of(routes, key)
        assert routes[task].count(key) >= 3


@pytest.mark.simulated_time
async def test_fields_spreads_the_keys(engine: Engine) -> None:
    """A thousand words over four tasks leave none with less than a fifth of them or so."""
    routes = await routes_of(engine, [f"word {number}" for number in range(1000)], Stream.fields)
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
async def test_fields_anything_else_raises_naming_type_and_grouping(engine: Engine, key: object) -> None:
    """No repr, no pickle: what has no stable hash is refused, also inside other keys."""
    with pytest.raises(TopologyCrashed) as crash:
        await routes_of(engine, [key], Stream.fields)
    error = crash.value.__cause__
    assert isinstance(error, UnroutableKey)
    assert "fields grouping of 'values' -> 'note'" in str(error)
    culprits = ("object", "set", "complex", "OwnEqual", "builtin_function_or_method")
    assert any(name in str(error) for name in culprits)


@pytest.mark.simulated_time
async def test_fields_a_bolt_that_emits_an_unroutable_key_fails_its_input(engine: Engine) -> None:
    """Inside a bolt there is a tuple that answers for it."""
    topology = Topology("bolt", max_attempts=1)
    stream = topology.bolt("make", lambda _: {1, 2}, topology.spout("one", [1]).shuffle())
    topology.bolt("note", noting({}), stream.fields(), parallelism=2)
    running = await engine.run_to_end(topology)
    (letter,) = running.dead_letters
    assert isinstance(letter.failure.exception, UnroutableKey)
    assert "'make' -> 'note'" in str(letter.failure.exception)


class Sale(msgspec.Struct):
    shop: str


def wrong(_: object) -> Sale:
    """Its annotation is believed."""
    return cast("Sale", 7)


@pytest.mark.simulated_time
async def test_fields_a_value_without_its_field_fails_the_input_in_a_sentence(engine: Engine) -> None:
    """It names the ends of the stream, the field, and the type of what has none."""
    topology = Topology("bolt", max_attempts=1)
    sales = topology.bolt("make", wrong, topology.spout("one", [1]).shuffle())
    topology.bolt("note", noting({}), sales.fields("shop"), parallelism=2)
    running = await engine.run_to_end(topology)
    (letter,) = running.dead_letters
    assert isinstance(letter.failure.exception, InvalidEmit)
    assert (
        "fields grouping of 'make' -> 'note': 7, of type int, cannot be asked for its field 'shop' "
        in str(letter.failure.exception)
    )


PROGRAM = """
import asyncio, json
from tests.law.test_groupings_fields import IN_PROCESS, Stream, WORDS, routes_of, run_simulated
routes = run_simulated(routes_of(IN_PROCESS, WORDS, Stream.fields))
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
    here = run_simulated(routes_of(IN_PROCESS, WORDS, Stream.fields))
    assert json.loads(program.stdout) == {str(task): sorted(map(str, words)) for task, words in here.items()}


@pytest.mark.simulated_time
async def test_fields_the_same_key_goes_to_the_same_task_in_every_run(engine: Engine) -> None:
    """Neither the seed nor an earlier run makes a difference."""
    routes = [await routes_of(engine, KEYS, Stream.fields, seed=seed) for seed in range(3)]
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
async def test_fields_takes_the_key_by_name(engine: Engine, outputs: object, values: list[Any]) -> None:
    """Values whose named field is equal meet, whatever else is in them."""
    routes = await routes_of(engine, values, lambda stream: stream.fields("word"), tasks=97, outputs=outputs)
    assert sorted([word_of(value) for value in each] for each in routes.values() if each) == [
        ["a"] * 4,
        ["b"] * 4,
    ]


def word_of(value: Any) -> object:
    """The word of a record."""
    return value[0] if isinstance(value, tuple) else value.word


@pytest.mark.simulated_time
@pytest.mark.parametrize("key", [0, lambda value: value[0]])
async def test_fields_takes_the_key_by_index_and_by_function(engine: Engine, key: Any) -> None:
    """``fields(0)`` and a key function decide by the first item alone."""
    values = [(word, number) for number in range(4) for word in "ab"]
    routes = await routes_of(engine, values, lambda stream: stream.fields(key), tasks=97)
    assert sorted(len(each) for each in routes.values() if each) == [4, 4]


@pytest.mark.simulated_time
async def test_fields_two_fields_are_a_key_of_both(engine: Engine) -> None:
    """Values meet only if both are equal."""
    values = [Record(word, count) for _ in range(3) for word in "ab" for count in range(2)]
    routes = await routes_of(
        engine, values, lambda stream: stream.fields("word", "count"), tasks=97, outputs=Record
    )
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
async def test_partial_key_gives_each_key_two_tasks_and_an_even_load(engine: Engine) -> None:
    """One hot key is shared evenly by two tasks, and by no third one."""
    routes = await routes_of(engine, ["hot"] * 100, Stream.partial_key, tasks=5)
    assert sorted(len(values) for values in routes.values()) == [0, 0, 0, 50, 50]


@pytest.mark.simulated_time
async def test_partial_key_every_key_has_at_most_two_tasks(engine: Engine) -> None:
    """Whatever the load, a key never goes to a third task; the tasks are loaded evenly."""
    values = [f"key {number % 40}" for number in range(4000)]
    routes = await routes_of(engine, values, Stream.partial_key, tasks=5)
    assert all(1 <= len(tasks_of(routes, key)) <= 2 for key in set(values))
    assert max(map(len, routes.values())) < 1.3 * min(map(len, routes.values()))


@pytest.mark.simulated_time
async def test_partial_key_takes_keys_like_fields(engine: Engine) -> None:
    """By name, and raising for what has no stable hash."""
    values = [Record("a", number) for number in range(40)]
    routes = await routes_of(
        engine, values, lambda stream: stream.partial_key("word"), tasks=9, outputs=Record
    )
    assert sorted(len(each) for each in routes.values())[-3:] == [0, 20, 20]
    with pytest.raises(TopologyCrashed) as crash:
        await routes_of(engine, [object()], Stream.partial_key)
    assert "partial_key grouping of 'values' -> 'note'" in str(crash.value.__cause__)
