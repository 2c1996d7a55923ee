"""What is tracked, what is not, and how often an input may be settled (law L9 to L11, L13, L15, L17)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from stormlet import (
    AlreadySettled,
    BasicBolt,
    Collector,
    Failure,
    FailureKind,
    InvalidTopology,
    NotTracked,
    Spout,
    SpoutCollector,
    Topology,
    Tuple,
    TupleFailed,
    TupleTimedOut,
)
from stormlet.errors import EndOfStream
from tests.cast import Counting, Forget, ignore, raise_value_error
from tests.helpers import run_to_end
from tests.law.puppets import (
    AnyTuple,
    Puppet,
    Puppets,
    Script,
    ackers,
    open_trees,
    orphans,
    script,
    settle,
    until,
)

# L9.


@pytest.mark.parametrize("logic", [ignore, raise_value_error, Puppets()], ids=["acks", "fails", "holds"])
@pytest.mark.simulated_time
async def test_L9_without_ackers_tracked_emits_count_as_acked(logic: Callable[..., Any]) -> None:
    """Whatever bolts do, every message is acked at once."""
    topology = Topology("unacked", ackers=0)
    spout, stream = script(topology, "a", "b")
    topology.bolt("bolt", logic, stream.shuffle())
    running = await run_to_end(topology)
    assert spout.told == [(0, "ack", "a"), (0, "ack", "b")]
    counts = running.statistics().components["script"]
    assert (counts.acked, counts.failed, counts.pending) == (2, 0, 0)


@pytest.mark.parametrize("verb", ["ack", "fail", "reset_timeout"])
@pytest.mark.simulated_time
async def test_L9_without_ackers_what_bolts_say_is_no_op(verb: str) -> None:
    """Acks, fails and resets are accepted, of joined outputs too, and change nothing."""
    topology, first, second = Topology("unacked", ackers=0), Puppets(), Puppets()
    spout, stream = script(topology, "a", "b")
    outputs = topology.bolt("first", first, stream.shuffle())
    topology.bolt("second", second, outputs.shuffle())
    async with topology.run() as running:
        await settle()
        first[0].out.emit("joined", anchors=first.got)
        await settle()
        for puppet in (first[0], second[0]):
            getattr(puppet.out, verb)(puppet.got[0])
        await running.finished()
    assert spout.acked == ["a", "b"]
    assert second.got[0].roots == ()


@pytest.mark.simulated_time
async def test_L9_without_ackers_a_warning_is_logged_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    """It names the topology and the setting."""
    topology = Topology("unacked", ackers=0)
    topology.bolt("bolt", ignore, topology.spout("feed").shuffle())
    async with topology.run():
        (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "'unacked'" in record.getMessage()
    assert "ackers=0" in record.getMessage()


@pytest.mark.simulated_time
async def test_L9_without_ackers_no_tree_can_be_awaited() -> None:
    """Awaiting raises NotTracked, before and after the message was processed."""
    topology = Topology("unacked", ackers=0)
    feed = topology.spout("feed")
    topology.bolt("bolt", ignore, feed.shuffle())
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        for _ in range(2):
            with pytest.raises(NotTracked, match="ackers"):
                await tree
            await settle()


class Checkpointing(Counting):
    """A source that remembers what was acked."""

    needs_acks = True


class Writing(Forget):
    """A sink that acks what it has written."""

    needs_acks = True


@pytest.mark.parametrize(("spout", "bolt"), [(Checkpointing, Forget), (Counting, Writing)])
@pytest.mark.simulated_time
async def test_L9_without_ackers_what_lives_by_acks_refuses_to_start(
    spout: type[Counting], bolt: type[Forget]
) -> None:
    """Every message would count as acked before it is done; with ackers both start."""
    topology = Topology("acks", drain_timeout=0)
    topology.bolt("bolt", bolt, topology.spout("spout", spout).shuffle())
    with pytest.raises(InvalidTopology, match="lives by acks and cannot run with ackers=0; set ackers to 1"):
        async with topology.run(ackers=0):
            pytest.fail("it started")
    async with topology.run(ackers=1) as running:
        assert running.health().ready


# L10.


@pytest.mark.parametrize("verb", ["ack", "fail", "nothing"])
@pytest.mark.simulated_time
async def test_L10_an_emit_without_message_id_is_untracked(verb: str) -> None:
    """The spout hears nothing of it, whatever the bolt does, and its tuple has no root."""
    topology, puppets = Topology("untracked", message_timeout=10), Puppets()
    spout, stream = script(topology, None)
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0) as running:
        await settle()
        assert puppets.got[0].roots == ()
        getattr(puppets[0].out, verb, ignore)(puppets.got[0])
        await until(100)
        assert (open_trees(running), orphans(running)) == (0, 0)
    assert spout.told == []


@pytest.mark.simulated_time
async def test_L10_an_emit_without_message_id_is_never_pending() -> None:
    """A spout may have any number of them under way, and statistics count none as pending."""
    topology, puppets = Topology("untracked"), Puppets()
    spout, stream = script(topology, *[None] * 10, "tracked", max_spout_pending=1)
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0) as running:
        await settle()
        assert len(puppets.got) == 11
        assert spout.out.pending == running.statistics().components["script"].pending == 1


@pytest.mark.parametrize("message_id", [0, "", False, ()])
@pytest.mark.simulated_time
async def test_L10_only_none_is_no_message_id(message_id: object) -> None:
    """Ids that count as false are ids."""
    topology = Topology("tracked")
    spout, stream = script(topology, message_id)
    topology.bolt("bolt", ignore, stream.shuffle())
    await run_to_end(topology)
    assert spout.acked == [message_id]


# L11.


class Nobody:
    """A custom grouping that sends everything to no task."""

    def prepare(self, targets: Sequence[int]) -> None:
        pass

    def choose(self, value: object) -> Sequence[int]:
        return ()


@pytest.mark.parametrize("subscribed", [False, True])
@pytest.mark.simulated_time
async def test_L11_a_tracked_emit_that_reaches_no_task_is_acked(subscribed: bool) -> None:
    """It is acked at once, whether nobody subscribes or the grouping chooses nobody, and no tree is open."""
    topology = Topology("nobody")
    spout, stream = script(topology, "x")
    if subscribed:
        topology.bolt("bolt", ignore, stream.custom(Nobody()))
    running = await run_to_end(topology)
    assert spout.told == [(0, "ack", "x")]
    assert spout.reached == [()]
    assert running.statistics().components["__acker"].executed == 0


@pytest.mark.simulated_time
async def test_L11_a_hosts_message_that_reaches_no_task_is_acked() -> None:
    """Awaiting its tree returns."""
    topology = Topology("nobody")
    feed = topology.spout("feed")
    async with topology.run() as running:
        assert await (await running.emit(feed, "x")) == []


# L13.


@pytest.mark.simulated_time
async def test_L13_high_water_is_decided_in_emit() -> None:
    """With a high water of 2, the fifth of the messages that one call emits is refused at once, though no
    init has been sent: it reaches no task and fails with OVERFLOW."""
    topology, puppets = Topology("full", acker_high_water=2), Puppets()
    spout, stream = script(topology, *range(7))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0) as running:
        await settle()
        assert [bool(reached) for reached in spout.reached] == [True] * 4 + [False] * 3
        assert [tup.value for tup in puppets.got] == [0, 1, 2, 3]
        kinds = {each: failure.kind for each, failure in spout.failed.items()}
        assert kinds == dict.fromkeys([4, 5, 6], FailureKind.OVERFLOW)
        counts = running.statistics().components["script"]
        assert (counts.overflowed, counts.failed, counts.pending) == (3, 3, 4)


@pytest.mark.simulated_time
async def test_L13_open_trees_count() -> None:
    """Room is there again as soon as, and as far as, trees have their verdict."""
    topology, puppets = Topology("full", acker_high_water=1), Puppets()
    spout, stream = script(topology, *range(2))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0):
        await settle()
        assert spout.out.emit("too many", message_id="too many") == ()
        puppets[0].out.ack(puppets[0].got[0])
        puppets[0].out.fail(puppets[0].got[1])
        await settle()
        reached = [bool(spout.out.emit(each, message_id=each)) for each in range(2, 5)]
    assert reached == [True, True, False]


@pytest.mark.simulated_time
async def test_L13_timed_out_trees_do_not_count() -> None:
    """What has timed out makes room, as any other verdict does."""
    topology, puppets = Topology("full", acker_high_water=1, message_timeout=10), Puppets()
    spout, stream = script(topology, *range(3))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0):
        await until(20)
        assert [bool(spout.out.emit(each, message_id=each)) for each in range(3, 6)] == [True] * 2 + [False]


@pytest.mark.simulated_time
async def test_L13_entries_without_init_do_not_count() -> None:
    """Late acks of trees that failed leave entries at the acker, and take no room."""
    topology, puppets = Topology("full", acker_high_water=1), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.all(), parallelism=2)
    async with topology.run(drain_timeout=0) as running:
        for number in range(10):
            await running.emit(feed, number)
            await settle()
            puppets[0].out.fail(puppets[0].got.pop())
            await settle()
            puppets[1].ack_all()
            await settle()
        assert orphans(running) == 10
        trees = [await running.emit(feed, number) for number in range(2)]
        await settle()
        assert [tree.failure for tree in trees] == [None] * 2


@pytest.mark.simulated_time
async def test_L13_the_host_is_told() -> None:
    """Awaiting the tree of a refused message raises, and says that it was OVERFLOW."""
    topology, puppets = Topology("full", acker_high_water=1), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.shuffle())
    async with topology.run(drain_timeout=0) as running:
        *_, refused = [await running.emit(feed, number) for number in range(3)]
        with pytest.raises(TupleFailed) as caught:
            await refused
    assert caught.value.failure.kind is FailureKind.OVERFLOW


@pytest.mark.parametrize(
    ("pending", "parallelism", "shards", "most"),
    [(1000, 1, 1, 2000), (10, 1, 1, 2000), (1500, 3, 1, 9000), (1500, 3, 2, 4500), (700, 3, 2, 2100)],
)
@pytest.mark.simulated_time
async def test_L13_default_high_water(pending: int, parallelism: int, shards: int, most: int) -> None:
    """By default it is the sum of all spouts' ``max_spout_pending`` over the ackers, at least 1000."""
    topology = Topology("defaults", max_spout_pending=pending, ackers=shards)
    stream = topology.spout("script", Script, parallelism=parallelism)
    topology.bolt("bolt", ignore, stream.shuffle())
    async with topology.run() as running:
        assert [acker.load.limit for acker in ackers(running)] == [most] * shards


