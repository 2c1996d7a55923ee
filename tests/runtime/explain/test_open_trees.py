"""Why is it stuck? What is told of trees that are open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BatchBolt,
    Bolt,
    Collector,
    EndOfStream,
    Explanation,
    NotTracked,
    Place,
    Running,
    Spout,
    SpoutCollector,
    Topology,
    TreeState,
    Tuple,
)
from tests.cast import Batches, Forget, Hold, ignore
from tests.runtime.explain.reading import explained, lines, one_bolt

pytestmark = pytest.mark.simulated_time


async def wait_for_ever(value: object) -> None:
    await no_answer()


async def no_answer() -> None:
    await asyncio.Event().wait()


async def test_a_bolt_that_awaits_for_ever_is_named_with_its_line() -> None:
    """The stack begins with the user's function and leads through what it awaits; it is said since when."""
    assert await explained(wait_for_ever, "a") == [
        "message of 'source', 'a', is open for 12.5 s (root)",
        (
            "'a' is executed by bolt[0], delivered 12.5 s ago, by way of source[0]: "
            "wait_for_ever (test_open_trees.py) > no_answer (test_open_trees.py) > Event.wait (locks.py)"
        ),
    ]


async def test_the_stack_names_the_very_line() -> None:
    """The frames are there for programs, with file, function and line."""
    async with one_bolt(wait_for_ever) as (running, source):
        tree = await running.emit(source, "a")
        await asyncio.sleep(1)
        (outstanding,) = tree.explain().outstanding
    call = outstanding.stack[1]
    assert (call.file, call.function) == (__file__, "no_answer")
    assert call.line == no_answer.__code__.co_firstlineno + 1


async def test_a_bolt_that_does_not_settle_its_input_is_found_out() -> None:
    """It may do so later, or has forgotten it: both are said, as nobody can tell one from the other."""
    assert await explained(Forget, "a", record=0) == [
        "message of 'source', 'a', is open (root)",
        (
            "'a' is held by bolt[0], by way of source[0]: execute has returned without settling it; "
            "the bolt acks it later, or lacks an out.ack(tup)"
        ),
        "bolt[0] waits for more input",
        "record_edges=1 would show since when, and by which way they came",
    ]


@pytest.mark.parametrize("bolt", [Forget, Hold])
async def test_what_refers_to_an_input_makes_no_difference(bolt: type[Bolt[object, None]]) -> None:
    """Neither a variable of the bolt, nor one of the host's."""
    async with one_bolt(bolt) as (running, source):
        tree = await running.emit(source, "a")
        await asyncio.sleep(1)
        (outstanding,) = tree.explain().outstanding
    assert outstanding.place is Place.HELD


async def test_an_input_may_be_in_a_batch_that_is_executed() -> None:
    """It is held by the engine, and the bolt lacks nothing."""

    class Waits(BatchBolt[object, None]):
        size = 2

        async def execute_batch(self, tups: Sequence[Tuple[object]], out: Collector[None]) -> None:
            await no_answer()

    async with one_bolt(Waits) as (running, source):
        first, _ = [await running.emit(source, value) for value in "ab"]
        await asyncio.sleep(1)
        (outstanding,) = first.explain().outstanding
    assert (outstanding.place, outstanding.note) == (Place.HELD, "in a batch that is executed now")


async def test_a_queue_behind_a_slow_call_shows_that_call() -> None:
    """Of what is queued it is said how many are ahead, and what the task does instead."""
    told = await explained(wait_for_ever, "a", "b", "c", "d")
    assert told == [
        "message of 'source', 'd', is open for 12.5 s (root)",
        "'d' is queued at bolt[0], behind 2 others, delivered 12.5 s ago, by way of source[0]",
        (
            "bolt[0] executes 'a': wait_for_ever (test_open_trees.py) > no_answer (test_open_trees.py) > "
            "Event.wait (locks.py)"
        ),
    ]


