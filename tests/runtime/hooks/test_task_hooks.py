"""Hooks that hear of what tasks do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import pytest

from stormlet import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    InvalidTopology,
    Running,
    SpoutAckInfo,
    SpoutFailInfo,
    StartFailed,
    TaskContext,
    TaskHook,
    Topology,
)
from stormlet.runtime.hooks.outlets import HookedOutlet
from stormlet.runtime.wire.outlets import Outlet, WrappedOutlet
from stormlet.state.memory import MemoryStore
from tests.cast import AckLater, Batches, Counting, Forward, Hold, Ignore, Join, Slow, given, refuse, same
from tests.helpers import run_to_end

pytestmark = pytest.mark.simulated_time


class Heard(TaskHook):
    """Notes everything, as what has happened, in which component, and what it was about."""

    def __init__(self, heard: list[tuple[Any, ...]]) -> None:
        self.heard = heard
        self.component = ""

    def prepare(self, context: TaskContext) -> None:
        self.component = context.component
        self.heard.append(("prepare", self.component))

    def emit(self, info: EmitInfo) -> None:
        self.heard.append(("emit", self.component, info.value))

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        self.heard.append(("execute", self.component, info.tup.value, info.execute_latency))

    def bolt_ack(self, info: BoltAckInfo) -> None:
        self.heard.append(("ack", self.component, info.tup.value, info.process_latency))

    def bolt_fail(self, info: BoltFailInfo) -> None:
        self.heard.append(("fail", self.component, info.tup.value, info.fail_latency))

    def spout_ack(self, info: SpoutAckInfo) -> None:
        self.heard.append(("acked", self.component, info.message_id, info.complete_latency))

    def spout_fail(self, info: SpoutFailInfo) -> None:
        self.heard.append(("failed", self.component, info.message_id, info.failure.kind.name))

    def cleanup(self) -> None:
        self.heard.append(("cleanup", self.component))


def of(*values: int) -> Callable[[], Counting]:
    """A spout that emits as many messages."""
    spout = Counting()
    spout.count = len(values)
    return given(spout)


def hearing(bolt: Any, *, messages: int = 1, **options: Any) -> Topology:
    topology = Topology("heard")
    topology.bolt("bolt", bolt, topology.spout("spout", of(*range(messages))).shuffle(), **options)
    return topology


async def heard_of(topology: Topology, **options: Any) -> list[tuple[Any, ...]]:
    """All that hooks of all tasks have heard in a run."""
    heard: list[tuple[Any, ...]] = []
    await run_to_end(topology, hooks=[partial(Heard, heard)], **options)
    return heard


def about(heard: Sequence[tuple[Any, ...]], component: str) -> list[tuple[Any, ...]]:
    return [(each[0], *each[2:]) for each in heard if each[1] == component]


async def test_a_hook_hears_of_its_task_alone_from_first_to_last() -> None:
    """Every hook prepares first, hears of each step of its task in order, and cleans up last."""
    heard = await heard_of(hearing(same))
    assert about(heard, "spout") == [("prepare",), ("emit", 0), ("acked", 0, 0.0), ("cleanup",)]
    assert about(heard, "bolt") == [
        ("prepare",), ("emit", 0), ("ack", 0, 0.0), ("execute", 0, 0.0), ("cleanup",),
    ]  # fmt: skip


async def test_each_task_has_a_hook_of_its_own() -> None:
    """One is made for each of four tasks."""
    heard = await heard_of(hearing(Ignore, parallelism=3))
    assert [each for each in heard if each[0] == "prepare"] == [
        ("prepare", "spout"),
        *[("prepare", "bolt")] * 3,
    ]


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_latencies_are_seconds(concurrency: int) -> None:
    """A bolt that takes two seconds has both latencies of two seconds, whether its calls run beside each other."""
    heard = await heard_of(hearing(partial(Slow, 2.0), concurrency=concurrency))
    assert about(heard, "bolt")[1:3] == [("ack", 0, 2.0), ("execute", 0, 2.0)]
    assert ("acked", "spout", 0, 2.0) in heard


async def test_a_held_input_is_acked_later() -> None:
    """An input that is held is executed first, and its ack has all the time since."""
    heard = await heard_of(hearing(partial(AckLater, 3.0)))
    assert about(heard, "bolt")[1:3] == [("execute", 0, 0.0), ("ack", 0, 3.0)]


async def test_the_members_of_a_batch_are_acked_with_it() -> None:
    """Each member of a batch has its own ack."""
    heard = await heard_of(hearing(partial(Batches, 2), messages=2))
    acks = [each for each in about(heard, "bolt") if each[0] == "ack"]
    assert acks == [("ack", 0, 0.0), ("ack", 1, 0.0)]


async def test_an_exception_fails_its_input() -> None:
    """What raises was not executed: it has failed, and so has the attempt."""
    heard = await heard_of(hearing(refuse))
    assert about(heard, "bolt") == [("prepare",), ("fail", 0, 0.0), ("cleanup",)]
    assert ("failed", "spout", 0, "FAILED") in heard


async def test_what_dies_with_its_task_has_failed() -> None:
    """An input that is held when its task is killed has failed, and the next instance has the same hook."""
    heard: list[tuple[Any, ...]] = []
    topology = hearing(Hold, restart_delay=0.5)
    async with topology.run(hooks=[partial(Heard, heard)], drain_timeout=1) as running:
        await asyncio.sleep(2)
        running.kill("bolt")
        await asyncio.sleep(2)
    assert about(heard, "bolt") == [("prepare",), ("execute", 0, 0.0), ("fail", 0, 2.0), ("cleanup",)]


async def test_the_hooks_hear_what_statistics_count() -> None:
    """Executions, acks and emits are as many as the statistics say, where inputs are joined and forwarded."""
    heard: list[tuple[Any, ...]] = []
    topology = Topology("counted")
    spout = topology.spout("spout", of(*range(8)))
    topology.bolt("join", partial(Join, 2), spout.shuffle())
    topology.bolt("forward", Forward, spout.shuffle(), parallelism=2)
    running = await run_to_end(topology, hooks=[partial(Heard, heard)])
    for id, counted in running.statistics().components.items():
        names = [each[0] for each in about(heard, id)]
        if id in ("join", "forward"):
            assert (names.count("execute"), names.count("ack")) == (counted.executed, counted.acked)
        if id != "__acker":
            assert names.count("emit") == counted.emitted


class Breaks(Heard):
    """Raises when it hears of the second emit."""

    def emit(self, info: EmitInfo) -> None:
        super().emit(info)
        if info.value == 1:
            raise LookupError("broken")


async def test_one_that_raises_is_logged_and_removed(caplog: pytest.LogCaptureFixture) -> None:
    """After its exception a hook hears of nothing more, another one does, and no message is lost by that."""
    broken, sound = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    topology = hearing(same, messages=4)
    running = await run_to_end(topology, hooks=[partial(Breaks, broken), partial(Heard, sound)])
    assert about(broken, "bolt")[-1] == ("emit", 1)
    assert about(sound, "bolt").count(("emit", 3)) == 1
    assert running.statistics().components["spout"].acked == 4
    lines = [each.getMessage() for each in caplog.records if "hook" in each.getMessage()]
    assert "emit of hook Breaks raised in bolt[0], and the hook is removed" in lines


async def test_a_coroutine_function_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody would await it, so it counts as raised."""

    class Waits(TaskHook):
        async def bolt_ack(self, info: BoltAckInfo) -> None:  # type: ignore[override]
            raise AssertionError

    running = await run_to_end(hearing(same), hooks=[Waits])
    assert running.statistics().components["spout"].acked == 1
    assert "must be a plain function" in str(caplog.records[-1].exc_info)


