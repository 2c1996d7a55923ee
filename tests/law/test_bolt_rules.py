"""The rules B1 to B10 of the law, on the running engine."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    DirectStream,
    InvalidTopology,
    Reject,
    Running,
    Spout,
    SpoutCollector,
    TaskContext,
    To,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.errors import EndOfStream
from tests.cast import Counting, Ignore, Join, Note, Slow, ignore, refuse, twice
from tests.helpers import leave_by, now, run_to_end

Log = list[tuple[str, float]]


async def outputs_of(logic: Any, value: object = "in") -> list[object]:
    """What a bolt sends downstream for one input, which must be acked."""
    seen: list[object] = []
    topology = Topology("outputs")
    stream = topology.bolt("logic", logic, topology.spout("one", [value]).shuffle())
    topology.bolt("note", partial(Note, seen), stream.shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["one"].acked == 1
    return seen


# B1: function bolts and BasicBolt.


def return_generator(value: object) -> Iterator[object]:
    yield 1
    yield 2


async def return_awaited(value: object) -> object:
    await asyncio.sleep(1)
    return 1


async def return_async_generator(value: object) -> AsyncIterator[object]:
    yield 1
    await asyncio.sleep(1)
    yield 2


async def awaited_generator(value: object) -> object:
    return return_generator(value)


class Called:
    """A callable object, which inspect sees no coroutine function in."""

    async def __call__(self, value: object) -> object:
        return 1


def add(number: int, value: object) -> object:
    return number


RESULTS: dict[str, tuple[Callable[..., object], list[object]]] = {
    "None": (lambda _: None, []),
    "value": (lambda _: 1, [1]),
    "zero": (lambda _: 0, [0]),
    "text": (lambda _: "ab", ["ab"]),
    "list": (lambda _: [1, 2], [[1, 2]]),
    "empty list": (lambda _: [], [[]]),
    "tuple": (lambda _: (1, 2), [(1, 2)]),
    "set": (lambda _: {1}, [{1}]),
    "range": (lambda _: range(2), [range(2)]),
    "iterator": (lambda _: iter([1, 2]), [1, 2]),
    "map": (lambda _: map(int, "12"), [1, 2]),
    "empty iterator": (lambda _: iter([]), []),
    "generator function": (return_generator, [1, 2]),
    "generator returned by a lambda": (lambda value: return_generator(value), [1, 2]),
    "coroutine function": (return_awaited, [1]),
    "coroutine returned by a lambda": (lambda value: return_awaited(value), [1]),
    "task": (lambda value: asyncio.ensure_future(return_awaited(value)), [1]),
    "async generator function": (return_async_generator, [1, 2]),
    "async generator returned by a lambda": (lambda value: return_async_generator(value), [1, 2]),
    "generator that was awaited": (awaited_generator, [1, 2]),
    "callable object": (Called(), [1]),
    "partial": (partial(add, 7), [7]),
    "class": (type, [str]),
}


@pytest.mark.simulated_time
@pytest.mark.parametrize("kind", RESULTS)
async def test_B1_results_of_functions(kind: str) -> None:
    """None is nothing; iterators and generators are drained, awaitables awaited; all else is one output."""
    logic, outputs = RESULTS[kind]
    assert await outputs_of(logic) == outputs


@pytest.mark.simulated_time
@pytest.mark.parametrize("made", [Note, Note()])
async def test_B1_a_function_that_makes_bolts_crashes_the_topology(made: object) -> None:
    """At the first input, with an error that names the way out."""
    with pytest.raises(
        TopologyCrashed, match=r"'logic' .* makes a bolt, Note: .*functools.partial\(Note, ...\)"
    ):
        await outputs_of(lambda _: made)


@pytest.mark.simulated_time
@pytest.mark.parametrize("base", [Bolt, BasicBolt])
async def test_B1_what_execute_returns_counts_as_an_exception(base: type[Any]) -> None:
    """Its input fails."""
    logic = type("Gives", (base,), {"execute": lambda self, tup, out: 5})
    topology = Topology("gives", max_attempts=1)
    topology.bolt("logic", logic, topology.spout("one", ["in"]).shuffle())
    (letter,) = (await run_to_end(topology)).dead_letters
    assert "execute of 'logic' (task 3) returned 5" in str(letter.failure.exception)


class Basic(BasicBolt[object, object]):
    """Emits its input twice."""

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.emit(tup.value)
        out.emit(tup.value)


class BasicAsync(BasicBolt[object, object]):
    """The same, asynchronously."""

    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.emit(tup.value)
        await asyncio.sleep(1)
        out.emit(tup.value)


async def twice_async(value: object) -> AsyncIterator[object]:
    yield value
    await asyncio.sleep(1)
    yield value


def twice_to(value: object) -> Iterator[To[object]]:
    yield To(value)
    yield To(value)


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [Basic, BasicAsync, twice, twice_async, twice_to, lambda value: value])
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B1_outputs_are_anchored_to_the_input(logic: Any, concurrency: int) -> None:
    """What happens to an output downstream happens to the message that it came of."""
    topology = Topology("anchored")
    source = topology.spout("words", ["a", "b"])
    stream = topology.bolt("logic", logic, source.shuffle(), concurrency=concurrency)
    topology.bolt("refuse", lambda value: refuse(value) if value == "a" else None, stream.shuffle())
    running = await run_to_end(topology)
    assert [each.value for each in running.dead_letters] == ["a"]
    assert running.statistics().components["words"].acked == 1


def raise_at_once(value: object) -> None:
    raise Reject("refused")


def raise_midway(value: object) -> Iterator[object]:
    yield 1
    raise Reject("refused")


async def raise_awaited(value: object) -> None:
    await asyncio.sleep(1)
    raise Reject("refused")


async def raise_midway_async(value: object) -> AsyncIterator[object]:
    yield 1
    raise Reject("refused")


class BasicRaise(BasicBolt[object, object]):
    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.emit(1)
        raise Reject("refused")


class BasicRaiseAsync(BasicBolt[object, object]):
    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        await asyncio.sleep(1)
        raise Reject("refused")


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    "logic",
    [raise_at_once, raise_midway, raise_awaited, raise_midway_async, BasicRaise, BasicRaiseAsync],
)
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B1_an_exception_fails_the_input(logic: Any, concurrency: int) -> None:
    """Wherever the code raises, the message fails with that component and exception."""
    topology = Topology("raise")
    source = topology.spout("one", ["a"])
    stream = topology.bolt("logic", logic, source.shuffle(), concurrency=concurrency)
    topology.bolt("ignore", ignore, stream.shuffle())
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert letter.failure.component == "logic"
    assert isinstance(letter.failure.exception, Reject)


@pytest.mark.simulated_time
async def test_B1_the_input_is_acked_only_on_return() -> None:
    """While an asynchronous call is suspended, its message is pending."""
    topology = Topology("return")
    topology.bolt("slow", return_awaited, topology.spout("one", ["a"]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        assert running.statistics().components["one"].acked == 0
        await asyncio.sleep(0.6)
        assert running.statistics().components["one"].acked == 1


def sort_out(value: int) -> object:
    """Even numbers to one stream, multiples of three to another one, the rest nowhere."""
    if value % 2 == 0:
        return To(value, stream="even")
    return iter([To(value, stream="three"), value]) if value % 3 == 0 else None


async def sort_out_async(value: int) -> object:
    return sort_out(value)


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [sort_out, sort_out_async])
@pytest.mark.parametrize("concurrency", [1, 4])
async def test_B1_to_reaches_other_streams(logic: Any, concurrency: int) -> None:
    """A result ``To(value, stream=...)`` goes there and nowhere else, alone or from an iterator."""
    seen: dict[str, list[object]] = {"default": [], "even": [], "three": []}
    topology = Topology("to")
    stream = topology.bolt(
        "sort",
        logic,
        topology.spout("numbers", range(10)).shuffle(),
        outputs=dict.fromkeys(seen),
        concurrency=concurrency,
    )
    for name, values in seen.items():
        topology.bolt(f"note {name}", partial(Note, values), stream.named(name).shuffle())
    await run_to_end(topology)
    assert {name: sorted(map(str, values)) for name, values in seen.items()} == {
        "default": ["3", "9"],
        "even": ["0", "2", "4", "6", "8"],
        "three": ["3", "9"],
    }


@pytest.mark.simulated_time
async def test_B1_to_reaches_one_task() -> None:
    """``To(value, task=...)`` chooses the receiver on a direct stream, and is anchored like any output."""
    seen: list[tuple[object, int]] = []

    class Note(BasicBolt[object, object]):
        def prepare(self, context: TaskContext) -> None:
            self.task = context.task

        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            seen.append((tup.value, self.task))
            if tup.value == 1:
                raise Reject("refused")

    topology = Topology("direct")
    tasks = [4, 5, 6]
    numbers = topology.spout("numbers", range(6))
    stream = topology.bolt(
        "choose", lambda value: To(value, task=tasks[value % 3]), numbers.shuffle(), outputs=DirectStream()
    )
    topology.bolt("note", Note, stream.direct(), parallelism=3)
    running = await run_to_end(topology)
    assert sorted(seen) == [(value, tasks[value % 3]) for value in range(6)]
    assert [each.value for each in running.dead_letters] == [1]


# B2: Bolt classes settle by themselves.


@pytest.mark.simulated_time
async def test_B2_a_bolt_may_hold_inputs_across_calls() -> None:
    """The first input of a pair stays pending until the second one comes, even much later."""

    async def numbers() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(20)
        yield 2

    topology = Topology("pairs")
    topology.bolt("pairs", Join, topology.spout("numbers", numbers).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(19)
        assert running.statistics().components["numbers"].pending == 1
        await running.finished()
        assert running.statistics().components["numbers"].acked == 2


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_B2_returning_acks_nothing(asynchronous: bool) -> None:
    """An input that a ``Bolt`` neither acked nor failed is not settled by its return."""

    class Forget(Bolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> Awaitable[None] | None:
            return asyncio.sleep(0) if asynchronous else None

    topology = Topology("forget", message_timeout=5.0, max_attempts=1)
    topology.bolt("forget", Forget, topology.spout("one", ["a"]).shuffle())
    running = await run_to_end(topology)
    assert [each.failure.kind.name for each in running.dead_letters] == ["TIMEOUT"]


@pytest.mark.simulated_time
@pytest.mark.parametrize("anchored", [False, True])
async def test_B2_a_bolt_anchors_explicitly(anchored: bool) -> None:
    """Only an output that names its anchor can fail the message."""

    class Forward(Bolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            out.emit(tup.value, anchors=tup if anchored else ())
            out.emit("by default")
            out.ack(tup)

    topology = Topology("explicit")
    stream = topology.bolt("forward", Forward, topology.spout("one", ["a"]).shuffle())
    topology.bolt("refuse", refuse, stream.shuffle())
    running = await run_to_end(topology)
    assert len(running.dead_letters) == anchored
    assert running.statistics().components["refuse"].failed == 2


@pytest.mark.simulated_time
async def test_B2_explicit_anchors_join_all_held_inputs() -> None:
    """When the output of a pair is refused, both messages fail."""
    topology = Topology("pairs")
    stream = topology.bolt("pairs", Join, topology.spout("numbers", [1, 2]).shuffle())
    topology.bolt("refuse", refuse, stream.shuffle())
    running = await run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1, 2]


# B3: order.


def busy(topology: Topology) -> None:
    """Another chain in the topology, so that tasks find their share of the loop used up."""
    stream = topology.spout("busy", range(300))
    for number in range(3):
        stream = topology.bolt(f"busy {number}", twice if number < 2 else ignore, stream.shuffle())


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 2, 7])
@pytest.mark.parametrize("seed", range(6))
async def test_B3_executions_start_in_the_order_of_the_emits(concurrency: int, seed: int) -> None:
    """For every pair of producer and consumer task, whatever the interleaving and the concurrency."""
    started = defaultdict[tuple[int, int], list[int]](list)

    class Note(BasicBolt[tuple[int, int], object]):
        def prepare(self, context: TaskContext) -> None:
            self.task = context.task

        async def execute(self, tup: Tuple[tuple[int, int]], out: Collector[object]) -> None:
            producer, number = tup.value
            started[producer, self.task].append(number)
            await asyncio.sleep(0.01 * (number % 3))

    def share(context: TaskContext) -> Iterator[tuple[int, int]]:
        for number in range(120):
            yield context.task_index, number

    topology = Topology("order")
    busy(topology)
    spout = topology.spout("numbers", share, parallelism=2)
    topology.bolt("note", Note, spout.shuffle(), parallelism=2, concurrency=concurrency)
    await run_to_end(topology, seed=seed)
    assert len(started) == 4
    assert all(numbers == sorted(numbers) for numbers in started.values())


@pytest.mark.simulated_time
async def test_B3_concurrent_calls_complete_in_any_order() -> None:
    """With concurrency 3 the shortest call ends first, and no more than three run at a time."""
    ended: list[float] = []
    running = most = 0

    async def sleep(seconds: float) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(seconds)
        running -= 1
        ended.append(seconds)

    topology = Topology("any order")
    topology.bolt("sleep", sleep, topology.spout("seconds", [30, 20, 10, 1, 1]).shuffle(), concurrency=3)
    await run_to_end(topology)
    assert ended == [10, 1, 1, 20, 30]
    assert most == 3


@pytest.mark.simulated_time
async def test_B3_one_call_at_a_time_is_the_default() -> None:
    """Without ``concurrency`` the second input waits for the end of the first call."""
    ended: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append(seconds)

    topology = Topology("one")
    topology.bolt("sleep", sleep, topology.spout("seconds", [3, 1]).shuffle())
    await run_to_end(topology)
    assert ended == [3, 1]
    assert now() == 4


@pytest.mark.simulated_time
async def test_B3_each_concurrent_call_has_a_collector_of_its_own() -> None:
    """What a call emits after its await is anchored to its own input, not to that of the last call."""

    class Wait(BasicBolt[int, int]):
        async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            await asyncio.sleep(1)
            out.emit(tup.value)

    topology = Topology("own")
    stream = topology.bolt("wait", Wait, topology.spout("numbers", range(4)).shuffle(), concurrency=4)
    topology.bolt("refuse", lambda value: refuse(value) if value == 1 else None, stream.shuffle())
    running = await run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1]


# B4: exceptions in user code.


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_B4_the_instance_goes_on_after_an_exception(asynchronous: bool) -> None:
    """One instance sees all the inputs; the ones it raised on are failed, the others acked."""
    made: list[object] = []

    class Odd(BasicBolt[int, int]):
        def __init__(self) -> None:
            made.append(self)

        def check(self, value: int) -> None:
            if value % 2:
                raise ValueError(value)

        async def later(self, value: int) -> None:
            self.check(value)

        def execute(self, tup: Tuple[int], out: Collector[int]) -> Awaitable[None] | None:
            return self.later(tup.value) if asynchronous else self.check(tup.value)

    topology = Topology("odd", max_attempts=1)
    topology.bolt("odd", Odd, topology.spout("numbers", range(6)).shuffle())
    running = await run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1, 3, 5]
    assert running.statistics().components["odd"].acked == 3
    assert len(made) == 1


@pytest.mark.simulated_time
async def test_B4_an_exception_is_logged_once_with_component_task_and_value(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One record that says where it happened and on what, with the traceback."""

    def fail(value: object) -> None:
        raise ZeroDivisionError("why")

    topology = Topology("log", max_attempts=1)
    topology.bolt("fail", fail, topology.spout("one", ["the value"]).shuffle())
    with caplog.at_level(logging.WARNING):
        await run_to_end(topology)
    (record,) = [each for each in caplog.records if each.exc_info]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    for part in ("fail[0]", "the value", "why"):
        assert part in record.getMessage()