async def test_several_calls_have_each_their_own_stack() -> None:
    """With ``concurrency`` a tuple is told with the call that it is in."""

    async def by_value(value: object) -> None:
        await (no_answer() if value == "a" else asyncio.sleep(1000))

    stacks: list[str] = []
    async with one_bolt(by_value, concurrency=3) as (running, source):
        trees = [await running.emit(source, value) for value in "ab"]
        await asyncio.sleep(1)
        for tree in trees:
            (outstanding,) = tree.explain().outstanding
            stacks.append(outstanding.stack[-1].function)
    assert stacks == ["Event.wait", "sleep"]


async def test_a_full_queue_is_named_with_its_consumer() -> None:
    """A bolt that waits for room is told with the task whose queue is full, and what that one does."""

    def many(value: object) -> Iterator[int]:
        yield from range(10)

    topology = Topology("full", drain_timeout=0, queue_capacity=2)
    source = topology.spout("source")
    numbers = topology.bolt("many", many, source.shuffle())
    topology.bolt("slow", wait_for_ever, numbers.shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "a")
        await asyncio.sleep(3)
        told = lines(tree.explain())
    waiting = "Event.wait (locks.py)"
    assert [line for line in told if line.startswith(("'a'", "many[0]", "slow[0]"))] == [
        "'a' is executed by many[0], delivered 3 s ago, by way of source[0]",
        "many[0] waits for room in the queue of slow[0], which has 2 tuples, of 2",
        f"slow[0] executes 0: wait_for_ever (test_open_trees.py) > no_answer (test_open_trees.py) > {waiting}",
    ]


async def test_a_held_batch_is_told_with_what_it_waits_for() -> None:
    """Of a member of a batch it is said how full that is, and when it is due."""

    assert (await explained(partial(Batches, 100, 20.0), "a", "b"))[1:] == [
        (
            "'b' is held by bolt[0], delivered 12.5 s ago, by way of source[0]: "
            "in a batch that has 2 of 100 and is due in 7.5 s"
        ),
        "bolt[0] waits for more input",
    ]


async def test_a_batch_that_is_being_executed_shows_where() -> None:
    """Its members are held, and the stack is that of ``execute_batch``."""

    class Batches(BatchBolt[object, None]):
        size = 2
        within = 20.0

        async def execute_batch(self, tups: Any, out: Collector[None]) -> None:
            await no_answer()

    assert (await explained(Batches, "a", "b"))[-1] == (
        "'b' is executed by bolt[0], delivered 12.5 s ago, by way of source[0]: "
        "Batches.execute_batch (test_open_trees.py) > no_answer (test_open_trees.py) > Event.wait (locks.py)"
    )


async def test_a_tick_that_does_not_return_is_seen() -> None:
    """What is queued behind a method other than ``execute`` is told with that method."""

    class Ticks(Hold):
        async def tick(self, out: Collector[None]) -> None:
            await no_answer()

    async with one_bolt(Ticks, tick=1.0) as (running, source):
        await asyncio.sleep(2)
        tree = await running.emit(source, "a")
        await asyncio.sleep(1)
        told = lines(tree.explain())
    assert told[1:] == [
        "'a' is queued at bolt[0], delivered 1 s ago, by way of source[0]",
        "bolt[0] is in tick: Ticks.tick (test_open_trees.py) > no_answer (test_open_trees.py) > Event.wait (locks.py)",
    ]


async def test_the_way_through_the_tree_is_told() -> None:
    """A recorder knows by way of which tasks a tuple has come."""
    topology = Topology("way", drain_timeout=0)
    source = topology.spout("source")
    words = topology.bolt("split", str.split, source.shuffle())
    upper = topology.bolt(
        "upper", lambda words: (word.upper() for word in words), words.shuffle(), parallelism=2
    )
    topology.bolt("keep", Hold, upper.shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "a b")
        await asyncio.sleep(1)
        outstanding = tree.explain().outstanding
    assert {(each.value, each.path[:2], each.path[2][:5]) for each in outstanding} == {
        ("A", ("source[0]", "split[0]"), "upper"),
        ("B", ("source[0]", "split[0]"), "upper"),
    }


