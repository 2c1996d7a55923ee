"""The page "Testing your topology": leaks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from typing import Any, NamedTuple

import msgspec
import pytest

from stormlet import Bolt, Collector, SpoutCollector, Topology, TopologyCrashed, Tuple
from stormlet.testing import (
    Hold,
    Leaked,
    ScriptedBolt,
    complete,
    complete_async,
    images,
    run_bolt,
)
from tests.cast import Counting
from tests.helpers import leave_by
from tests.testing.plugin_runs import run

HOLDS = """
from stormlet import Topology
from stormlet.testing import Hold, ScriptedBolt

async def hold(value="a", **options):
    topology = Topology("leaky", **options)
    topology.bolt("hold", ScriptedBolt({"a": Hold()}), topology.spout("lines", [value]).shuffle())
    async with topology.run():
        await asyncio.sleep(60)
"""
MARK = "\n@pytest.mark.simulated_time\n"


def held(**options: Any) -> Topology:
    topology = Topology("leaky", max_attempts=1, **options)
    topology.bolt("hold", ScriptedBolt({"a": Hold()}), topology.spout("lines", ["a"]).shuffle())
    return topology


def leak(inner: pytest.Pytester, test: str, mark: str = MARK) -> pytest.RunResult:
    return run(inner, HOLDS + mark + dedent(test).strip())


def test_a_test_that_leaves_something(inner: pytest.Pytester) -> None:
    """After each test on simulated time stormlet looks for what no topology should leave behind, and fails the test
    with its name; `complete` looks for the first four kinds, `run_bolt` for values and errors:
    """
    result = leak(inner, "async def test_it():\n    await hold()")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["left behind (allow_leaks=?'inputs'* allows it):"])

    tasks: list[asyncio.Task[None]] = []
    topology = Topology("leaves a task")
    lines = topology.spout("lines", ["a"])
    topology.bolt("leave", lambda _: tasks.append(asyncio.create_task(asyncio.sleep(1e9))), lines.shuffle())
    complete(topology)
    assert [task.cancelled() for task in tasks] == [True]
    with pytest.raises(Leaked, match="inputs"):
        complete(held(message_timeout=1.0))

    for settles_first, kind in ((False, "values"), (True, "errors")):
        with pytest.raises(Leaked) as leaked:
            run_bolt(lambda: Grows(settles_first), [[1]])  # noqa: B023 it is called here
        assert {each.kind for each in leaked.value.leaks} == {kind}


class Grows(Bolt[list[int], list[int]]):
    """Emits the list and adds to it, or acks it and then emits it."""

    def __init__(self, settles_first: bool) -> None:
        self.settles_first = settles_first

    def execute(self, tup: Tuple[list[int]], out: Collector[list[int]]) -> None:
        if self.settles_first:
            out.ack(tup)
        out.emit(tup.value, anchors=tup)
        tup.value.append(2)
        out.ack(tup)


def test_inputs() -> None:
    """`inputs`: a tuple that a bolt neither acked nor failed, with the bolt and its task"""
    with pytest.raises(Leaked, match=r"hold\[0\] never acked or failed <Tuple 'a' from 'lines'") as leaked:
        complete(held(message_timeout=1.0))
    assert [each.kind for each in leaked.value.leaks] == ["inputs"]


def test_trees(inner: pytest.Pytester) -> None:
    """`trees`: a message that had no outcome when the drain gave up, with its spout"""
    result = leak(inner, "async def test_it():\n    await hold(message_timeout=None, drain_timeout=1.0)")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the tree of 'a', emitted by lines?0?, was still open at the end"])


class Remembers(Bolt[Any, Any]):
    """Changes each value in its own way after it has emitted it."""

    def __init__(self, change: Callable[[Any], object]) -> None:
        self.change = change

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.emit(tup.value)
        self.change(tup.value)
        out.ack(tup)


def changed(change: Callable[[Any], object], *values: object) -> Topology:
    topology = Topology("changes")
    topology.bolt("remembers", lambda: Remembers(change), topology.spout("values", values).shuffle())
    return topology


def test_values() -> None:
    """`values`: a value that was changed after it was emitted, with who emitted it, and what it was"""
    with pytest.raises(Leaked, match=r"remembers\[0\] emitted \[1\] .* changed afterwards to \[1, 2\]"):
        complete(changed(lambda value: value.append(2), [1]))


@pytest.mark.parametrize("method", ["tick", "cleanup", "next_tuple", "execute"])
def test_errors(method: str) -> None:
    """`errors`: an exception for which no tuple answers, with component, task and line: in `tick`, `cleanup`,
    `next_tuple` and their like, or after the input was settled
    """
    place = rf"\w+\[0\] raised ValueError\('{method}'\) in {method} \(\w+\.py:\d+\)"
    with pytest.raises(Leaked, match=place) as leaked:
        complete(raising(method))
    assert [each.kind for each in leaked.value.leaks] == ["errors"]


def raising(method: str) -> Topology:
    """A topology in which this method raises, once."""
    raises = {method}
    topology = Topology("raises")
    numbers = topology.spout("numbers", lambda: RaisingSpout(raises))
    topology.bolt("takes", lambda: RaisingBolt(raises), numbers.shuffle(), tick=1.0)
    return topology


def raise_once(method: str, raises: set[str]) -> None:
    """Raise if this method is one that shall."""
    if method in raises:
        raises.remove(method)
        raise ValueError(method)


class RaisingSpout(Counting):
    """Counts, and may raise once."""

    def __init__(self, raises: set[str]) -> None:
        super().__init__()
        self.raises = raises

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        raise_once("next_tuple", self.raises)
        super().next_tuple(out)


class RaisingBolt(Bolt[int, int]):
    """Takes two seconds for each input, and may raise once, when it has acked one or elsewhere."""

    def __init__(self, raises: set[str]) -> None:
        self.raises = raises

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        await asyncio.sleep(2)
        out.ack(tup)
        raise_once("execute", self.raises)

    def tick(self, out: Collector[int]) -> None:
        raise_once("tick", self.raises)

    def cleanup(self) -> None:
        raise_once("cleanup", self.raises)


def test_tasks(inner: pytest.Pytester) -> None:
    """`tasks`: an asyncio task that has not ended, and what it waits for"""
    result = leak(
        inner,
        """
        async def test_it():
            await hold("b")
            global task
            task = asyncio.create_task(asyncio.Event().wait(), name="straggler")
            await asyncio.sleep(0)
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  task straggler: Event.wait (locks.py:*"])


def test_threads_that_were_left(inner: pytest.Pytester) -> None:
    """`threads`: a thread, daemons excepted, that has not ended a second later"""
    result = leak(
        inner,
        """
        async def test_it():
            import threading
            global go
            go = threading.Event()
            threading.Thread(target=go.wait, args=(20,), name="straggler").start()
            threading.Thread(target=go.wait, args=(20,), name="demon", daemon=True).start()
            threading.Thread(target=go.wait, args=(0.1,), name="quick").start()

        def test_cleanup():
            go.set()
        """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["left behind (allow_leaks=?'threads'? allows it):", "  thread straggler"])
    for name in ("demon", "quick"):
        result.stdout.no_fnmatch_line(f"*thread {name}*")


def test_what_was_outstanding(inner: pytest.Pytester) -> None:
    """Tests on simulated time record every tree, so that one that was left open, or an awaited tree that times out,
    comes with the tuples that were outstanding, and a deadlock with [why each tree is stuck](explaining.md).
    """
    result = leak(
        inner,
        """
        async def test_left_open():
            await hold(message_timeout=None, drain_timeout=1.0)

        @pytest.mark.simulated_time
        async def test_awaited():
            topology = Topology("awaited", message_timeout=5.0)
            lines = topology.spout("lines")
            topology.bolt("hold", ScriptedBolt(default=Hold()), lines.shuffle())
            async with topology.run() as running:
                await (await running.emit(lines, "b"))

        @pytest.mark.simulated_time
        async def test_stuck():
            topology = Topology("stuck", message_timeout=None)
            lines = topology.spout("lines", ["c"])
            topology.bolt("hold", ScriptedBolt(default=Hold()), lines.shuffle())
            async with topology.run():
                await asyncio.Event().wait()
        """,
    )
    for value in "abc":
        result.stdout.fnmatch_lines([f"*'{value}'* is held by hold?0?, delivered *, by way of lines?0?*"])


@pytest.mark.simulated_time(allow_leaks=False)
@pytest.mark.parametrize(("tick", "error"), [(1.0, TopologyCrashed), (None, KeyError)])
async def test_topologies_that_did_not_drain(tick: float | None, error: type[Exception]) -> None:
    """Topologies that crashed, or were cancelled, may leave inputs, trees and errors."""
    topology = held(message_timeout=None, max_restarts=1)
    topology.bolt("crash", Crashes, topology.spout("none").shuffle(), tick=tick)
    with pytest.raises(error):
        await leave_by(KeyError("mine"), topology, after=5.0)


@pytest.mark.simulated_time(allow_leaks=False)
async def test_tasks_that_shall_die() -> None:
    """Where a task dies of an exception on purpose, allow errors; what `running.kill` does is none."""
    await complete_async(raising("tick"), allow_leaks=["errors"])
    async with raising("nothing").run() as running:
        running.kill("takes")
        await running.finished()
    assert running.statistics().components["takes"].restarts == 1


class Crashes(Bolt[Any, Any]):
    """Raises where no tuple answers for it."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        """Never called."""

    def tick(self, out: Collector[Any]) -> None:
        raise ValueError("tick")


class Struct(msgspec.Struct):
    """A record that can be changed."""

    x: object


@dataclass
class Data:
    """Another."""

    x: object


class Named(NamedTuple):
    """One that has a list in it."""

    x: list[int]


def attrs_record() -> object:
    attrs = pytest.importorskip("attrs")
    return attrs.make_class("Attrs", {"x": attrs.field()})(1)


CHANGES: list[tuple[object, Callable[[Any], object]]] = [
    ([1], lambda value: value.append(2)),
    ({1: 1}, lambda value: value.update({2: 2})),
    ({1}, lambda value: value.add(2)),
    (deque([1]), lambda value: value.append(2)),
    (bytearray(b"1"), lambda value: value.append(2)),
    (Struct(1), lambda value: setattr(value, "x", 2)),
    (Data(1), lambda value: setattr(value, "x", 2)),
    (attrs_record(), lambda value: setattr(value, "x", 2)),
    (Named([1]), lambda value: value.x.append(2)),
    ((1, {"a": [Data([1])]}), lambda value: value[1]["a"][0].x.append(2)),
]


def test_what_is_seen() -> None:
    """Changes are seen in lists, dicts, sets, deques and byte arrays, and in records (msgspec structs, dataclasses,
    attrs classes, named tuples), at any depth,
    """
    for value, change in CHANGES:
        with pytest.raises(Leaked, match="it was changed afterwards"):
            complete(changed(change, value))


@pytest.mark.parametrize(("number", "kinds"), [(4, ["values", "values"]), (5, [])])
def test_how_many_are_looked_after(number: int, kinds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """for the first 10,000 such values of a run."""
    assert images.MOST == 10_000
    monkeypatch.setattr(images, "MOST", 10)  # those of five messages, as source and bolt emit each
    topology = changed(lambda value: value == [number] and value.append(0), *([each] for each in range(6)))
    assert kinds_of_leaks(topology) == kinds


def kinds_of_leaks(topology: Topology) -> list[str]:
    """What it leaves behind, one message after another."""
    try:
        complete(topology, max_spout_pending=1)
    except Leaked as leaked:
        return [each.kind for each in leaked.leaks]
    return []


def test_leaks_that_are_allowed(inner: pytest.Pytester) -> None:
    """`@pytest.mark.simulated_time(allow_leaks=True)` allows everything, a list of kinds some, and in the configuration
    `simulated_time_allow_leaks = ["inputs", "trees"]` does so for all tests.
    """
    test = "async def test_it():\n    await hold(message_timeout=1.0)"
    for allowed, passes in (("True", True), ("['inputs', 'trees']", True), ("['values']", False)):
        result = leak(inner, test, f"\n@pytest.mark.simulated_time(allow_leaks={allowed})\n")
        result.assert_outcomes(passed=passes, failed=not passes)
    (inner.path / "pytest.ini").unlink(missing_ok=True)
    (inner.path / "tox.ini").unlink(missing_ok=True)
    inner.makepyprojecttoml("""
        [tool.pytest.ini_options]
        simulated_time_allow_leaks = ["inputs", "trees"]
        asyncio_default_fixture_loop_scope = "function"
    """)
    leak(inner, test).assert_outcomes(passed=1)