class SettleAndRaise(Bolt[object, object]):
    """Acks its input and raises then."""

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.ack(tup)
        raise ValueError("afterwards")


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_B4_an_exception_after_the_ack_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """It cannot fail the input any more, which stays acked."""
    topology = Topology("afterwards")
    topology.bolt("settled", SettleAndRaise, topology.spout("one", ["a"]).shuffle())
    running = await run_to_end(topology)
    statistics = running.statistics().components
    assert (statistics["one"].acked, statistics["one"].failed) == (1, 0)
    assert (statistics["settled"].errors, statistics["settled"].failed) == (1, 0)
    assert "afterwards" in caplog.text


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B4_on_error_stop_crashes_the_topology(concurrency: int) -> None:
    """With ``on_error="stop"`` the first exception ends the run and is its cause."""

    def fail(value: object) -> None:
        raise ZeroDivisionError(value)

    topology = Topology("stop")
    source = topology.spout("one", ["a"])
    topology.bolt("fail", fail, source.shuffle(), on_error="stop", concurrency=concurrency)
    with pytest.raises(TopologyCrashed, match=r"execute of fail\[0\]") as crash:
        await run_to_end(topology)
    assert isinstance(crash.value.__cause__, ZeroDivisionError)


@pytest.mark.simulated_time
async def test_B4_an_exception_in_a_batch_fails_its_unsettled_members() -> None:
    """A member that was acked before stays acked; the others fail."""

    class AckFirst(BatchBolt[int, int]):
        size = 3

        def execute_batch(self, tups: Any, out: Collector[int]) -> None:
            out.ack(tups[0])
            raise Reject("the rest")

    topology = Topology("batch")
    topology.bolt("batch", AckFirst, topology.spout("numbers", range(3)).shuffle())
    running = await run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1, 2]
    assert running.statistics().components["numbers"].acked == 1