async def test_a_join_is_outstanding_in_each_of_its_trees() -> None:
    """A tuple that is anchored to inputs of two trees is told with both (law L7)."""

    class Join(Hold):
        def execute(self, tup: Tuple[object], out: Collector[Any]) -> None:
            super().execute(tup, out)
            if len(self.held) == 2:
                out.emit("both", anchors=self.held)
                for each in self.held:
                    out.ack(each)
                self.held = []

    topology = Topology("join", drain_timeout=0)
    source = topology.spout("source")
    joined = topology.bolt("join", Join, source.shuffle())
    topology.bolt("keep", Hold, joined.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(source, value) for value in "ab"]
        await asyncio.sleep(2)
        explanations = [tree.explain() for tree in trees]
    for each in explanations:
        (outstanding,) = each.outstanding
        assert (outstanding.value, outstanding.name, outstanding.seconds) == ("both", "keep[0]", 2)
        assert outstanding.path == ("source[0]", "join[0]")


async def test_what_is_not_anchored_belongs_to_no_tree() -> None:
    """An unanchored emission is nobody's, and no explanation names it (law L8)."""

    class Loose(Hold):
        def execute(self, tup: Tuple[object], out: Collector[Any]) -> None:
            super().execute(tup, out)
            out.emit("loose", anchors=())

    topology = Topology("loose", drain_timeout=0)
    source = topology.spout("source")
    loose = topology.bolt("loose", Loose, source.shuffle())
    topology.bolt("keep", Hold, loose.shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "a")
        await asyncio.sleep(1)
        names = [each.value for each in tree.explain().outstanding]
    assert names == ["a"]


@pytest.mark.parametrize("ackers", [1, 3])
async def test_every_acker_is_asked(ackers: int) -> None:
    """A root is looked for at the acker that owns it, and the oldest trees of all of them are told."""
    topology = Topology("shards", drain_timeout=0, ackers=ackers)
    source = topology.spout("source")
    topology.bolt("keep", Hold, source.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(source, value) for value in range(20)]
        await asyncio.sleep(1)
        roots = [tree.explain().root for tree in trees]
        again = [running.explain(root).value for root in roots if root is not None]
        oldest = running.explain_oldest(100)
    assert again == list(range(20))
    assert sorted(each.value for each in oldest if isinstance(each.value, int)) == list(range(20))


async def test_a_tree_can_be_explained_before_its_acker_has_heard_of_it() -> None:
    """The init of a tree that has just been emitted is still with its spout (law F1)."""
    async with one_bolt(ignore) as (running, source):
        tree = await running.emit(source, "a")
        explanation = tree.explain()
    assert (explanation.state, [each.place for each in explanation.outstanding]) == (
        TreeState.OPEN,
        [Place.QUEUED],
    )