@pytest.mark.simulated_time
async def test_L13_the_default_guards_one_call_that_floods() -> None:
    """Of the thousands of messages that a call emits in spite of its ``max_spout_pending``, 2000 get in."""
    topology, puppets = Topology("flood"), Puppets()
    spout, stream = script(topology, *range(2500))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0):
        await settle()
    assert sum(map(bool, spout.reached)) == len(puppets.got) == 2000


@pytest.mark.simulated_time
async def test_L13_the_default_does_not_throttle() -> None:
    """Spouts that emit one message a call never meet it, however long their trees stay open."""

    async def slow(value: int) -> None:
        await asyncio.sleep(0.001)

    topology = Topology("busy", ackers=2)
    numbers = [topology.spout(f"numbers {each}", list(range(2500))) for each in range(3)]
    topology.bolt("slow", slow, *(each.shuffle() for each in numbers), concurrency=100)
    running = await run_to_end(topology)
    assert running.statistics().components["__acker"].acked == 7500
    assert sum(each.overflowed for each in running.statistics().components.values()) == 0


@pytest.mark.simulated_time
async def test_L13_unlimited_pending_has_no_high_water() -> None:
    """Where a spout may have any number pending, so may the ackers."""
    topology, puppets = Topology("unlimited", max_spout_pending=None), Puppets()
    spout, stream = script(topology, *range(5000))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0):
        await settle()
    assert all(spout.reached)