# B5: ticks.


def ticking(log: list[tuple[int, float]]) -> type[BasicBolt[object, object]]:
    """A bolt that notes task and time of its ticks."""

    class Note(BasicBolt[object, object]):
        def prepare(self, context: TaskContext) -> None:
            self.index = context.task_index

        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            pass

        def tick(self, out: Collector[object]) -> None:
            log.append((self.index, now()))

    return Note


@pytest.mark.simulated_time
async def test_B5_each_task_ticks_every_so_many_seconds() -> None:
    """Both tasks tick at 2.5, 5 and 7.5 s, with nothing to execute."""
    log: list[tuple[int, float]] = []
    topology = Topology("ticks")
    topology.bolt("note", ticking(log), topology.spout("fed").shuffle(), parallelism=2, tick=2.5)
    async with topology.run():
        await asyncio.sleep(9)
    assert sorted(log, key=lambda each: each[1]) == [
        (task, moment) for moment in (2.5, 5, 7.5) for task in (0, 1)
    ]


@pytest.mark.simulated_time
async def test_B5_the_topology_can_set_the_ticks_of_all_bolts() -> None:
    """``tick=`` of the topology holds for every bolt with the method, and troubles no other."""
    log: list[tuple[int, float]] = []
    topology = Topology("ticks", tick=2.0)
    fed = topology.spout("fed")
    topology.bolt("note", ticking(log), fed.shuffle())
    topology.bolt("ignore", ignore, fed.shuffle())
    topology.bolt("own", ticking(log), fed.shuffle(), tick=3.0)
    async with topology.run():
        await asyncio.sleep(3.5)
    assert [moment for _, moment in log] == [2, 3]


