"""The README's "What happens when": what bolts do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal

import pytest

from stormlet import (
    AlreadySettled,
    BasicBolt,
    Bolt,
    Collector,
    Committer,
    DeadLetter,
    Epoch,
    FailureKind,
    KeyedBolt,
    Place,
    Reject,
    Running,
    Spout,
    SpoutCollector,
    StillHeld,
    Topology,
    TopologyCrashed,
    Tuple,
    TupleTimedOut,
    Value,
    is_compiled,
)
from stormlet.cli.inspecting.checks import findings
from stormlet.state.memory import MemoryStore
from tests.cast import Forget, Refuse, take_a_second
from tests.helpers import run_to_end
from tests.law.puppets import script, threads
from tests.readme.what_happens_when.kit import FailsAtFirst


@pytest.mark.simulated_time
async def test_when_a_bolt_raises(caplog: pytest.LogCaptureFixture) -> None:
    """A bolt raises. Its input fails and the bolt goes on with the next one; a message of a generator or iterable
    comes again after 0.1 s, then 0.2 s and so on with some jitter, in five attempts at most. The log has the
    traceback once and counts the repetitions.
    """
    bolts: list[FailsAtFirst] = []

    def make() -> FailsAtFirst:
        bolts.append(FailsAtFirst())
        return bolts[-1]

    topology = Topology("raises")
    topology.bolt("some", make, topology.spout("values", ["odd", "even"]).shuffle())
    running = await run_to_end(topology)
    ((first, *_), (second, *_), (third, *_), (fourth, *_)) = bolts[0].seen
    assert [value for _, value, _ in bolts[0].seen] == ["odd", "even", "odd", "odd"]
    assert first == second == 0
    assert 0.05 <= third <= 0.2 < fourth <= 0.6
    (failure,) = running.failures()
    assert (failure.kind, failure.count) == ("ConnectionError", 2)
    assert running.statistics().components["values"].acked == 2
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]
    assert "once more" in caplog.messages[1] or "1 more" in caplog.messages[1]

    class Always(FailsAtFirst):
        attempts = 5

    never = Topology("never")
    never.bolt("some", Always, never.spout("values", ["odd"]).shuffle())
    assert [letter.attempts for letter in (await run_to_end(never)).dead_letters] == [5]


@pytest.mark.simulated_time
async def test_when_a_bolt_rejects() -> None:
    """A bolt raises `Reject`, or calls `out.fail(tup, reason, permanent=True)`. The message goes to the dead letters
    at once, without replays; but a `Reject` crashes the topology, as any other exception does, if the bolt has
    `on_error="stop"`.
    """

    def reject(value: object) -> None:
        raise Reject("no use")

    for logic in (reject, partial(Refuse, "no use", permanent=True)):
        letters: list[DeadLetter] = []
        topology = Topology("rejects")
        topology.bolt("reject", logic, topology.spout("values", [1]).shuffle())
        await run_to_end(topology, dead_letters=letters.append)
        assert [(each.attempts, each.failure.reason) for each in letters] == [(1, "no use")]

    stops = Topology("stops")
    stops.bolt("reject", reject, stops.spout("values", [1]).shuffle(), on_error="stop")
    with pytest.raises(TopologyCrashed):
        await run_to_end(stops)


@pytest.mark.simulated_time
@pytest.mark.parametrize(("on_error", "failed", "restarts"), [("restart", 2, 2), ("stop", 1, 0)])
async def test_when_a_bolt_is_to_die_of_errors(
    on_error: Literal["restart", "stop"], failed: int, restarts: int
) -> None:
    """A bolt with `on_error="restart"` raises. Its input fails, and its task dies and is restarted; with
    `on_error="stop"` the topology crashes at once.
    """
    runs: list[Running] = []
    topology = Topology("dies")
    values = topology.spout("values", ["odd"])
    topology.bolt("some", FailsAtFirst, values.shuffle(), on_error=on_error)

    async def run() -> None:
        async with topology.run() as running:
            runs.append(running)
            await running.finished()

    with pytest.raises(TopologyCrashed) if on_error == "stop" else nullcontext():
        await run()
    counts = runs[0].statistics().components
    assert (counts["values"].failed, counts["some"].restarts) == (failed, restarts)


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    ("error", "options", "crashes"),
    [(ValueError, {}, True), (ValueError, {"max_restarts": 5}, False), (Reject, {}, False)],
)
async def test_when_a_message_always_raises(
    error: type[Exception], options: dict[str, Any], *, crashes: bool
) -> None:
    """A bolt with `on_error="restart"` raises at every attempt at a message. That crashes the topology before the
    message is a dead letter, as it has five attempts and a task three restarts in 60 s by default. With
    `max_restarts=5` for that bolt it becomes one, or with a `Reject`, of which no task dies; `stormlet check` says
    where that matters.
    """

    def poison(value: object) -> None:
        raise error(value)

    topology = Topology("poison")
    values = topology.spout("values", ["poison"])
    topology.bolt("some", poison, values.shuffle(), on_error="restart", **options)
    if crashes:
        assert [each.rule for each in findings(topology.describe())] == ["poison message"]
        with pytest.raises(TopologyCrashed, match="after 3 restarts"):
            await run_to_end(topology)
    else:
        counts = (await run_to_end(topology)).statistics().components
        assert (counts["values"].dead_letters, counts["some"].restarts) == (1, 0 if error is Reject else 5)


@pytest.mark.simulated_time
async def test_when_a_tuple_is_never_settled() -> None:
    """A bolt forgets to ack. After `message_timeout` the message fails, and log and failure name the component that
    holds the tuple; it is then replayed like any other. Until then, `running.explain` says which task holds it.
    """
    letters: list[DeadLetter] = []
    topology = Topology("forgets", message_timeout=10, max_attempts=2)
    topology.bolt("holder", Forget, topology.spout("values", [1]).shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await asyncio.sleep(1)
        (explanation,) = running.explain_oldest()
        (outstanding,) = running.explain(explanation.root or 0).outstanding
        assert (outstanding.place, outstanding.name) == (Place.HELD, "holder[0]")
        await running.finished()
    (letter,) = letters
    assert [each.kind for each in letter.history] == [FailureKind.TIMEOUT, FailureKind.TIMEOUT]
    assert letter.failure.holders == ("holder",)


@pytest.mark.simulated_time
async def test_when_a_call_never_returns(caplog: pytest.LogCaptureFixture) -> None:
    """A call never returns. Its message fails after `message_timeout`, as any other; the call itself goes on, and with
    it a finite run. Half a minute to a minute later the log names that call and the line at which it waits. Nothing
    else ends a call: give what it waits for a time limit, such as `asyncio.timeout`.
    """

    async def endless(value: int) -> None:
        await asyncio.Event().wait()

    topology = Topology("endless", message_timeout=10, max_attempts=1)
    topology.bolt("call", endless, topology.spout("values", [1]).shuffle())
    async with topology.run() as running:
        end = asyncio.create_task(running.finished())
        await asyncio.sleep(29)
        assert running.statistics().components["values"].dead_letters == 1
        assert "still running" not in caplog.text
        await asyncio.sleep(45)
        assert "as calls are still running: call[0], in endless (test_bolts.py:" in caplog.text
        assert not end.done()
        end.cancel()


@pytest.mark.simulated_time
@pytest.mark.parametrize("second", ["ack", "fail", "emit"])
async def test_when_an_input_is_settled_twice(second: str) -> None:
    """A bolt settles an input twice, or anchors to one that it has settled. `AlreadySettled` is raised there and names
    the tuple; the first outcome stands. To settle an input whose message has timed out meanwhile is legal and changes
    nothing.
    """

    class Twice(Bolt[str, str]):
        async def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            if tup.value == "late":
                await asyncio.sleep(20)
            out.ack(tup)
            with pytest.raises(AlreadySettled, match=r"<Tuple 'late'|<Tuple 'once'"):
                out.emit("more", anchors=tup) if second == "emit" else getattr(out, second)(tup)

    topology = Topology("twice", message_timeout=10)
    values = topology.spout("values", outputs=str)
    topology.bolt("twice", Twice, values.shuffle())
    async with topology.run() as running:
        await (await running.emit(values, "once"))
        with pytest.raises(TupleTimedOut):
            await (await running.emit(values, "late"))
        await asyncio.sleep(20)
        counts = running.statistics().components
        assert (counts["values"].acked, counts["values"].failed) == (1, 1)
        assert (counts["twice"].acked, counts["twice"].errors) == (2, 0)


@pytest.mark.simulated_time
async def test_when_a_value_is_returned() -> None:
    """A method that emits returns a value. Nothing would take what `execute`, `tick`, `flush`, `finish`, `on_timer` or
    `next_tuple` returns, so that counts as an exception, which says so; `out.emit(value)` is the way. A function of
    the value that returns a bolt or a spout is a factory with a parameter: that crashes the topology at once.
    `stormlet check` finds both where the code shows them.
    """

    class Returns(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> Any:
            return 5

    class Finishes(Forget):
        def finish(self, out: Collector[None]) -> Any:
            return 5

    class Reminds(KeyedBolt[int, int, int]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.set_timer(self.now)

        def on_timer(self, at: float, out: Collector[int]) -> Any:
            return 5

    class Asked(Spout[int]):
        def next_tuple(self, out: SpoutCollector[int]) -> Any:
            return 5

    returns = Topology("returns", max_attempts=1)
    returns.bolt("some", Returns, returns.spout("values", [1]).shuffle())
    (letter,) = (await run_to_end(returns)).dead_letters
    assert "returned 5, which nothing takes: emit it with out.emit(...)" in str(letter.failure)

    finishes = Topology("finishes")
    finishes.bolt("some", Finishes, finishes.spout("values", list[object]()).shuffle())
    reminds = Topology("reminds")
    reminds.bolt("some", Reminds, reminds.spout("values", [1]).fields())
    asked = Topology("asked")
    asked.bolt("some", Forget, asked.spout("values", Asked).shuffle())
    makes = Topology("makes")
    makes.bolt("some", lambda number=1: Forget(), makes.spout("values", [1]).shuffle())
    for topology, words in [
        (finishes, r"finish of some\[0\]"),
        (reminds, r"on_timer of some\[0\]"),
        (asked, "next_tuple of"),
        (makes, "a bolt, Forget"),
    ]:
        with pytest.raises(TopologyCrashed, match=words):
            await run_to_end(topology)
    rules = [
        {each.rule for each in findings(topology.describe())} for topology in (returns, reminds, asked, makes)
    ]
    assert all("dropped result" in each for each in rules[:3])
    assert "mistaken factory" in rules[3]


@pytest.mark.simulated_time
@pytest.mark.parametrize("verb", ["ack", "fail", "emit"])
async def test_when_a_bolt_calls_from_a_thread(verb: str) -> None:
    """A bolt calls `out.ack`, `out.fail` or `out.emit` in a thread of its own. `RuntimeError` is raised there and names
    the way out, and nothing else happens: `out.ack_threadsafe`, `out.fail_threadsafe` and `out.emit_threadsafe` are for
    other threads than the event loop's. Where stormlet runs [interpreted](docs/compiled.md#what-is-different),
    asyncio's debug mode finds those calls too that come while the bolt is at work.
    """

    refused = pytest.raises(RuntimeError, match=rf"bolt\[0\] .* call out.{verb}_threadsafe there")

    class Awaits(Bolt[str, object]):
        async def execute(self, tup: Tuple[str], out: Collector[object]) -> None:
            with refused:
                await asyncio.to_thread(getattr(out, verb), tup)
            await asyncio.to_thread(lambda: out.ack_threadsafe(tup).result())

    class AtWork(Bolt[str, object]):
        def execute(self, tup: Tuple[str], out: Collector[object]) -> None:
            with ThreadPoolExecutor(1) as pool, refused:
                pool.submit(getattr(out, verb), tup).result()
            out.ack(tup)

    asyncio.get_running_loop().set_debug(not is_compiled())
    for bolt in (Awaits, AtWork):
        topology = Topology("threads", max_attempts=1)
        topology.bolt("bolt", bolt, topology.spout("values", ["x"]).shuffle())
        counts = (await run_to_end(topology)).statistics().components
        assert (counts["bolt"].acked, counts["bolt"].failed, counts["bolt"].emitted) == (1, 0, 0)


@pytest.mark.simulated_time
async def test_when_a_bolt_keeps_what_is_over() -> None:
    """A bolt's `flush` leaves inputs unsettled whose messages are over, while a spout waits until everything is
    settled. The topology crashes with `StillHeld`, which names the bolt: nothing else would end that wait, of a spout
    that calls `out.pause_until_settled()`, or the epoch.
    """

    class Pausing(Spout[int]):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            out.emit(1, message_id=1)
            out.pause_until_settled()

    topology = Topology("held", message_timeout=10.0)
    topology.bolt("hold", Forget, topology.spout("values", Pausing).shuffle())
    with pytest.raises(TopologyCrashed, match=r"hold\[0\]") as raised:
        await run_to_end(topology)
    assert isinstance(raised.value.__cause__, StillHeld)


@pytest.mark.simulated_time
async def test_when_a_bolt_is_slow() -> None:
    """A bolt is slower than what feeds it. Its queue fills to `queue_capacity`, then those who feed it wait, up to the
    spout, which is not asked for more, and to threads, which wait in `emit_threadsafe`; nothing is dropped and memory
    does not grow.
    """
    asked = 0

    def values() -> Iterator[int]:
        nonlocal asked
        while True:
            asked += 1
            yield asked

    topology = Topology("slow", queue_capacity=10, max_spout_pending=None, message_timeout=None)
    topology.bolt("slow", take_a_second, topology.spout("values", values).shuffle())
    async with topology.run(drain_timeout=None) as running:
        await asyncio.sleep(100)
        assert running.statistics().components["slow"].executed == 99
        assert asked <= 99 + 2 * 10 + 1
        assert running.health().full == ("slow",)

    called: list[int] = []
    threaded = Topology("threaded", queue_capacity=10, message_timeout=None)
    spout, stream = script(threaded)
    threaded.bolt("slow", take_a_second, stream.shuffle())

    def emit(number: int) -> None:
        spout.out.emit_threadsafe(number)
        called.append(number)

    async with threaded.run(drain_timeout=0) as running:
        with threads(3, emit, 500) as done:
            while not done.done():
                await asyncio.sleep(1)
                assert len(called) <= running.statistics().components["slow"].executed + 2 * 10 + 100 + 3
    assert len(called) == 1500


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_when_a_bolt_raises_after_it_has_changed_state() -> None:
    """A bolt with state raises after it has changed state. All that the epoch has changed is forgotten. The messages
    before that one are tried again and committed, and it is the first one of the next epoch, so that each counts once.
    """
    calls: list[int] = []
    epochs: list[tuple[int, Sequence[int]]] = []

    class Count(KeyedBolt[str, str, int]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[int]) -> None:
            self.total += 1
            calls.append(self.total)
            out.emit(self.total)
            if len(calls) == 3:
                raise ConnectionError("once")

    class Note(Committer[int]):
        def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
            epochs.append((epoch.number, rows))

    topology = Topology("counting")
    counts = topology.bolt("count", Count, topology.spout("words", ["a", "a", "a", "a"]).fields())
    topology.bolt("note", Note, counts.shuffle())
    await run_to_end(topology)
    assert calls[-4:] == [1, 2, 3, 4]
    assert len(calls) > 4
    assert [row for _, rows in epochs for row in rows] == [1, 2, 3, 4]
    assert epochs[0] == (1, [1, 2])


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_when_a_commit_raises() -> None:
    """The `commit` of a committer raises. Its task dies and is restarted after 0.1 s, then 0.2 s, 0.4 s, and gets the
    same epoch again. The next epoch runs meanwhile, and waits for it. After three restarts in 60 s the topology crashes
    by default; with `state=` the next run begins with that epoch.
    """
    store = MemoryStore()
    called: list[tuple[float, int, Sequence[int]]] = []
    passed: list[int] = []

    class Away(Committer[int]):
        fails = True

        def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
            called.append((round(asyncio.get_running_loop().time(), 1), epoch.number, rows))
            if self.fails:
                raise ConnectionError("the sink is away")

    def note(value: int) -> int:
        passed.append(value)
        return value

    topology = Topology("writing", epoch_messages=2)
    noted = topology.bolt("note", note, topology.spout("numbers", [1, 2, 3, 4, 5, 6]).shuffle())
    topology.bolt("write", Away, noted.shuffle())
    with pytest.raises(TopologyCrashed):
        await run_to_end(topology, state=store)
    assert called == [(0.0, 1, [1, 2]), (0.1, 1, [1, 2]), (0.3, 1, [1, 2]), (0.7, 1, [1, 2])]
    assert passed == [1, 2, 3, 4]
    Away.fails = False
    await run_to_end(topology, state=store)
    assert [(number, rows) for _, number, rows in called[4:]] == [(1, [1, 2]), (2, [3, 4]), (3, [5, 6])]