# L15.

SETTLED = {"ack": "acked", "fail": "failed"}
SAYS = {"ack": "acks", "fail": "fails", "anchor": "anchors to", "anchor to two": "anchors to"}


def say(puppet: Puppet, verb: str, tup: AnyTuple) -> None:
    """Ack it, fail it, or emit something anchored to it."""
    if verb == "anchor":
        puppet.out.emit("output", anchors=tup)
    elif verb == "anchor to two":
        puppet.out.emit("output", anchors=[puppet.got[-1], tup])
    else:
        getattr(puppet.out, verb)(tup)


@pytest.mark.parametrize("second", SAYS)
@pytest.mark.parametrize("first", SETTLED)
@pytest.mark.simulated_time
async def test_L15_a_settled_input_is_settled(first: str, second: str) -> None:
    """Settling it again, or anchoring to it, raises there, names the tuple and both verbs, and leaves every
    tree as it was."""
    topology, puppets, downstream = Topology("settled"), Puppets(), Puppets()
    feed = topology.spout("feed")
    outputs = topology.bolt("puppets", puppets, feed.shuffle())
    topology.bolt("downstream", downstream, outputs.shuffle())
    async with topology.run() as running:
        tree, other = [await running.emit(feed, value) for value in ("x", "other")]
        await settle()
        say(puppets[0], first, puppets.of("x"))
        with pytest.raises(AlreadySettled) as caught:
            say(puppets[0], second, puppets.of("x"))
        await settle()
        assert "'x'" in str(caught.value)
        assert SAYS[second] in str(caught.value)
        assert SETTLED[first] in str(caught.value)
        assert (tree.done, tree.failure is None, other.done) == (True, first == "ack", False)
        puppets[0].out.ack(puppets.of("other"))
        assert await other == []
        assert (downstream.got, open_trees(running), orphans(running)) == ([], 0, 0)


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_L15_a_basic_bolt_may_settle_its_input_itself() -> None:
    """What it acked or failed is not settled again on return, and doing it twice is its error."""

    class Own(BasicBolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            for verb in tup.value.split():
                getattr(out, verb)(tup)

    topology = Topology("own")
    feed = topology.spout("feed")
    topology.bolt("own", Own, feed.shuffle())
    async with topology.run() as running:
        assert await (await running.emit(feed, "ack")) == []
        assert await (await running.emit(feed, "ack fail")) == []
        for wish in ("fail", "fail ack"):
            with pytest.raises(TupleFailed):
                await (await running.emit(feed, wish))
        counts = running.statistics().components["own"]
        assert (counts.acked, counts.failed, counts.errors) == (2, 2, 2)


@pytest.mark.simulated_time
async def test_L15_copies_are_settled_by_themselves() -> None:
    """Two tasks that each got a copy, and two copies that one task got, do not concern each other."""
    topology, puppets = Topology("copies"), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.all(), feed.all(), parallelism=2)
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        assert [len(puppet.got) for puppet in puppets.made] == [2, 2]
        puppets.ack_all()
        await tree


