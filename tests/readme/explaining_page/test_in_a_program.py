"""The page "Why is it stuck?": for programs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from stormlet import Bolt, Collector, DeadLetter, Explanation, NotTracked, Topology, TreeState, Tuple
from tests.cast import Hold, ignore
from tests.readme.explaining_page.kit import no_answer, one_bolt, wait_for_ever


class Sees(Hold):
    """Notes the roots of its inputs."""

    roots: list[int]

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        super().execute(tup, out)
        self.roots.extend(tup.roots)


async def first_waits(number: int) -> None:
    if number < 2:
        await no_answer()
    raise LookupError(number)


@pytest.mark.simulated_time
async def test_three_ways_to_ask() -> None:
    """`tree.explain()` is for a message of the host, `running.explain(root)` for any tree whose root a bolt has seen in
    `tup.roots`, and `running.explain_oldest(most=10)` for whoever does not know what to ask for: it has the open trees
    that time out first, then messages that wait for a replay or for `dead_letters=`. They give an `Explanation`, the
    last one several: `str(explanation)` is the text above, and its `state`, `outstanding`, `occupations`, `failures`
    and `replay_in` are for programs. A web service can show it:
    """
    sees = Sees()
    sees.roots = []
    topology = Topology("asked", drain_timeout=0)
    source, numbers = topology.spout("source"), topology.spout("numbers", [7])
    topology.bolt("sees", lambda: sees, source.shuffle(), numbers.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        tree = await running.emit(source, "a")
        await asyncio.sleep(1)
        assert [running.explain(root).value for root in sees.roots] == [7, "a"]
        assert str(tree.explain()) == str(running.explain(sees.roots[1]))
        assert str(tree.explain()).startswith("message of 'source', 'a', is open for 1 s (root")

    async def bury(letter: DeadLetter) -> None:
        await no_answer()

    topology = Topology("oldest", drain_timeout=0, max_attempts=2, replay_delay=10, replay_delay_max=1000)
    numbers = topology.spout("numbers", range(20))
    topology.bolt("waits", first_waits, numbers.shuffle(), concurrency=30)
    async with topology.run(dead_letters=bury) as running:
        await asyncio.sleep(1)
        told = running.explain_oldest()
        assert [each.value for each in told[:2]] == [0, 1]
        assert [each.state for each in told] == [TreeState.OPEN] * 2 + [TreeState.WAITING] * 8
        assert all(isinstance(each, Explanation) for each in told)
        assert told[0].outstanding[0].name == "waits[0]"
        assert (told[2].failures[0].component, told[2].replay_in is not None) == ("waits", True)
        await asyncio.sleep(20)
        states = [each.state for each in running.explain_oldest(most=100)]
    assert states == [TreeState.OPEN] * 2 + [TreeState.BURYING] * 18
    async with one_bolt(wait_for_ever) as (running, source):
        for value in "ab":
            tree = await running.emit(source, value)
        await asyncio.sleep(1)
        (occupation,) = tree.explain().occupations
    assert (occupation.name, occupation.stack[0].function) == ("bolt[0]", "wait_for_ever")


def test_a_web_service(operations: ModuleType) -> None:
    """One look goes through everything that the bolts have, queues included, which takes less time than executing it
    would.
    """

    async def ask() -> tuple[str, float, float]:
        go_on, emitted = asyncio.Event(), asyncio.Event()

        def numbers() -> Iterator[int]:
            yield from range(20_000)
            emitted.set()

        class Waits(Bolt[int, None]):
            async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
                await go_on.wait()
                out.ack(tup)

        topology = Topology("queued", max_spout_pending=None, queue_capacity=20_000)
        topology.bolt("waits", Waits, topology.spout("numbers", numbers).shuffle())
        async with topology.run() as running:
            await emitted.wait()
            app = Starlette(routes=[Route("/stuck", operations.stuck)])
            app.state = SimpleNamespace(running=running)  # type: ignore[assignment]
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://host"
            ) as client:
                text = (await client.get("/stuck")).text
            looking = cpu_of(running.explain_oldest)
            go_on.set()
            began = time.process_time()
            await running.finished()
            return text, looking, time.process_time() - began

    text, looking, executing = asyncio.run(ask())
    assert text.count("message ") == 10
    assert "message 0 of 'numbers', 0, is open" in text
    assert "waits[0] executes 0: " in text
    assert looking < executing


def cpu_of(look: Callable[[], object]) -> float:
    began = time.process_time()
    look()
    return time.process_time() - began


@pytest.mark.simulated_time
async def test_untracked() -> None:
    """With `ackers=0` nothing is tracked, and all three raise `NotTracked`."""
    async with one_bolt(ignore, run={"ackers": 0}) as (running, source):
        tree = await running.emit(source, 1)
        asked: list[Callable[[], object]] = [tree.explain, lambda: running.explain(1), running.explain_oldest]
        for ask in asked:
            with pytest.raises(NotTracked):
                ask()