@pytest.mark.simulated_time
async def test_B5_a_run_can_set_the_ticks_of_all_bolts() -> None:
    """``run(tick=)`` holds for every bolt with the method that has no ``tick=`` of its own, factories included."""
    log: list[tuple[int, float]] = []
    topology = Topology("ticks")
    fed = topology.spout("fed")
    topology.bolt("note", lambda: ticking(log)(), fed.shuffle())
    topology.bolt("own", ticking(log), fed.shuffle(), tick=3.0)
    topology.bolt("none", lambda: Ignore(), fed.shuffle())
    async with topology.run(tick=2.0):
        await asyncio.sleep(5)
    assert [at for _, at in log] == [2.0, 3.0, 4.0]


@pytest.mark.simulated_time
@pytest.mark.parametrize("base", [Bolt, BasicBolt])
async def test_B5_what_a_tick_emits_is_untracked(base: Any) -> None:
    """Even between the executions of tracked inputs no tree is touched, and nothing fails."""

    class Tick(base):  # type: ignore[misc]
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            if base is Bolt:
                out.ack(tup)

        def tick(self, out: Collector[str]) -> None:
            out.emit("tick")

    async def slow() -> AsyncIterator[str]:
        for value in "abc":
            yield value
            await asyncio.sleep(1)

    topology = Topology("untracked")
    stream = topology.bolt("tick", Tick, topology.spout("slow", slow).shuffle(), tick=0.5)
    topology.bolt("refuse", refuse, stream.shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["refuse"].failed >= 5
    assert running.statistics().components["slow"].acked == 3
    assert running.statistics().components["slow"].failed == 0


@pytest.mark.simulated_time
async def test_B5_at_most_one_tick_of_a_task_is_outstanding() -> None:
    """Ticks that fall due while one runs, or while execute runs, are not made up for."""
    ticks: list[float] = []

    class Slow(BasicBolt[object, object]):
        async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            await asyncio.sleep(10.5)

        async def tick(self, out: Collector[object]) -> None:
            ticks.append(now())
            await asyncio.sleep(3.4)

    topology = Topology("slow")
    topology.bolt("slow", Slow, topology.spout("one", ["a"]).shuffle(), tick=1.0)
    async with topology.run():
        await asyncio.sleep(22)
    assert ticks == [10.5, 14, 18, 22][: len(ticks)]
    assert len(ticks) >= 3


@pytest.mark.parametrize("logic", [Ignore, ignore])
def test_B5_tick_without_the_method_is_an_error(logic: Any) -> None:
    """It is found when the topology is built, and names the bolt."""
    topology = Topology("none")
    words = topology.spout("words", ["a"])
    with pytest.raises(InvalidTopology, match=r"'bolt' has tick=1\.0"):
        topology.bolt("bolt", logic, words.shuffle(), tick=1.0)


@pytest.mark.simulated_time
async def test_B5_tick_without_the_method_is_an_error_of_a_factory_too() -> None:
    """What a factory makes is known only at the start; then it is refused."""
    topology = Topology("none")
    topology.bolt("bolt", lambda: Ignore(), topology.spout("words", ["a"]).shuffle(), tick=1.0)
    with pytest.raises(InvalidTopology, match=r"'bolt' has tick=1\.0"):
        await run_to_end(topology)


# B6: emit is a plain call, and queues are bounded all the same.


@pytest.mark.simulated_time
async def test_B6_emit_is_a_plain_call_that_gives_the_target_tasks() -> None:
    """It returns the ids of the tasks that the value was delivered to, and nothing to await."""
    given: list[object] = []

    class Emit(BasicBolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            given.append(out.emit(tup.value))
            given.append(out.emit(tup.value, stream="unheard"))

    topology = Topology("plain")
    source = topology.spout("one", ["a"])
    stream = topology.bolt("emit", Emit, source.shuffle(), outputs={"default": None, "unheard": None})
    topology.bolt("ignore", ignore, stream.all(), parallelism=2)
    await run_to_end(topology)
    assert given == [(4, 5), ()]


class NotesQueued(BasicBolt[object, object]):
    """Takes a while for each input, and notes how much is queued or in hand meanwhile."""

    def __init__(self, most: list[int], running: Callable[[], Running]) -> None:
        self.most = most
        self.running = running

    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        self.most.append(self.running().statistics().components["slow"].pending)
        await asyncio.sleep(0.01)


class Burst(BasicBolt[object, object]):
    """Emits many values for each input."""

    count = 50

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        for number in range(self.count):
            out.emit(number)


class BurstAsync(Burst):
    """Emits the same in the middle of an await."""

    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().execute(tup, out)
        await asyncio.sleep(0.001)


class BurstHeld(Bolt[object, object]):
    """Emits the same as an explicit bolt."""

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        for number in range(Burst.count):
            out.emit(number, anchors=tup)
        out.ack(tup)


class BurstBatch(BatchBolt[object, object]):
    """Emits the same for each batch of one."""

    size = 1

    def execute_batch(self, tups: Any, out: Collector[object]) -> None:
        for number in range(Burst.count):
            out.emit(number)


class BurstTick(Burst):
    """Emits the same at a tick."""

    def tick(self, out: Collector[object]) -> None:
        for number in range(self.count):
            out.emit(number)


def flood(value: object) -> Iterator[object]:
    """Yields ten times as many."""
    yield from range(10 * Burst.count)


async def flood_async(value: object) -> AsyncIterator[object]:
    for number in flood(value):
        yield number


async def most_queued(
    logic: Any, *, capacity: int, producers: int, seed: int, values: int = 8, **options: Any
) -> int:
    """The most tuples that a slow bolt has queued or in hand, behind so many tasks of another one."""
    most: list[int] = []
    handle: list[Running] = []
    topology = Topology("bound", queue_capacity=capacity, message_timeout=None)
    source = topology.spout("values", range(values))
    stream = topology.bolt("burst", logic, source.shuffle(), parallelism=producers, **options)
    topology.bolt("slow", lambda: NotesQueued(most, lambda: handle[0]), stream.shuffle())
    async with topology.run(seed=seed) as running:
        handle.append(running)
        await running.finished()
    return max(most)


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [Burst, BurstAsync, BurstHeld, BurstBatch])
@pytest.mark.parametrize("producers", [1, 3])
@pytest.mark.parametrize("capacity", [1, 10, 40])
async def test_B6_the_bound_is_twice_the_capacity_and_one_executes_outputs_per_producer(
    logic: Any, producers: int, capacity: int
) -> None:
    """However fast the producers and slow the consumer, no more tuples than that are ever there."""
    most = await most_queued(logic, capacity=capacity, producers=producers, seed=producers)
    assert most <= 2 * capacity + producers * Burst.count


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [flood, flood_async])
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B6_a_generator_waits_between_its_values(logic: Any, concurrency: int) -> None:
    """Of five hundred values of one call, no more than twice the capacity and one are ever there."""
    most = await most_queued(logic, capacity=10, producers=1, seed=1, values=1, concurrency=concurrency)
    assert most <= 2 * 10 + 1