@pytest.mark.simulated_time
async def test_L15_the_first_outcome_of_a_tree_wins() -> None:
    """What replicas say after the first fail does not change the message's outcome."""
    topology, puppets = Topology("first"), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.all(), parallelism=3)
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        for puppet, reason in zip(puppets.made, ("first", "second", "third"), strict=True):
            puppet.out.fail(puppet.got[0], reason)
            await settle()
        with pytest.raises(TupleFailed, match="first"):
            await tree


@pytest.mark.parametrize("verb", ["ack", "fail", "anchor"])
@pytest.mark.simulated_time
async def test_L15_settling_an_input_whose_tree_has_timed_out_is_legal(verb: str) -> None:
    """The bolt cannot know it: nothing is raised, and the outcome stays TIMEOUT."""
    topology, puppets = Topology("timed out", message_timeout=10), Puppets()
    spout, stream = script(topology, "x")
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run() as running:
        await until(20)
        assert spout.failed["x"].kind is FailureKind.TIMEOUT
        say(puppets[0], verb, puppets.got[0])
        await until(30)
        assert open_trees(running) == 0
        if verb == "anchor":
            puppets.ack_all()
    assert [verb for _, verb, _ in spout.told] == ["fail"]


@pytest.mark.simulated_time
async def test_L15_one_input_may_be_settled_after_some_of_its_trees_timed_out() -> None:
    """The other trees of a joined tuple are acked by it all the same."""
    topology, joiner, copies = Topology("partly", message_timeout=10), Puppets(), Puppets()
    feed = topology.spout("feed")
    joined = topology.bolt("joiner", joiner, feed.shuffle())
    topology.bolt("copies", copies, joined.shuffle())
    async with topology.run() as running:
        early = await running.emit(feed, "early")
        await until(9)
        late = await running.emit(feed, "late")
        await settle()
        joiner[0].out.emit("joined", anchors=joiner.got)
        joiner.ack_all()
        with pytest.raises(TupleTimedOut):
            await early
        copies.ack_all()
        assert await late == []


# L17.


class Diary(Spout[int]):
    """Emits some messages in each of three calls, and writes down what is called when."""

    burst = 2

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.emitted = 0

    def __call__(self) -> Diary:
        return self

    def write(self, out: SpoutCollector[int]) -> None:
        """One call."""
        if self.emitted == 3 * self.burst:
            raise EndOfStream
        self.pages.append("next")
        for _ in range(self.burst):
            out.emit(self.emitted, message_id=self.emitted)
            self.emitted += 1
        self.pages.append("end")

    def next_tuple(self, out: SpoutCollector[int]) -> Awaitable[None] | None:
        self.write(out)
        return None

    def ack(self, message_id: object) -> None:
        self.pages.append("outcome")

    def fail(self, message_id: object, failure: Failure) -> None:
        self.pages.append("outcome")


