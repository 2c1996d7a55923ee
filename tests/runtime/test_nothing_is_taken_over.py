"""A topology is a guest: it leaves the process, the event loop and other topologies as they are."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import pytest
import uvloop

from stormlet import InvalidTopology, Running, Topology, TopologyCrashed
from stormlet.report.health import RunState
from tests.cast import ignore
from tests.helpers import until
from tests.runtime.surroundings import ASPECTS
from tests.runtime.watched_process import SPOILERS

R = TypeVar("R")

ROOT = Path(__file__).parents[2]
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
STAGES = [
    "import",
    "building",
    "running",
    "drained",
    "left",
    "troubled",
    "left after trouble",
    "crashed",
    "refused",
]
AT_WORK = {"running", "drained", "troubled"}
"""The stages in which tasks of the topology are there."""

RunCoroutine = Callable[[Coroutine[Any, Any, R]], R]


def watched_process(argument: str) -> subprocess.CompletedProcess[str]:
    """The host program, run to its end."""
    command = [sys.executable, "-m", "tests.runtime.watched_process", argument]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150, check=False)


@pytest.fixture(scope="module", params=LOOPS)
def watched(request: pytest.FixtureRequest) -> subprocess.CompletedProcess[str]:
    """The host program on each kind of loop."""
    return watched_process(request.param)


@pytest.mark.parametrize("aspect", ASPECTS)
def test_it_stays_as_it_was(watched: subprocess.CompletedProcess[str], aspect: str) -> None:
    """On import, while building, in a run, after it, after failures and after a crash nothing has been changed;
    tasks are there while a topology runs, and gone when it is left."""
    assert watched.returncode == 0, watched.stderr
    found = json.loads(watched.stdout)
    assert list(found) == STAGES
    changed = {stage for stage, aspects in found.items() if aspect in aspects}
    assert changed == (AT_WORK if aspect == "tasks" else set())


def test_nothing_is_printed(watched: subprocess.CompletedProcess[str]) -> None:
    """The host program prints one line by itself; stormlet prints none, and logs where the host wants it."""
    assert watched.stderr == ""
    assert len(watched.stdout.splitlines()) == 1


def test_the_watch_sees_every_change() -> None:
    """Each aspect, when it is changed, is found changed, and no other one is."""
    process = watched_process("spoil")
    found = json.loads(process.stdout)
    assert [(aspect, changed) for aspect, changed in found if changed != [aspect]] == []
    assert {aspect for aspect, _ in SPOILERS} == ASPECTS.keys()
    assert len(found) == len(SPOILERS)


@pytest.fixture(params=LOOPS)
def in_loop(request: pytest.FixtureRequest) -> RunCoroutine[Any]:
    """Runs a coroutine on each kind of loop."""

    def run(coroutine: Coroutine[Any, Any, R]) -> R:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(asyncio.wait_for(coroutine, 60))

    return run


# Threads.


def test_threads_come_when_asked_for_and_end_with_the_run(in_loop: RunCoroutine[None]) -> None:
    """A bolt with executor="thread" has one thread per task, which is gone soon after the block is left."""
    before = set(threading.enumerate())
    names: set[str] = set()

    def note(number: int) -> None:
        names.add(threading.current_thread().name)

    async def run() -> None:
        topology = Topology("threads")
        numbers = topology.spout("numbers", range(100))
        topology.bolt("note", note, numbers.shuffle(), parallelism=2, executor="thread")
        topology.bolt("ignore", ignore, numbers.shuffle())
        async with topology.run() as running:
            await running.finished()
            assert {each.name for each in set(threading.enumerate()) - before} == names
        await gone(set(threading.enumerate()) - before)

    in_loop(run())
    assert names == {"note[0]_0", "note[1]_0"}


async def gone(threads: set[threading.Thread]) -> None:
    """Wait for their end, without the loop."""
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


# Two topologies in one loop.


def counting(name: str, count: int) -> tuple[Topology, Any, Any]:
    """Topologies with the same component ids: some messages of their own, and a spout for the host."""
    topology = Topology(name)
    host = topology.spout("host")
    own = topology.spout("own", range(count))
    seen = topology.bolt("bolt", lambda value: (name, value), host.shuffle(), own.shuffle())
    return topology, host, seen


async def own_acked(running: Running, count: int) -> None:
    """Wait until all of its own messages are acked: who leaves the block does not ask for more of them."""
    while running.statistics().components["own"].acked < count:  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(0)


def test_two_topologies_know_nothing_of_each_other(in_loop: RunCoroutine[None]) -> None:
    """In one loop, with the same component ids, each has its own messages, counts and trees."""

    async def run() -> None:
        (first, first_host, first_seen), (second, second_host, second_seen) = (
            counting("1", 30),
            counting("2", 50),
        )
        async with first.run() as one, second.run() as two:
            trees = [await one.emit(first_host, n, collect=first_seen) for n in range(5)]
            others = [await two.emit(second_host, n, collect=second_seen) for n in range(7)]
            assert [await tree for tree in trees] == [[("1", n)] for n in range(5)]
            assert [await tree for tree in others] == [[("2", n)] for n in range(7)]
            with pytest.raises(InvalidTopology, match="no spout's stream of topology '1'"):
                await one.emit(second_host, 1)
            await own_acked(one, 30)
            await own_acked(two, 50)
        counts = [each.statistics().components for each in (one, two)]
        assert [each["host"].acked for each in counts] == [5, 7]
        assert [each["own"].acked for each in counts] == [30, 50]
        assert [each["bolt"].executed for each in counts] == [35, 57]

    in_loop(run())


def test_one_topology_runs_twice_at_a_time(in_loop: RunCoroutine[None]) -> None:
    """Two runs of one description have instances, messages and counts of their own."""

    async def run() -> None:
        topology, host, seen = counting("1", 20)
        async with topology.run() as one, topology.run() as two:
            assert await (await one.emit(host, "a", collect=seen)) == [("1", "a")]
            assert await (await two.emit(host, "b", collect=seen)) == [("1", "b")]
            one.stop()
            await one.finished()
            assert await (await two.emit(host, "c", collect=seen)) == [("1", "c")]
        assert [each.statistics().components["host"].acked for each in (one, two)] == [1, 2]

    in_loop(run())


def crashing() -> tuple[Topology, Any]:
    """A topology that a message of the host crashes."""

    def crash(value: object) -> None:
        raise ValueError(value)

    topology = Topology("crashing")
    host = topology.spout("host")
    topology.bolt("crash", crash, host.shuffle(), on_error="stop")
    return topology, host


def test_a_crash_leaves_the_topology_around_it_alone(in_loop: RunCoroutine[None]) -> None:
    """A topology that crashes inside the block of another one ends by itself; the other goes on in the same task."""

    async def run() -> None:
        (sound, sound_host, seen), (topology, host) = counting("1", 0), crashing()
        async with sound.run() as one:
            with pytest.raises(TopologyCrashed, match="'crashing'"):
                await crash(topology, host)
            this_task = asyncio.current_task()
            assert this_task is not None
            assert this_task.cancelling() == 0
            assert one.health().ready
            assert await (await one.emit(sound_host, 2, collect=seen)) == [("1", 2)]
            await asyncio.sleep(0.01)  # nothing cancels this task any longer
        assert one.statistics().components["host"].acked == 1
        assert len(asyncio.all_tasks()) == ALONE

    in_loop(run())


def test_a_crash_leaves_the_topology_beside_it_alone(in_loop: RunCoroutine[None]) -> None:
    """A topology that crashes in a task of its own does not touch the one that runs in another task."""

    async def run() -> None:
        (sound, sound_host, seen), (topology, host) = counting("1", 0), crashing()
        async with sound.run() as one:
            other = asyncio.create_task(crash(topology, host))
            await asyncio.wait([other])
            assert isinstance(other.exception(), TopologyCrashed)
            assert await (await one.emit(sound_host, 2, collect=seen)) == [("1", 2)]
        assert one.health().state is RunState.STOPPED
        assert len(asyncio.all_tasks()) == ALONE

    in_loop(run())


ALONE = 2 if sys.version_info < (3, 12) else 1
"""The tasks of a test on a real loop: before Python 3.12, ``wait_for`` made one of its own."""


async def crash(topology: Topology, host: Any) -> None:
    """Crash it, and wait for ever."""
    async with topology.run() as running:
        await running.emit(host, 1)
        await asyncio.Event().wait()


# In a loop that runs before, and after: a notebook.


class Notebook:
    """Runs cells as IPython does: with top-level await, in one namespace, in a loop that is there already."""

    def __init__(self, *, own_tasks: bool) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.own_tasks = own_tasks
        """Whether each cell runs in a task of its own, as in Jupyter, or all in one."""

    async def run(self, *cells: str) -> None:
        """Run these cells; raises what they raise."""
        for cell in cells:
            code = compile(
                dedent(cell), "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
            )
            result = eval(code, self.namespace)
            if inspect.iscoroutine(result):
                await (asyncio.create_task(result) if self.own_tasks else result)


BUILD = """
    import msgspec
    import stormlet

    class Word(msgspec.Struct):
        text: str

    def split(line: str):
        for text in line.split():
            yield Word(text)

    def length(word: Word) -> int:
        return len(word.text)

    topology = stormlet.Topology("notebook")
    lines = topology.spout("lines")
    words = topology.bolt("split", split, lines.shuffle(), outputs=Word)
    lengths = topology.bolt("length", length, words.fields("text"), parallelism=2)