async def test_a_message_of_a_spout_is_explained_by_its_root() -> None:
    """A bolt sees the root of its inputs, and whoever has it can ask."""
    roots: list[int] = []

    class Tell(Hold):
        def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            super().execute(tup, out)
            roots.extend(tup.roots)

    topology = Topology("spout", drain_timeout=0)
    topology.bolt("tell", Tell, topology.spout("numbers", [7]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        explanation = running.explain(roots[0])
    assert (explanation.spout, explanation.message_id, explanation.value) == ("numbers", 0, 7)
    assert lines(explanation)[0] == "message 0 of 'numbers', 7, is open for 1 s (root)"


@pytest.mark.parametrize(("record", "value"), [(0, None), (1, "a")])
async def test_of_a_spout_class_the_message_id_is_known(record: float, value: object) -> None:
    """Its value is the spout's own, and only a recorder has seen it; so are its attempts."""

    class Source(Spout[str]):
        def next_tuple(self, out: SpoutCollector[str]) -> None:
            out.emit("a", message_id="id")
            raise EndOfStream

    topology = Topology("class", drain_timeout=0)
    topology.bolt("keep", Hold, topology.spout("source", Source).shuffle())
    async with topology.run(active=False) as running:
        running.record_edges(record)
        running.activate()
        await asyncio.sleep(1)
        (explanation,) = running.explain_oldest()
    assert (explanation.message_id, explanation.value, explanation.attempt) == ("id", value, None)


async def test_a_bolt_may_ask_about_the_tree_that_it_works_on() -> None:
    """Its own call is what is outstanding."""
    told: list[Explanation] = []

    class Ask(Bolt[object, None]):
        def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            told.append(runs[0].explain(tup.roots[0]))
            out.ack(tup)
            told.append(runs[0].explain(tup.roots[0]))

    runs: list[Running] = []
    async with one_bolt(Ask) as (running, source):
        runs.append(running)
        await (await running.emit(source, "a"))
    assert [each.place for each in told[0].outstanding] == [Place.EXECUTING]
    assert (told[1].outstanding, told[1].acks) == ((), ("bolt[0]",))
    assert lines(told[1])[-1] == "acks or fails of it are on their way from bolt[0]"


async def test_a_root_that_is_settled_is_unknown() -> None:
    """Nothing is remembered of a tree that was acked, and the explanation says that."""
    async with one_bolt(ignore) as (running, source):
        tree = await running.emit(source, "a")
        root = tree.explain().root
        await tree
        assert root is not None
        explanation = running.explain(root)
    assert explanation.state is TreeState.UNKNOWN
    assert str(explanation) == (
        f"tree {root} is not open: it was acked or failed, which nobody remembers, or there never was one"
    )


async def test_what_is_left_of_a_tree_that_has_timed_out_is_told() -> None:
    """A bolt may still have tuples of a tree whose outcome is known."""
    async with one_bolt(Hold) as (running, source):
        tree = await running.emit(source, "a")
        root = tree.explain().root
        await asyncio.sleep(60)
        assert root is not None
        explanation = running.explain(root)
    assert [each.name for each in explanation.outstanding] == ["bolt[0]"]
    assert explanation.note == "these tuples of it are still here, and nobody waits for them"


async def test_untracked_roots_are_refused() -> None:
    """What is untracked has no root; 0 is none."""
    async with one_bolt(ignore) as (running, _):
        with pytest.raises(ValueError, match="0 is the root of no tree"):
            running.explain(0)


@pytest.mark.parametrize("root", [-1, 2**64])
async def test_what_can_be_no_root_is_refused(root: int) -> None:
    """Compiled, too, where a root is a number of C."""
    async with one_bolt(ignore) as (running, _):
        with pytest.raises(ValueError, match=f"{root} is the root of no tree: roots are ints from 1 to"):
            running.explain(root)


async def test_without_ackers_there_is_nothing_to_explain() -> None:
    """The error is that of awaiting such a tree (law L9)."""
    topology = Topology("untracked", ackers=0)
    source = topology.spout("source")
    topology.bolt("bolt", ignore, source.shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "a")
        asked: list[Callable[[], object]] = [tree.explain, running.explain_oldest, lambda: running.explain(1)]
        for ask in asked:
            with pytest.raises(NotTracked, match="set ackers to 1"):
                ask()


async def test_many_tuples_are_counted() -> None:
    """The text names ten of them; the object has all."""

    def many(value: object) -> Iterator[int]:
        yield from range(25)

    topology = Topology("many", drain_timeout=0)
    source = topology.spout("source")
    topology.bolt("keep", Hold, topology.bolt("many", many, source.shuffle()).shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "a")
        await asyncio.sleep(1)
        explanation: Explanation = tree.explain()
    assert len(explanation.outstanding) == 25
    assert "and 15 more tuples" in lines(explanation)


async def test_a_task_that_is_restarted_is_seen() -> None:
    """Tuples that wait for the next instance of a task that has died are told with that."""
    topology = Topology("dies", drain_timeout=0, restart_delay=10)
    source = topology.spout("source")
    topology.bolt("bolt", ignore, source.shuffle())
    async with topology.run() as running:
        running.kill("bolt")
        await asyncio.sleep(1)
        tree = await running.emit(source, "a")
        told = lines(tree.explain())
    assert told[-1] == "bolt[0] has died, and is about to be restarted"
