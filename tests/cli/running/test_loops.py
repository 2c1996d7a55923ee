"""User code that tries to end the process."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from stormlet.cli import main
from stormlet.cli.running.loops import await_threads, tasks_of_threads
from tests.cli.flows import write

EXITING = """
    import asyncio, sys
    from stormlet import BasicBolt
    def build(kind: str) -> Topology:
        def leave(value):
            if value == 3:
                {leave}
        async def leave_later(value):
            await asyncio.sleep(0)
            leave(value)
        async def leave_in_a_task(value):
            async def leave_soon():
                leave(value)
            await asyncio.wait([asyncio.create_task(leave_soon())])
        def leave_as_a_source():
            yield from range(3)
            leave(3)
        class LeaveAtTheEnd(BasicBolt):
            def execute(self, tup, out): ...
            def cleanup(self):
                leave(3)
        topology = Topology("exiting")
        source = leave_as_a_source if kind == "source" else range(10)
        values = topology.spout("values", source)
        logic = {{
            "function": leave, "source": print, "concurrent": leave_later, "thread": leave, "task": leave_in_a_task,
            "cleanup": LeaveAtTheEnd,
        }}[kind]
        options = {{"concurrent": {{"concurrency": 4}}, "thread": {{"executor": "thread"}}}}.get(kind, {{}})
        topology.bolt("logic", logic, values.shuffle(), **options)
        return topology
    """


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("kind", "whose"),
    [
        ("function", "execute of logic[0]"),
        ("concurrent", "execute of logic[0]"),
        ("thread", "execute of logic[0]"),
        ("cleanup", "cleanup of logic[0]"),
        ("source", "next_tuple of values[0]"),
        ("task", "user code of the topology"),
    ],
)
@pytest.mark.parametrize(("leave", "error"), [("sys.exit(0)", "SystemExit"), ("raise KeyboardInterrupt", "")])
def test_leaving_is_a_crash(loop: str, kind: str, whose: str, leave: str, error: str) -> None:
    """It never ends in exit code 0 with messages left over, whatever the code that was asked for: the component is
    named, the traceback is the user's, and nothing else is said."""
    write(EXITING.format(leave=leave))
    arguments = ["run", "flow.py", "--loop", loop, "--arg", f"kind={kind}"]
    finished = subprocess.run(
        [sys.executable, "-m", "stormlet", *arguments], capture_output=True, text=True, check=False
    )
    lines = finished.stderr.splitlines()
    assert finished.returncode == 1
    assert lines[-1].startswith(f"stormlet: topology 'exiting' crashed: {whose} raised {error}")
    assert lines.count("Traceback (most recent call last):") == 1
    assert "never retrieved" not in finished.stderr
    assert "/stormlet/" not in finished.stderr


LEAVING = """
    from stormlet import BasicBolt
    class Leaving(BasicBolt):
        def {method}(self, *arguments):
            raise SystemExit("no")
        def execute(self, tup, out): ...
    topology = Topology("leaving")
    topology.bolt("staying", print, topology.spout("values", [1]).shuffle())
    topology.bolt("leaving", Leaving, topology.spout("others", [1]).shuffle())
    """

STOPPING = """
    import asyncio
    def stop(value):
        asyncio.get_running_loop().stop()
    topology = Topology("stopping")
    topology.bolt("stop", stop, topology.spout("values", range(10)).shuffle())
    """


@pytest.mark.parametrize(
    ("method", "whose"),
    [("__init__", "the constructor of bolt 'leaving'"), ("prepare", "prepare of leaving[0]")],
)
def test_leaving_at_the_start_keeps_the_topology_from_starting(
    method: str, whose: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It counts as an exception there does."""
    write(LEAVING.format(method=method))
    assert main(["run", "flow.py"]) == 1
    *_, last = capfd.readouterr().err.splitlines()
    assert last == f"stormlet: topology 'leaving' did not start: {whose} raised SystemExit('no')"


LEAVING_BY_NAME = """
    from stormlet import BasicBolt, Spout
    def leave(*arguments):
        spec = topology.describe().bolts["staying"]
        raise SystemExit("no")
    class Leaving(BasicBolt):
        __init__ = leave
        def execute(self, tup, out): ...
    class Source(Spout):
        __init__ = leave
        def next_tuple(self, out): ...
    topology = Topology("leaving")
    topology.bolt("staying", print, topology.spout("values", {source}).shuffle())
    topology.bolt("leaving", {bolt}, topology.spout("others", [1]).shuffle())
    """


@pytest.mark.parametrize(
    ("source", "bolt", "whose"),
    [
        ("[1]", "Leaving", "bolt 'leaving'"),
        ("Source", "print", "spout 'values'"),
        ("lambda: leave()", "print", "spout 'values'"),
    ],
)
def test_a_constructor_that_leaves_is_named_whatever_its_variables_are_called(
    source: str, bolt: str, whose: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its component is known by what the engine was making, not by what the traceback holds."""
    write(LEAVING_BY_NAME.format(source=source, bolt=bolt))
    assert main(["run", "flow.py"]) == 1
    *_, last = capfd.readouterr().err.splitlines()
    assert (
        last
        == f"stormlet: topology 'leaving' did not start: the constructor of {whose} raised SystemExit('no')"
    )


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_stopping_the_loop_is_a_crash(loop: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Which says what to do instead; there is no line of the user's to show."""
    write(STOPPING)
    assert main(["run", "flow.py", "--loop", loop]) == 1
    shown = capfd.readouterr().err
    assert (
        "stormlet: topology 'stopping' crashed: user code of the topology has stopped the event loop" in shown
    )
    assert "Traceback" not in shown


@pytest.fixture
def thread() -> Iterator[Callable[[str], threading.Event]]:
    """Starts a thread of this name, which ends when the event is set."""
    started: list[tuple[threading.Thread, threading.Event]] = []

    def start(name: str) -> threading.Event:
        done = threading.Event()
        made = threading.Thread(target=done.wait, name=name)
        made.start()
        started.append((made, done))
        return done

    yield start
    for made, done in started:
        done.set()
        made.join()


def test_they_are_known_by_the_task_that_they_work_for(thread: Callable[[str], threading.Event]) -> None:
    """Each task once, and no thread of others."""
    for name in ("b[0]_0", "b[0]_1", "a[1]_0", "c[0]_0", "ThreadPoolExecutor-0_0"):
        thread(name)
    assert tasks_of_threads({"a[1]", "b[0]", "d[0]"}) == ["a[1]", "b[0]"]


def test_nothing_is_said_of_threads_that_end(thread: Callable[[str], threading.Event]) -> None:
    """Nor of those that belong to nobody here."""
    said: list[str] = []
    thread("a[0]_0").set()
    thread("elsewhere_0")
    await_threads({"a[0]"}, said.append)
    assert said == []


def test_those_that_do_not_are_named_and_waited_for(thread: Callable[[str], threading.Event]) -> None:
    """User code cannot be cancelled there."""
    said: list[str] = []
    done = thread("a[0]_0")

    def say(text: str) -> None:
        said.append(text)
        done.set()

    await_threads({"a[0]"}, say, grace=0.01)
    assert said == ["waiting for user code in the threads of a[0] to return; Ctrl-C kills"]
    assert tasks_of_threads({"a[0]"}) == []