"""


@pytest.mark.parametrize("own_tasks", [True, False])
def test_a_topology_runs_in_a_cell(in_loop: RunCoroutine[None], own_tasks: bool) -> None:
    """A cell with ``async with`` runs a topology in the loop of the notebook, as often as one likes."""
    run = """
        async with topology.run() as running:
            tree = await running.emit(lines, "the cow jumped", collect=lengths)
            found = await tree
    """
    notebook = Notebook(own_tasks=own_tasks)
    in_loop(notebook.run(BUILD, run, "found.sort()", run, "found.sort()"))
    assert notebook.namespace["found"] == [3, 3, 6]
    assert notebook.namespace["running"].statistics().components["lines"].acked == 1


@pytest.mark.parametrize("own_tasks", [True, False])
def test_cells_share_a_topology_that_was_entered_by_hand(
    in_loop: RunCoroutine[None], own_tasks: bool
) -> None:
    """A run that one cell enters is used by the next ones and left by another; then nothing of it is there."""
    notebook = Notebook(own_tasks=own_tasks)

    async def session() -> None:
        await notebook.run(
            BUILD,
            "run = topology.run()",
            "running = await run.__aenter__()",
            "tree = await running.emit(lines, 'the cow', collect=lengths)",
            "first = await tree",
            "state = running.health().state.value",
            "second = await (await running.emit(lines, 'jumped', collect=lengths))",
            "running.deactivate(); running.activate()",
            "await run.__aexit__(None, None, None)",
            "counts = running.statistics().components['lines']",
        )
        assert len(asyncio.all_tasks()) == ALONE

    in_loop(session())
    found = notebook.namespace
    assert (found["first"], found["second"], found["state"]) == ([3, 3], [6], "running")
    assert (found["counts"].acked, found["counts"].pending) == (2, 0)


def test_a_crash_between_cells_is_told_by_the_next_ones(in_loop: RunCoroutine[None]) -> None:
    """When a topology that was entered by hand crashes, its handle says so, and leaving it raises the crash; the
    notebook itself is not cancelled."""
    notebook = Notebook(own_tasks=True)

    async def session() -> Running:
        await notebook.run(
            BUILD,
            "def crash(length): raise ValueError(length)",
            "topology.bolt('crash', crash, lengths.shuffle(), on_error='stop')",
            "run = topology.run()",
            "running = await run.__aenter__()",
            "tree = await running.emit(lines, 'the cow')",
            "import asyncio",
            "while running.health().ready: await asyncio.sleep(0.01)",
            "health = running.health()",
        )
        with pytest.raises(TopologyCrashed, match=r"ValueError\(3\)"):
            await notebook.run("await running.finished()")
        with pytest.raises(TopologyCrashed):
            await notebook.run("await run.__aexit__(None, None, None)")
        await until(lambda: len(asyncio.all_tasks()) == ALONE)
        return notebook.namespace["running"]

    in_loop(session())
    health = notebook.namespace["health"]
    assert (health.state, health.ready) == (RunState.CRASHED, False)
    assert notebook.namespace["tree"].done


def test_a_notebook_is_told_not_to_start_another_loop(in_loop: RunCoroutine[None]) -> None:
    """``stormlet.run`` in a cell raises and says what to write instead, and that works in the next cell."""
    notebook = Notebook(own_tasks=True)

    async def session() -> None:
        await notebook.run(BUILD, "topology = stormlet.Topology('finite')")
        await notebook.run("topology.bolt('ignore', print, topology.spout('none', []).shuffle())")
        with pytest.raises(RuntimeError, match=r"write '(async with .*)' instead") as raised:
            await notebook.run("stormlet.run(topology)")
        await notebook.run(str(raised.value).split("'")[1])

    in_loop(session())
    assert notebook.namespace["running"].health().state is RunState.STOPPED
