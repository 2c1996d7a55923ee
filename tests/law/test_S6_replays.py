"""Sources whose messages are replayed, and their dead letters (law S6)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import json
import logging
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    DeadLetter,
    FailureKind,
    Reject,
    Running,
    Topology,
    TopologyCrashed,
    Tuple,
)
from tests.cast import Forget, same, take_a_second
from tests.engines import IN_PROCESS, Engine
from tests.helpers import RefusingKey, now, run_to_end
from tests.law.failing import failing_first
from tests.law.puppets import BRIEFLY


def source_of(kind: str, values: list[object]) -> object:
    """The values as one of the four kinds of reliable sources."""

    def generator() -> Iterator[object]:
        yield from values

    async def async_generator() -> AsyncIterator[object]:
        for value in values:
            yield value

    return {
        "generator": generator,
        "async generator": async_generator,
        "iterable": values,
        "async iterable": async_generator(),
    }[kind]


@pytest.mark.simulated_time
@pytest.mark.parametrize("kind", ["generator", "iterable"])
async def test_S6_every_kind_of_source_replays_what_failed(engine: Engine, kind: str) -> None:
    """Values that fail once are executed again, with the next attempt's number, and acked then."""
    await replay_what_failed(engine, kind)


@pytest.mark.simulated_time
@pytest.mark.parametrize("kind", ["async generator", "async iterable"])
async def test_S6_asynchronous_sources_replay_what_failed(kind: str) -> None:
    """In the same way."""
    await replay_what_failed(IN_PROCESS, kind)