class AsyncDiary(Diary):
    """The same, and each call goes on for long after its emits."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        self.write(out)
        await asyncio.sleep(60)


def unacked(spout: Diary) -> Topology:
    """Nothing is tracked (L9)."""
    topology = Topology("unacked", ackers=0)
    topology.bolt("bolt", ignore, topology.spout("diary", lambda: spout).shuffle())
    return topology


def unheard(spout: Diary) -> Topology:
    """Nobody subscribes (L11)."""
    topology = Topology("unheard")
    topology.spout("diary", lambda: spout)
    return topology


def overflowing(spout: Diary) -> Topology:
    """The only acker is full already (L13)."""
    topology = Topology("overflowing", acker_high_water=1)
    full = script(topology, *"ab")[1]
    topology.bolt("holds", Puppets(), full.shuffle(), topology.spout("diary", lambda: spout).shuffle())
    return topology


IMMEDIATE = [unacked, unheard, overflowing]


@pytest.mark.parametrize("diary", [Diary, AsyncDiary])
@pytest.mark.parametrize("topology", IMMEDIATE)
@pytest.mark.simulated_time
async def test_L17_immediate_outcomes_come_between_two_calls(
    topology: Callable[[Diary], Topology], diary: type[Diary]
) -> None:
    """None is delivered inside emit; all are after the call has returned and before the next one."""
    spout = diary()
    async with topology(spout).run(drain_timeout=0):
        await asyncio.sleep(1)
    assert spout.pages == ["next", "end", "outcome", "outcome"] * 3


@pytest.mark.simulated_time
async def test_L17_hundreds_of_outcomes_come_before_the_next_call() -> None:
    """However many messages one call emits, the next call comes after the last of their outcomes."""
    spout = Diary()
    spout.burst = 700
    async with unheard(spout).run() as running:
        await running.finished()
    assert spout.pages == (["next", "end"] + ["outcome"] * 700) * 3


@pytest.mark.simulated_time
async def test_L17_what_ack_emits_is_not_acked_inside_of_it() -> None:
    """An emit in ``ack`` returns before the outcome of what it emitted is told, and that comes before the
    next call too."""
    pages: list[str] = []

    class Chain(Spout[int]):
        def open(self, context: object, out: SpoutCollector[int]) -> None:
            self.out = out
            self.calls = 0

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            pages.append("next")
            self.calls += 1
            if self.calls == 2:
                raise EndOfStream
            out.emit(0, message_id=0)

        def ack(self, message_id: Any) -> None:
            pages.append(f"ack {message_id}")
            if message_id < 2:
                self.out.emit(message_id + 1, message_id=message_id + 1)
            pages.append("end")

    topology = Topology("chain")
    topology.spout("chain", Chain)
    await run_to_end(topology)
    assert pages == ["next", "ack 0", "end", "ack 1", "end", "ack 2", "end", "next"]


@pytest.mark.simulated_time
async def test_L17_other_outcomes_come_outside_of_emit_too() -> None:
    """Where bolts ack at once, the ack comes in a later step of the spout, never while a call runs."""
    spout = Diary()
    topology = Topology("plain")
    diary = topology.spout("diary", lambda: spout)
    topology.bolt("bolt", ignore, diary.shuffle())
    await run_to_end(topology)
    inside = False
    for page in spout.pages:
        inside = page == "next" or (inside and page != "end")
        assert not (inside and page == "outcome")
    assert spout.pages.count("outcome") == 6


class Busy(Spout[str]):
    """Emits untracked values without end, and writes down its calls and outcomes."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def open(self, context: object, out: SpoutCollector[str]) -> None:
        self.out = out

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        self.pages.append("next")
        out.emit("x")

    def ack(self, message_id: object) -> None:
        self.pages.append("ack")


@pytest.mark.simulated_time
async def test_L17_outcomes_of_emits_from_outside_come_first_too() -> None:
    """A message that is emitted from elsewhere, reaches nobody and so is acked at once, is acked before the
    next call, even if the spout was about to make it."""
    spout = Busy()
    topology = Topology("outside", queue_capacity=2)
    stream = topology.spout("busy", lambda: spout, outputs={"default": None, "nobody": None})
    for number in range(5):
        topology.bolt(f"bolt {number}", ignore, stream.all(), parallelism=3)
    async with topology.run(drain_timeout=0):
        for number in range(300):
            await asyncio.sleep(0)
            spout.pages.append("emit")
            spout.out.emit("y", stream="nobody", message_id=number)
    words = " ".join(spout.pages)
    assert words.count("ack") > 250
    assert "emit next" not in words
