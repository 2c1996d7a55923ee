"""The other groupings: shuffle, all, global_, direct and custom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    CustomGrouping,
    DirectStream,
    InvalidEmit,
    InvalidTopology,
    Stream,
    TaskContext,
    To,
    Topology,
    TopologyCrashed,
    Tuple,
)
from tests.cast import ignore
from tests.engines import UNFUSED, Engine
from tests.helpers import run_to_end
from tests.law.routes import noting, routes_of, tasks_of

# shuffle, and what means the same in one process.


@UNFUSED
@pytest.mark.simulated_time
@pytest.mark.parametrize("name", ["shuffle", "local_or_shuffle", "none"])
@pytest.mark.parametrize("tasks", [1, 3, 5])
@pytest.mark.parametrize("seed", [1, 2])
async def test_shuffle_gives_each_task_exactly_its_share(
    engine: Engine, name: str, tasks: int, seed: int
) -> None:
    """After n·k tuples each of n tasks got k."""
    routes = await routes_of(
        engine, range(7 * tasks), lambda stream: getattr(stream, name)(), tasks=tasks, seed=seed
    )
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


@UNFUSED
@pytest.mark.simulated_time
async def test_shuffle_begins_anywhere(engine: Engine) -> None:
    """The order of the tasks is drawn, so that single tuples of many producers do not meet in one task."""
    first = {
        tuple(tasks_of(await routes_of(engine, ["x"], Stream.shuffle, seed=seed), "x")) for seed in range(12)
    }
    assert len(first) > 1


# all, global_, direct, custom.


@pytest.mark.simulated_time
async def test_all_gives_every_task_every_tuple(engine: Engine) -> None:
    """Four tasks get the three values each."""
    routes = await routes_of(engine, ["a", "b", "c"], Stream.all)
    assert list(routes.values()) == [["a", "b", "c"]] * 4


@pytest.mark.simulated_time
async def test_global_gives_everything_to_the_task_with_the_lowest_id(engine: Engine) -> None:
    """The other tasks get nothing."""
    routes = await routes_of(engine, range(20), Stream.global_)
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
    with pytest.raises(InvalidTopology, match=r"declared direct; subscribe to it with \.direct\(\)"):
        topology.spout("direct", ["x"], outputs=DirectStream()).shuffle()


class ByLength(CustomGrouping):
    """Sends a text to as many tasks as it has letters."""

    targets: Sequence[int] = ()

    def prepare(self, targets: Sequence[int]) -> None:
        self.targets = targets

    def choose(self, value: object) -> Sequence[int]:
        return self.targets[: len(str(value))]


@pytest.mark.simulated_time
async def test_custom_goes_to_the_tasks_that_it_chooses(engine: Engine) -> None:
    """To several, to one or to none; a message that reaches none is acked (L11)."""
    routes = await routes_of(engine, ["", "a", "bb", "ccc"], lambda stream: stream.custom(ByLength()))
    assert list(routes.values()) == [["a", "bb", "ccc"], ["bb", "ccc"], ["ccc"], []]


@pytest.mark.simulated_time
async def test_custom_knows_its_targets_in_ascending_order(engine: Engine) -> None:
    """``prepare`` gets the consumer's task ids before the first value."""
    grouping = ByLength()
    routes = await routes_of(engine, ["a"], lambda stream: stream.custom(grouping))
    assert list(grouping.targets) == sorted(routes)


@pytest.mark.simulated_time
async def test_custom_a_task_that_is_no_target_is_refused(engine: Engine) -> None:
    """The message names the grouping, what it chose and what it may choose."""

    class Wrong(ByLength):
        def choose(self, value: object) -> Sequence[int]:
            return [99]

    with pytest.raises(TopologyCrashed) as crash:
        await routes_of(engine, ["x"], lambda stream: stream.custom(Wrong()))
    assert isinstance(crash.value.__cause__, InvalidEmit)
    assert "custom grouping of 'values' -> 'note' chose [99]" in str(crash.value.__cause__)


@pytest.mark.simulated_time
async def test_custom_what_it_raises_is_told_as_its_own(engine: Engine) -> None:
    """The message names the grouping and the value, and has the exception as its cause."""

    class Broken(ByLength):
        def choose(self, value: object) -> Sequence[int]:
            raise LookupError("no such region")

    with pytest.raises(TopologyCrashed) as crash:
        await routes_of(engine, ["x"], lambda stream: stream.custom(Broken()))
    refused = crash.value.__cause__
    assert isinstance(refused, InvalidEmit)
    assert (
        str(refused) == "custom grouping of 'values' -> 'note' raised LookupError('no such region') for 'x'"
    )
    assert isinstance(refused.__cause__, LookupError)


# Several subscriptions.


@pytest.mark.simulated_time
async def test_each_subscription_deals_by_its_own_grouping(engine: Engine) -> None:
    """Two bolts on one stream, and one bolt on two streams, get what their own groupings say."""
    by_key, everyone = defaultdict[int, list[object]](list), defaultdict[int, list[object]](list)
    topology = Topology("several")
    stream = topology.spout("values", ["a", "b", "a", "b"])
    other = topology.spout("others", ["a"])
    topology.bolt("keyed", noting(by_key), stream.fields(), other.all(), parallelism=3)
    topology.bolt("everyone", noting(everyone), stream.all(), parallelism=2)
    await engine.run_to_end(topology)
    assert sorted(value for values in everyone.values() for value in values) == ["a"] * 4 + ["b"] * 4
    assert Counter(value for values in by_key.values() for value in values) == {"a": 5, "b": 2}