async def test_an_instance_is_refused() -> None:
    """What makes no hook is refused before anything runs, with what would be right."""
    with pytest.raises(InvalidTopology, match="is no TaskHook; hooks= takes a list of classes"):
        await run_to_end(hearing(same), hooks=[dict])


@pytest.mark.parametrize(
    ("hooks", "says"),
    [
        ([TaskHook()], r"hooks= has <.*TaskHook object.*>; hooks= takes a list of classes of TaskHook"),
        ([None], r"hooks= has None; hooks= takes a list"),
        (TaskHook, r"hooks=<class .*TaskHook'> is no list; hooks= takes a list"),
        (5, r"hooks=5 is no list; hooks= takes a list"),
    ],
)
async def test_what_makes_no_hook_is_refused(hooks: Any, says: str) -> None:
    """A hook itself, and one class instead of a list of them."""
    with pytest.raises(InvalidTopology, match=says):
        await run_to_end(hearing(same), hooks=hooks)


@pytest.mark.parametrize("error", [LookupError("no"), asyncio.CancelledError()])
async def test_a_constructor_that_raises_is_named(error: BaseException) -> None:
    """With what it has raised, as that of a bolt; a cancellation is one of its own."""

    def make() -> TaskHook:
        raise error

    with pytest.raises(
        StartFailed, match=r"did not start: the constructor of hook make for bolt\[0\] raised"
    ) as failed:
        await run_to_end(hearing(same), hooks=[make])
    cause = failed.value.__cause__
    assert cause is error or (cause is not None and cause.__cause__ is error)