@pytest.mark.simulated_time
async def test_B6_ticks_wait_for_room_too() -> None:
    """A bolt whose ticks emit faster than the consumer works is held up like any other."""
    most: list[int] = []
    handle: list[Running] = []
    topology = Topology("ticks", queue_capacity=10, drain_timeout=0.1)
    stream = topology.bolt("burst", BurstTick, topology.spout("fed").shuffle(), tick=0.01)
    topology.bolt("slow", lambda: NotesQueued(most, lambda: handle[0]), stream.shuffle())
    async with topology.run() as running:
        handle.append(running)
        await asyncio.sleep(10)
    assert max(most) <= 2 * 10 + Burst.count


@pytest.mark.simulated_time
async def test_B6_a_task_waits_for_every_queue_it_has_filled() -> None:
    """One free consumer does not help where another one is stuck; with it everything goes on."""
    done: list[object] = []

    async def stuck(value: int) -> None:
        await asyncio.sleep(10 if value == 0 else 0)

    topology = Topology("every", queue_capacity=2)
    stream = topology.bolt("forward", lambda value: value, topology.spout("numbers", range(50)).shuffle())
    topology.bolt("stuck", stuck, stream.shuffle())
    topology.bolt("free", partial(Note, done), stream.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(9)
        assert len(done) <= 2 * 2 + 1
        await running.finished()
    assert len(done) == 50


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_B6_a_task_that_has_died_waits_for_the_room_that_it_waited_for(concurrency: int) -> None:
    """However often it dies, its next life adds nothing to a queue that the one before has filled."""
    topology = Topology("again", queue_capacity=2, message_timeout=None, drain_timeout=0)
    numbers = topology.spout("numbers", range(50))
    stream = topology.bolt("forward", lambda value: value, numbers.shuffle(), concurrency=concurrency)
    topology.bolt("stuck", partial(Slow, 100), stream.shuffle())
    async with topology.run() as running:
        for _ in range(8):
            await asyncio.sleep(10)
            running.kill("forward")
        assert running.statistics().components["stuck"].pending <= 2 * 2 + concurrency


@pytest.mark.simulated_time
async def test_B6_a_full_queue_starves_none_of_its_producers() -> None:
    """Of three spouts that wait for the same room again and again each gets its share."""
    seen: list[int] = []

    async def slow(value: int) -> None:
        seen.append(value)
        await asyncio.sleep(1)

    def endless(context: TaskContext) -> Iterator[int]:
        return itertools.repeat(context.task_index)

    def share(context: TaskContext) -> Iterator[int]:
        yield from endless(context)

    topology = Topology("share", queue_capacity=1)
    topology.bolt("slow", slow, topology.spout("three", share, parallelism=3).shuffle())
    async with topology.run():
        await asyncio.sleep(90)
    assert min(seen.count(task) for task in range(3)) >= 20


@pytest.mark.simulated_time
async def test_B6_edges_inside_a_cycle_do_not_wait() -> None:
    """Two bolts that feed each other more than their queues hold still come to an end."""
    topology = Topology("cycle", queue_capacity=1)
    source = topology.spout("depths", [7])
    down = topology.bolt("down", lambda depth: iter([depth] * 2), source.shuffle())
    up = topology.bolt("up", lambda depth: depth - 1 if depth else None, down.shuffle())
    topology.connect(down, up.shuffle())
    running = await asyncio.wait_for(run_to_end(topology), 60)
    assert running.statistics().components["depths"].acked == 1
    assert running.statistics().components["up"].executed == sum(2**n for n in range(1, 9))


@pytest.mark.simulated_time
async def test_B6_in_a_cycle_max_spout_pending_is_the_bound() -> None:
    """However many values the source has, only that many trees run round in it at a time."""
    open_trees: list[int] = []
    handle: list[Running] = []

    async def again(depth: int) -> int | None:
        open_trees.append(handle[0].statistics().components["depths"].pending)
        await asyncio.sleep(0.01)
        return depth - 1 if depth else None

    topology = Topology("cycle", max_spout_pending=3)
    looped = topology.bolt("again", again, topology.spout("depths", [4] * 20).shuffle())
    topology.connect(looped, looped.shuffle())
    async with topology.run() as running:
        handle.append(running)
        await running.finished()
    assert max(open_trees) == 3
    assert len(open_trees) == 100


# B7: no overlap.


class Exclusive:
    """Notes which calls of its owner there were, and which overlapped."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.overlaps: list[str] = []
        self._inside: list[str] = []

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        self.overlaps += [f"{name} in {other}" for other in self._inside]
        self._inside.append(name)
        try:
            yield
        finally:
            self._inside.remove(name)
            self.calls.append(name)


class Everything(Bolt[object, object]):
    """Has every method, and each takes its time."""

    exclusive: Exclusive

    def __init__(self) -> None:
        self.held: list[Tuple[object]] = []

    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        with self.exclusive.call("execute"):
            await asyncio.sleep(0.7)
            self.held.append(tup)

    async def tick(self, out: Collector[object]) -> None:
        with self.exclusive.call("tick"):
            await asyncio.sleep(0.7)

    async def flush(self, out: Collector[object]) -> None:
        with self.exclusive.call("flush"):
            await asyncio.sleep(0.7)
            while self.held:
                out.ack(self.held.pop())

    async def finish(self, out: Collector[object]) -> None:
        with self.exclusive.call("finish"):
            await asyncio.sleep(0.7)

    async def cleanup(self) -> None:
        with self.exclusive.call("cleanup"):
            await asyncio.sleep(0.7)


@pytest.mark.simulated_time
async def test_B7_no_two_methods_of_one_instance_overlap() -> None:
    """Execute, tick, flush, finish and cleanup wait for each other's awaits."""
    exclusive = Exclusive()

    class Strict(Everything):
        pass

    Strict.exclusive = exclusive
    topology = Topology("strict", max_spout_pending=2)
    topology.bolt("strict", Strict, topology.spout("numbers", range(7)).shuffle(), tick=0.5)
    await run_to_end(topology)
    assert set(exclusive.calls) == {"execute", "tick", "flush", "finish", "cleanup"}
    assert exclusive.overlaps == []
    assert exclusive.calls[-1] == "cleanup"


@pytest.mark.simulated_time
async def test_B7_cleanup_waits_for_a_call_that_is_cancelled() -> None:
    """When the block is left by an exception, the suspended execute ends before cleanup begins."""
    calls: list[str] = []

    class Cancelled(BasicBolt[object, object]):
        async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(1)
                calls.append("execute")

        def cleanup(self) -> None:
            calls.append("cleanup")

    topology = Topology("cancelled")
    topology.bolt("bolt", Cancelled, topology.spout("one", ["a"]).shuffle())
    with pytest.raises(ZeroDivisionError):
        await leave_by(ZeroDivisionError(), topology)
    assert calls == ["execute", "cleanup"]


@pytest.mark.simulated_time
async def test_B7_batches_do_not_overlap_either() -> None:
    """A batch that is due by its age waits for the full one of another key that runs."""
    exclusive = Exclusive()

    class Batch(BatchBolt[int, int]):
        size = 2
        within = 0.3

        def key(self, value: int) -> int:
            return value % 2

        async def execute_batch(self, tups: Any, out: Collector[int]) -> None:
            with exclusive.call(str([each.value for each in tups])):
                await asyncio.sleep(0.5)

    topology = Topology("batches")
    topology.bolt("batch", Batch, topology.spout("numbers", [0, 1, 3]).shuffle())
    await run_to_end(topology)
    assert exclusive.overlaps == []
    assert exclusive.calls == ["[1, 3]", "[0]"]


# B8: flush.


class Collecting(Bolt[object, object]):
    """Holds its inputs until ``flush``, then forwards and acks them; notes the times."""

    log: Log
    name = "collecting"

    def __init__(self) -> None:
        self.held: list[Tuple[object]] = []

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        self.held.append(tup)

    def flush(self, out: Collector[object]) -> None:
        self.log.append((self.name, now()))
        for tup in self.held:
            out.emit(tup.value, anchors=tup)
            out.ack(tup)
        self.held = []


def collecting(log: Log, name: str = "collecting") -> type[Collecting]:
    """A class of its own, with its own log."""
    return type("Collecting", (Collecting,), {"log": log, "name": name})


@pytest.mark.simulated_time
async def test_B8_a_batch_that_can_never_fill_is_written_and_not_timed_out() -> None:
    """Seven values for batches of a hundred, of which three may be pending, long before any is due."""
    written: list[int] = []

    class Write(BatchBolt[int, int]):
        size = 100
        within = 1000.0

        def execute_batch(self, tups: Any, out: Collector[int]) -> None:
            written.extend(each.value for each in tups)

    topology = Topology("write", max_spout_pending=3)
    topology.bolt("write", Write, topology.spout("numbers", range(7)).shuffle())
    running = await run_to_end(topology)
    assert written == list(range(7))
    assert running.statistics().components["numbers"].acked == 7
    assert now() < 1


@pytest.mark.simulated_time
async def test_B8_a_spout_that_is_paused_by_max_spout_pending_leads_to_a_flush() -> None:
    """Where less may be pending than a batch holds, it is flushed as often as it takes."""
    log: Log = []
    topology = Topology("paused", max_spout_pending=3)
    topology.bolt("collect", collecting(log), topology.spout("numbers", range(9)).shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["numbers"].acked == 9
    assert len(log) == 3
    assert now() == 0


@pytest.mark.simulated_time
async def test_B8_no_flush_while_a_source_may_still_yield() -> None:
    """A generator that sleeps may bring more; the flush comes when it has ended."""
    log: Log = []

    async def numbers() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(20)
        yield 2

    topology = Topology("sleeping")
    topology.bolt("collect", collecting(log), topology.spout("numbers", numbers).shuffle())
    await run_to_end(topology)
    assert log == [("collecting", 20)]


@pytest.mark.simulated_time
async def test_B8_no_flush_for_a_spout_that_the_host_has_paused() -> None:
    """A deactivated spout is not paused by max_spout_pending only."""
    log: Log = []

    async def numbers() -> AsyncIterator[int]:
        for number in itertools.count():
            yield number
            await asyncio.sleep(1)

    topology = Topology("inactive")
    topology.bolt("collect", collecting(log), topology.spout("numbers", numbers).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(2.5)
        running.deactivate()
        await asyncio.sleep(10)
        assert log == []


@pytest.mark.simulated_time
async def test_B8_no_flush_while_anything_runs_or_is_queued() -> None:
    """While another bolt works on a tuple, or has one in its queue, more may come."""
    log: Log = []

    async def slow(value: int) -> int:
        await asyncio.sleep(5)
        return value

    topology = Topology("running")
    forwarded = topology.bolt("slow", slow, topology.spout("numbers", range(3)).shuffle())
    topology.bolt("collect", collecting(log), forwarded.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(7)
        await running.finished()
    assert log == [("collecting", 15)]


@pytest.mark.simulated_time
async def test_B8_flush_goes_upstream_first() -> None:
    """Where several hold inputs, what the upstream flush emits joins the batch of the next one."""
    log: Log = []
    topology = Topology("chain")
    source = topology.spout("numbers", range(3))
    first = topology.bolt("first", collecting(log, "first"), source.shuffle())
    second = topology.bolt("second", collecting(log, "second"), source.shuffle(), first.shuffle())
    topology.bolt("third", collecting(log, "third"), source.shuffle(), second.shuffle())
    await run_to_end(topology)
    assert [name for name, _ in log] == ["first", "second", "third"]


@pytest.mark.simulated_time
async def test_B8_only_tasks_that_hold_unsettled_inputs_are_flushed() -> None:
    """Of three tasks only the one that got the tuple is asked; one that holds nothing never is."""
    log: Log = []
    topology = Topology("holders")
    source = topology.spout("one", ["a"])
    topology.bolt("collect", collecting(log), source.shuffle(), parallelism=3)

    class Idle(Collecting):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            out.ack(tup)

    Idle.log, Idle.name = log, "idle"
    topology.bolt("idle", Idle, source.shuffle())
    await run_to_end(topology)
    assert log == [("collecting", 0)]


@pytest.mark.simulated_time
async def test_B8_a_holder_may_reset_the_timeout_of_what_it_holds() -> None:
    """With it an input is held for ten times the message timeout, and acked."""

    class Keep(Bolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            self.held = tup
            self.due = now() + 100

        def tick(self, out: Collector[object]) -> None:
            if now() < self.due:
                out.reset_timeout(self.held)
            elif self.held is not None:
                out.ack(self.held)
                self.due = float("inf")

    topology = Topology("keep", message_timeout=10.0)
    topology.bolt("keep", Keep, topology.spout("one", ["a"]).shuffle(), tick=4.0)
    running = await run_to_end(topology)
    source = running.statistics().components["one"]
    assert (source.acked, source.failed) == (1, 0)
    assert now() == 100


# B9: threads.


async def in_threads(topology: Topology) -> Running:
    """Run to the end in real time, which must not take long."""
    return await asyncio.wait_for(run_to_end(topology), 20)


@pytest.mark.asyncio
async def test_B9_user_code_runs_in_a_thread_and_the_loop_goes_on() -> None:
    """While three calls block for 50 ms each, the loop turns."""
    threads: set[int] = set()

    def block(value: int) -> None:
        threads.add(threading.get_ident())
        time.sleep(0.05)

    topology = Topology("block")
    topology.bolt("block", block, topology.spout("numbers", range(3)).shuffle(), executor="thread")
    async with topology.run() as running:
        finished = asyncio.ensure_future(running.finished())
        longest = 0.0
        while not finished.done():
            before = now()
            await asyncio.sleep(0.001)
            longest = max(longest, now() - before)
    assert threads.isdisjoint({threading.get_ident()})
    assert longest < 0.045


@pytest.mark.asyncio
async def test_B9_a_slice_of_tuples_is_handed_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand tuples take far fewer hops to the thread than there are tuples."""
    loop = asyncio.get_running_loop()
    hops = 0
    run_in_executor = loop.run_in_executor

    def counted(*arguments: Any) -> Any:
        nonlocal hops
        hops += 1
        return run_in_executor(*arguments)

    monkeypatch.setattr(loop, "run_in_executor", counted)
    topology = Topology("slices", max_spout_pending=None)
    topology.bolt("ignore", ignore, topology.spout("numbers", range(2000)).shuffle(), executor="thread")
    running = await in_threads(topology)
    assert running.statistics().components["ignore"].acked == 2000
    assert hops < 200


class ThreadBasic(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        if tup.value == 3:
            raise Reject("three")
        out.emit(tup.value)


class ThreadBolt(Bolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        if tup.value == 3:
            out.fail(tup, "three", permanent=True)
        else:
            out.emit(tup.value, anchors=tup)
            out.ack(tup)


class ThreadBatch(BatchBolt[int, int]):
    size = 2

    def execute_batch(self, tups: Any, out: Collector[int]) -> None:
        for tup in tups:
            if tup.value == 3:
                out.fail(tup, "three", permanent=True)
            else:
                out.emit(tup.value, anchors=tup)


def thread_function(value: int) -> Iterator[int]:
    if value == 3:
        raise Reject("three")
    yield value


@pytest.mark.asyncio
@pytest.mark.parametrize("logic", [ThreadBasic, ThreadBolt, ThreadBatch, thread_function])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_B9_every_kind_of_bolt_does_the_same_in_a_thread(logic: Any, concurrency: int) -> None:
    """Outputs are anchored, inputs acked and failed, exactly as on the loop."""
    topology = Topology("kinds")
    source = topology.spout("numbers", range(6))
    stream = topology.bolt("logic", logic, source.shuffle(), executor="thread", concurrency=concurrency)
    topology.bolt("refuse", lambda value: refuse(value) if value == 5 else None, stream.shuffle())
    running = await in_threads(topology)
    assert sorted(each.value for each in running.dead_letters) == [3, 5]
    assert running.statistics().components["numbers"].acked == 4
    assert running.statistics().components["refuse"].executed == 5


@pytest.mark.asyncio
async def test_B9_outputs_are_applied_on_the_loop() -> None:
    """The grouping of an output that was emitted in a thread is asked on the loop's thread."""
    asked: set[int] = set()

    def key(value: int) -> int:
        asked.add(threading.get_ident())
        return value

    topology = Topology("loop")
    source = topology.spout("numbers", range(10))
    stream = topology.bolt("twice", twice, source.shuffle(), executor="thread")
    topology.bolt("ignore", ignore, stream.fields(key), parallelism=2)
    await in_threads(topology)
    assert asked == {threading.get_ident()}


@pytest.mark.asyncio
async def test_B9_prepare_tick_finish_and_cleanup_run_in_the_thread_too() -> None:
    """All the user code of the instance, in one thread, one after another."""
    calls: dict[str, int] = {}

    class All(BasicBolt[int, int]):
        def note(self, name: str) -> None:
            calls[name] = threading.get_ident()

        def prepare(self, context: TaskContext) -> None:
            self.note("prepare")

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.note("execute")

        def tick(self, out: Collector[int]) -> None:
            self.note("tick")

        def finish(self, out: Collector[int]) -> None:
            self.note("finish")

        def cleanup(self) -> None:
            self.note("cleanup")

    topology = Topology("all")
    topology.bolt("all", All, topology.spout("one", [1]).shuffle(), executor="thread", tick=0.01)
    async with topology.run() as running:
        await asyncio.sleep(0.03)
        await running.finished()
    assert set(calls) == {"prepare", "execute", "tick", "finish", "cleanup"}
    assert threading.get_ident() not in calls.values()
    assert len(set(calls.values())) == 1


@pytest.mark.simulated_time
async def test_B9_under_simulated_time_the_code_runs_inline() -> None:
    """No thread is used, so that two runs are the same."""
    threads: set[int] = set()

    def note(value: int) -> None:
        threads.add(threading.get_ident())

    topology = Topology("inline")
    topology.bolt("note", note, topology.spout("numbers", range(3)).shuffle(), executor="thread")
    await run_to_end(topology)
    assert threads == {threading.get_ident()}


# B10: values are shared, and context variables travel.


@pytest.mark.simulated_time
async def test_B10_replicas_and_replays_share_the_object() -> None:
    """Every task, and every attempt, gets the very object that was emitted."""
    value = object()
    seen: list[object] = []

    class Fail(Bolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            seen.append(tup.value)
            out.fail(tup)

    topology = Topology("shared", max_attempts=2)
    topology.bolt("fail", Fail, topology.spout("one", [value]).all(), parallelism=3)
    await run_to_end(topology)
    assert len(seen) == 6
    assert all(each is value for each in seen)


request: ContextVar[object] = ContextVar("request", default=None)


class SetInSpout(Counting):
    """Sets the variable for each message."""

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        request.set(self.next)
        super().next_tuple(out)


class SetInAsyncSpout(Spout[int]):
    """The same, asynchronously."""

    next = 0

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.next == 3:
            raise EndOfStream
        request.set(self.next)
        await asyncio.sleep(0.1)
        out.emit(self.next, message_id=self.next)
        self.next += 1


def set_in_generator() -> Iterator[int]:
    for number in range(3):
        request.set(number)
        yield number


async def set_in_async_generator() -> AsyncIterator[int]:
    for number in set_in_generator():
        await asyncio.sleep(0.1)
        yield number


def see(value: object) -> object:
    return (value, request.get())


async def see_async(value: object) -> object:
    await asyncio.sleep(0.01)
    return see(value)


def see_in_generator(value: object) -> Iterator[object]:
    yield see(value)


class SeeBolt(BasicBolt[object, object]):
    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.emit(see(tup.value))


SOURCES = [SetInSpout, SetInAsyncSpout, set_in_generator, set_in_async_generator]


async def seen_contexts(source: Any, logic: Any, **options: Any) -> list[object]:
    """What two bolts in a row see of the variable, for each of three messages."""
    seen: list[object] = []
    topology = Topology("context")
    first = topology.bolt("first", logic, topology.spout("source", source).shuffle(), **options)
    second = topology.bolt("second", see, first.shuffle())
    topology.bolt("note", partial(Note, seen), second.shuffle())
    await run_to_end(topology)
    return sorted(seen, key=str)


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("logic", [see, see_async, see_in_generator, SeeBolt])
async def test_B10_context_variables_set_in_a_spout_travel_with_the_tuple(source: Any, logic: Any) -> None:
    """Each bolt of the chain sees the value that was set for its message."""
    assert await seen_contexts(source, logic) == [((number, number), number) for number in range(3)]


class SetOnce(Counting):
    """Sets the variable for its first message only."""

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.next == 0:
            request.set("first")
        super().next_tuple(out)


class SetOnceAsync(SetOnce):
    """The same, asynchronously."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:  # type: ignore[override]
        await asyncio.sleep(0.1)
        super().next_tuple(out)


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [SetOnce, SetOnceAsync])
async def test_B10_what_a_call_of_a_spout_sets_does_not_reach_the_next_one(source: Any) -> None:
    """Each ``next_tuple`` begins with the variables of the topology."""
    seen = await seen_contexts(source, see)
    assert seen == [((0, "first"), "first"), ((1, None), None), ((2, None), None)]


@pytest.mark.asyncio
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B10_context_variables_travel_into_threads(concurrency: int) -> None:
    """A bolt that runs in a thread sees them as one on the loop does."""
    seen = await seen_contexts(SetInSpout, see, executor="thread", concurrency=concurrency)
    assert seen == [((number, number), number) for number in range(3)]


@pytest.mark.simulated_time
async def test_B10_context_variables_set_by_the_host_travel_with_its_message() -> None:
    """Two messages that are under way at the same time do not mix them up."""
    topology = Topology("host")
    fed = topology.spout("fed")
    seen = topology.bolt("see", see_async, fed.shuffle(), concurrency=2)
    trees = []
    async with topology.run() as running:
        for name in ("first", "second"):
            request.set(name)
            trees.append(await running.emit(fed, name, collect=seen))
        request.set("later")
        assert [await tree for tree in trees] == [[("first", "first")], [("second", "second")]]


@pytest.mark.simulated_time
async def test_B10_a_replay_brings_the_context_of_its_message() -> None:
    """A value that is executed again sees the variable that was set when it was yielded."""
    seen: list[object] = []

    def fail_first(value: object) -> None:
        seen.append((value, request.get()))
        if len(seen) < 2:
            raise ValueError(value)

    def one() -> Iterator[str]:
        request.set("set")
        yield "a"
        request.set("changed")

    topology = Topology("replay")
    topology.bolt("fail", fail_first, topology.spout("one", one).shuffle())
    await run_to_end(topology)
    assert seen == [("a", "set")] * 2


@pytest.mark.simulated_time
async def test_B10_what_a_bolt_sets_does_not_reach_other_tuples() -> None:
    """A variable that is set while one tuple is executed is unset for the next one and downstream."""

    def set_after(value: object) -> object:
        seen = request.get()
        request.set("leaked")
        return seen

    seen: list[object] = []
    topology = Topology("leak")
    first = topology.bolt("set", set_after, topology.spout("numbers", set_in_generator).shuffle())
    second = topology.bolt("see", see, first.shuffle())
    topology.bolt("note", partial(Note, seen), second.shuffle())
    await run_to_end(topology)
    assert seen == [(number, number) for number in range(3)]