async def replay_what_failed(engine: Engine, kind: str) -> None:
    """Fail some values of such a source once."""
    executed: list[tuple[object, int]] = []

    class FailFirst(BasicBolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            executed.append((tup.value, tup.attempt))
            if tup.attempt == 1 and tup.value != "fine":
                raise ValueError(tup.value)

    topology = Topology("reliable")
    spout = topology.spout("source", source_of(kind, ["a", "fine", "b"]))  # type: ignore[call-overload]
    topology.bolt("fail", FailFirst, spout.shuffle())
    running = await engine.run_to_end(topology)
    assert sorted(executed, key=str) == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("fine", 1)]
    assert running.statistics().components["source"].acked == 3


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("kind", ["generator", "async generator", "iterable", "async iterable"])
async def test_S6_a_replay_whose_emit_raises_is_emitted_by_the_restarted_task(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A key function that raises twice at the replay delays it, and the log says what raised."""
    key = RefusingKey(times=2)
    topology = Topology("reliable")
    spout = topology.spout("source", source_of(kind, ["a"]))  # type: ignore[call-overload]
    topology.bolt("fail", failing_first(1), spout.fields(key), parallelism=2)
    source = (await asyncio.wait_for(run_to_end(topology), 60)).statistics().components["source"]
    assert key.calls == 4
    assert (source.acked, source.replayed, source.restarts) == (1, 1, 2)
    assert "replay of source[0] raised KeyFunctionFailed" in caplog.text


@pytest.mark.simulated_time
async def test_S6_a_replay_whose_emit_raises_for_ever_crashes_the_topology() -> None:
    """The spout task is restarted for it as often as for anything else; the message is left over then."""
    key = RefusingKey(times=math.inf)
    topology = Topology("reliable", max_restarts=2)
    topology.bolt("fail", failing_first(1), topology.spout("source", ["a"]).fields(key), parallelism=2)
    async with crashing(topology) as running:
        await running.finished()
    assert key.calls == 1 + 3
    assert running.statistics().left_over == 1
    assert now() < 60


@pytest.mark.simulated_time
async def test_S6_a_replay_whose_emit_raises_is_not_lost_while_the_source_is_awaited() -> None:
    """An async generator does not survive that its task dies while it is awaited: the topology crashes."""

    async def slow() -> AsyncIterator[str]:
        yield "a"
        await asyncio.sleep(3600)

    topology = Topology("reliable")
    spout = topology.spout("source", slow)
    topology.bolt("fail", failing_first(1), spout.fields(RefusingKey(times=1)), parallelism=2)
    async with crashing(topology) as running:
        await running.finished()
    assert running.statistics().left_over == 1
    assert now() < 60


@asynccontextmanager
async def crashing(topology: Topology) -> AsyncIterator[Running]:
    """Run a topology that crashes when a replay is emitted."""
    with pytest.raises(TopologyCrashed, match=r"replay of source\[0\]"):
        async with topology.run() as running:
            yield running


def always_failing(attempts: list[tuple[float, int]]) -> type[BasicBolt[object, object]]:
    """A bolt that notes time and number of every attempt and fails it."""

    class Fail(BasicBolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            attempts.append((now(), tup.attempt))
            raise ValueError(tup.value)

    return Fail


@pytest.mark.simulated_time
async def test_S6_a_value_is_attempted_at_most_five_times(engine: Engine) -> None:
    """The fifth failure is the last one; then the value is a dead letter."""
    attempts: list[tuple[float, int]] = []
    topology = Topology("five")
    topology.bolt("fail", always_failing(attempts), topology.spout("one", ["x"]).shuffle())
    running = await engine.run_to_end(topology)
    assert [number for _, number in attempts] == [1, 2, 3, 4, 5]
    assert [each.attempts for each in running.dead_letters] == [5]


@pytest.mark.simulated_time
@pytest.mark.parametrize("most", [1, 2])
async def test_S6_max_attempts_is_an_option(engine: Engine, most: int) -> None:
    """As many attempts are made as ``max_attempts`` says."""
    attempts: list[tuple[float, int]] = []
    topology = Topology("few", max_attempts=most)
    topology.bolt("fail", always_failing(attempts), topology.spout("one", ["x"]).shuffle())
    await engine.run_to_end(topology)
    assert len(attempts) == most


@pytest.mark.simulated_time
async def test_S6_a_timeout_is_an_attempt_too() -> None:
    """A value that is held too long twice, with two attempts allowed, is a dead letter that names TIMEOUT."""
    topology = Topology("held", max_attempts=2, message_timeout=3.0)
    topology.bolt("hold", Forget, topology.spout("one", ["x"]).shuffle())
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert letter.attempts == 2
    assert [each.kind for each in letter.history] == [FailureKind.TIMEOUT] * 2


async def pauses_between_attempts(engine: Engine, most: int, seed: int) -> list[float]:
    """The seconds between the attempts at one value."""
    attempts: list[tuple[float, int]] = []
    topology = Topology("pauses", max_attempts=most)
    topology.bolt("fail", always_failing(attempts), topology.spout("one", ["x"]).shuffle())
    await engine.run_to_end(topology, seed=seed)
    return [later - before for (before, _), (later, _) in itertools.pairwise(attempts)]


@pytest.mark.simulated_time
async def test_S6_the_pause_before_a_replay_doubles_from_a_tenth_to_thirty_seconds(engine: Engine) -> None:
    """Each pause is 0.1 s doubled so many times, at most 30 s, and stretched by less than a half."""
    pauses = await pauses_between_attempts(engine, 13, seed=1)
    doubled = [min(0.1 * 2**each, 30) for each in range(12)]
    assert all(least <= pause < 1.5 * least + 1e-6 for least, pause in zip(doubled, pauses, strict=True))


@pytest.mark.simulated_time
async def test_S6_the_jitter_of_replays_is_seeded(engine: Engine) -> None:
    """The same seed gives the same pauses, another one others."""
    first = await pauses_between_attempts(engine, 6, seed=1)
    assert await pauses_between_attempts(engine, 6, seed=1) == pytest.approx(first, abs=1e-9)
    assert await pauses_between_attempts(engine, 6, seed=2) != pytest.approx(first, rel=1e-3)


@pytest.mark.simulated_time
async def test_S6_values_that_fail_together_do_not_return_together() -> None:
    """Jitter spreads the replays of one moment."""
    attempts: list[tuple[float, int]] = []
    topology = Topology("spread", max_attempts=2)
    topology.bolt("fail", always_failing(attempts), topology.spout("ten", range(10)).shuffle())
    await run_to_end(topology)
    assert len({time for time, number in attempts if number == 2}) == 10


@pytest.mark.simulated_time
async def test_S6_an_overflow_is_no_attempt() -> None:
    """With one attempt allowed and overflows on the way, every value is acked in the end."""
    topology = Topology("overflow", max_attempts=1, acker_high_water=1, message_timeout=None)
    topology.bolt("slow", take_a_second, topology.spout("numbers", range(20)).shuffle())
    running = await run_to_end(topology)
    numbers = running.statistics().components["numbers"]
    assert (numbers.acked, numbers.dead_letters) == (20, 0)
    assert numbers.failed > 0


@pytest.mark.simulated_time
async def test_S6_a_shutdown_is_no_attempt() -> None:
    """A value that the deadline of a drain cuts off is handed over with no attempt counted."""
    letters: list[DeadLetter] = []
    topology = Topology("shutdown", drain_timeout=1.0)
    topology.bolt("hold", Forget, topology.spout("one", ["x"]).shuffle())
    async with topology.run(dead_letters=letters.append):
        await asyncio.sleep(BRIEFLY)
    assert [(each.failure.kind, each.attempts) for each in letters] == [(FailureKind.SHUTDOWN, 0)]


def reject(value: object) -> None:
    """A bolt that can do nothing with its input."""
    raise Reject(f"no use for {value}")


class FailPermanently(Bolt[object, object]):
    """Fails its input for good."""

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.fail(tup, f"no use for {tup.value}", permanent=True)


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [reject, FailPermanently])
async def test_S6_reject_and_permanent_skip_the_replays(
    engine: Engine, logic: type[Bolt[object, object]]
) -> None:
    """The first attempt is the last one, and the dead letter has the reason given."""
    topology = Topology("reject")
    topology.bolt("reject", logic, topology.spout("one", ["x"]).shuffle())
    running = await engine.run_to_end(topology)
    (letter,) = running.dead_letters
    assert letter.attempts == 1
    assert letter.failure.permanent
    assert letter.failure.reason == "no use for x"


@pytest.mark.simulated_time
async def test_S6_a_dead_letter_has_cause_lineage_and_attempts(engine: Engine) -> None:
    """It names the source, the value, its id, the component and exception, and why each attempt failed."""

    def fail(value: str) -> None:
        if value == "bad":
            raise ZeroDivisionError(value)

    topology = Topology("letter", max_attempts=2)
    forwarded = topology.bolt("forward", same, topology.spout("words", ["good", "bad"]).shuffle())
    topology.bolt("fail", fail, forwarded.shuffle())
    running = await engine.run_to_end(topology)
    (letter,) = running.dead_letters
    assert (letter.component, letter.value, letter.attempts) == ("words", "bad", 2)
    assert letter.message_id is not None
    assert (letter.failure.kind, letter.failure.component) == (FailureKind.FAILED, "fail")
    assert isinstance(letter.failure.exception, ZeroDivisionError)
    assert [each.kind for each in letter.history] == [FailureKind.FAILED] * 2


@pytest.mark.simulated_time
async def test_S6_each_value_has_a_message_id_of_its_own(engine: Engine) -> None:
    """Equal values are still different messages."""
    topology = Topology("ids")
    topology.bolt("reject", reject, topology.spout("same", ["x"] * 5).shuffle())
    running = await engine.run_to_end(topology)
    assert len({each.message_id for each in running.dead_letters}) == 5


@pytest.mark.simulated_time
async def test_S6_an_asynchronous_dead_letter_callable_is_awaited_before_the_release() -> None:
    """The message stays pending until the callable has returned, so the next value is taken only then."""
    taken: list[float] = []

    def two() -> Iterator[str]:
        for value in ("first", "second"):
            taken.append(now())
            yield value

    async def store(letter: DeadLetter) -> None:
        await asyncio.sleep(5)

    topology = Topology("store", max_spout_pending=1)
    topology.bolt("reject", reject, topology.spout("two", two).shuffle())
    async with topology.run(dead_letters=store) as running:
        await asyncio.sleep(BRIEFLY)
        assert running.statistics().components["two"].pending == 1
        await running.finished()
        assert now() == 10
    assert taken == [0, 5]


@pytest.mark.simulated_time
async def test_S6_the_future_of_a_thread_is_awaited_before_the_release() -> None:
    """A sink may return what ``pool.submit`` gives: the letter counts when that is done, and not if it has failed."""
    futures = list[concurrent.futures.Future[None]]()

    def sink(letter: DeadLetter) -> concurrent.futures.Future[None]:
        futures.append(concurrent.futures.Future())
        return futures[-1]

    topology = Topology("letters", max_attempts=1)
    topology.bolt("fail", reject, topology.spout("words", ["one", "two"]).shuffle())

    async def run() -> None:
        async with topology.run(dead_letters=sink) as running:
            await asyncio.sleep(1)
            assert (len(futures), len(running.dead_letters)) == (2, 0)
            futures[0].set_result(None)
            await asyncio.sleep(1)
            assert len(running.dead_letters) == 1
            futures[1].set_exception(OSError("the disk is full"))
            await asyncio.sleep(1)

    with pytest.raises(TopologyCrashed) as crash:
        await run()
    assert isinstance(crash.value.__cause__, OSError)


@pytest.mark.simulated_time
async def test_S6_a_plain_dead_letter_callable_gets_every_letter() -> None:
    """It is called once for each value that was given up."""
    letters: list[DeadLetter] = []
    topology = Topology("callable")
    topology.bolt("reject", reject, topology.spout("numbers", range(3)).shuffle())
    await run_to_end(topology, dead_letters=letters.append)
    assert [each.value for each in letters] == [0, 1, 2]


@pytest.mark.simulated_time
@pytest.mark.parametrize("as_text", [False, True])
async def test_S6_dead_letters_go_to_a_jsonl_file(tmp_path: Path, as_text: bool) -> None:
    """Given a path, each dead letter is a line of JSON, appended to what is there."""
    path = tmp_path / "dead.jsonl"
    path.write_text('{"value": "old"}\n')
    topology = Topology("file")
    topology.bolt("reject", reject, topology.spout("words", ["a", "b"]).shuffle())
    await run_to_end(topology, dead_letters=str(path) if as_text else path)
    old, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert old == {"value": "old"}
    assert [(each["component"], each["value"], each["attempts"]) for each in lines] == [
        ("words", "a", 1),
        ("words", "b", 1),
    ]
    assert [each["reason"] for each in lines] == ["no use for a", "no use for b"]


@pytest.mark.simulated_time
async def test_S6_the_default_keeps_the_last_1000_counts_all_and_logs_one_line_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of 1005 dead letters the first five are forgotten, but counted and logged."""
    topology = Topology("many")
    topology.bolt("reject", reject, topology.spout("numbers", range(1005)).shuffle())
    with caplog.at_level(logging.ERROR, "stormlet"):
        running = await run_to_end(topology)
    assert [each.value for each in running.dead_letters] == list(range(5, 1005))
    assert running.statistics().dead_letters == 1005
    lines = [each.getMessage() for each in caplog.records if "dead letter" in each.getMessage()]
    assert len(lines) == 1005
    assert not any("\n" in line for line in lines)