@pytest.mark.parametrize("method", ["emit", "bolt_execute", "spout_ack", "cleanup"])
async def test_whatever_it_raises_costs_the_hook_alone(method: str) -> None:
    """Also what is no Exception, as what ``pytest.fail`` raises: no message is left without an outcome."""

    def fail(self: TaskHook, *info: object) -> None:
        pytest.fail("on purpose")

    running = await run_to_end(hearing(same, messages=2), hooks=[type("Fails", (TaskHook,), {method: fail})])
    spout = running.statistics().components["spout"]
    assert (spout.messages, spout.acked) == (2, 2)


def test_a_hook_that_exits_leaves_no_message_uncounted() -> None:
    """The exit comes out, and the end of the run does not call that hook again."""
    running: list[Running] = []

    class Exits(TaskHook):
        def spout_ack(self, info: SpoutAckInfo) -> None:
            raise SystemExit(3)

    async def main() -> None:
        async with hearing(same, messages=2).run(hooks=[Exits]) as run:
            running.append(run)
            await run.finished()

    with pytest.raises(SystemExit):
        asyncio.run(main())
    spout = running[0].statistics().components["spout"]
    assert spout.messages == spout.acked + spout.left_over > 0


def layers(outlet: Outlet) -> Iterator[Outlet]:
    """An outlet, and those that it wraps."""
    yield outlet
    if isinstance(outlet, WrappedOutlet):
        yield from layers(outlet.inner)


class Emits(TaskHook):
    def emit(self, info: EmitInfo) -> None:
        """Hear of it."""


@pytest.mark.parametrize(("hooks", "wrapped"), [([], False), ([TaskHook], False), ([Emits], True)])
async def test_only_what_is_overridden_is_wrapped(hooks: list[Any], wrapped: bool) -> None:
    """Without a hook that overrides ``emit`` the outlets are what they are without hooks; so is the worker."""
    async with hearing(same).run(hooks=hooks) as running:
        (bolt,) = running._tasks.bolts["bolt"]  # pyright: ignore[reportPrivateUsage]
        assert any(isinstance(each, HookedOutlet) for each in layers(bolt.outlets["default"])) is wrapped
        assert type(bolt.worker).__name__ == "FunctionWorker"
        await running.finished()


async def test_hooks_clean_up_after_a_crash() -> None:
    """Where the topology crashes, hooks clean up all the same."""
    heard: list[tuple[Any, ...]] = []
    with pytest.raises(Exception, match="crash"):
        await run_to_end(hearing(refuse, on_error="stop"), hooks=[partial(Heard, heard)])
    assert sorted(heard)[:2] == [("cleanup", "bolt"), ("cleanup", "spout")]


async def test_infos_are_frozen() -> None:
    """A hook cannot change what others hear."""
    with pytest.raises(AttributeError):
        EmitInfo(1, "default", 0, ()).value = 2  # type: ignore[misc]
    assert msgspec.structs.asdict(EmitInfo(1, "default", 0, (3,)))["out_tasks"] == (3,)


async def test_a_hook_hears_of_whatever_is_acked_at_a_hard_end() -> None:
    """Within epochs, too, whose messages are told when they are durable; at whatever moment the end comes."""
    late = 0
    for moment in range(0, 400, 3):
        heard: list[tuple[Any, ...]] = []
        topology = Topology("cut short", epoch_messages=50)
        topology.bolt("ignore", Ignore, topology.spout("numbers", list(range(200))).shuffle())
        with suppress(ValueError):
            async with topology.run(hooks=[partial(Heard, heard)], state=MemoryStore()) as running:
                for _ in range(moment):
                    await asyncio.sleep(0)
                before = running.statistics().components["numbers"].acked
                raise ValueError
        acked = running.statistics().components["numbers"].acked
        assert sum(what == "acked" for what, *_ in heard) == acked
        late += acked > before
    assert late
