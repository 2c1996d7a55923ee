"""Two runs with one seed under simulated time are identical, event for event (law L16)."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stormlet
from stormlet import BasicBolt, Collector, Topology, Tuple
from stormlet.testing import run_simulated
from tests.engines import Engine
from tests.law import busy
from tests.law.puppets import Puppets, now, settle


def in_a_process(seed: int, hash_seed: int) -> subprocess.Popen[str]:
    """Begin a run in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, busy.__file__, str(seed)]
    return subprocess.Popen(
        program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def test_L16_one_seed_gives_one_run_in_any_process() -> None:
    """Processes that hash strings differently, and have their objects elsewhere, live through the same events
    at the same times, with the same ids."""
    processes = [in_a_process(seed=5, hash_seed=hash_seed) for hash_seed in (1, 2, 3)]
    diaries = [process.communicate()[0].splitlines() for process in processes]
    assert len(diaries[0]) > 500
    assert diaries[0] == diaries[1] == diaries[2] == busy.diary_of(5)


def test_L16_the_diary_has_a_bit_of_everything() -> None:
    """What is compared has outcomes, replays, timeouts, dead letters and flushes in it."""
    diary = "\n".join(busy.diary_of(5))
    for words in ("ack", "fail", "timeout", "dead", "flush", "tick", "pairs <-", "host"):
        assert words in diary, words


def test_L16_another_seed_gives_another_run() -> None:
    """Ids differ, and so do interleavings: what happens at the start, ids left out, happens in another
    order, even if there is only one acker, so that ids decide nothing."""

    def beginning(seed: int) -> list[str]:
        return [line.split(" (")[0] for line in busy.diary_of(seed, ackers=1) if line.startswith("0.0 ")]

    assert busy.diary_of(5) != busy.diary_of(6)
    assert beginning(5) != beginning(6)


def test_L16_slices_do_not_look_at_the_clock() -> None:
    """Neither the real time that user code takes nor the time budget has any influence."""
    assert busy.diary_of(5) == busy.diary_of(5, burn=500_000) == busy.diary_of(5, slice=1e-6)


def test_L16_without_a_seed_the_loops_own_is_used() -> None:
    """A test that is marked with a seed repeats itself without passing it on."""
    first, again, other = (busy.diary_of(None, loop_seed=seed) for seed in (7, 7, 8))
    assert first == again != other


def test_L16_the_global_generator_is_not_touched() -> None:
    """Whatever the user's program draws from ``random`` neither changes a run nor is changed by it."""
    random.seed(1)
    first, state = busy.diary_of(5), random.getstate()
    random.seed(1)
    assert random.getstate() == state
    random.seed(2)
    assert busy.diary_of(5) == first


async def ids_of_first(seed: int, others: int) -> list[Any]:
    """The roots and edges that one spout task draws, beside others that draw as well."""
    topology, puppets = Topology("sources"), Puppets()
    first = topology.spout("first", range(50))
    more = [topology.spout(f"other {number}", range(50)) for number in range(others)]
    topology.bolt("puppets", puppets, first.shuffle(), *(each.shuffle() for each in more))
    async with topology.run(seed=seed, drain_timeout=0):
        await settle()
    return [tup.edges() for tup in puppets.got if tup.component == "first"]


def test_L16_every_task_has_an_id_source_of_its_own() -> None:
    """What other tasks draw does not change the ids of a task; the seed does."""
    alone, beside = (run_simulated(ids_of_first(3, others)) for others in (0, 3))
    assert len(alone) == 50
    assert alone == beside != run_simulated(ids_of_first(4, 0))


@pytest.mark.simulated_time
async def test_L16_one_seed_gives_one_order_and_one_timing(engine: Engine) -> None:
    """Of all executions and replays, over tasks that are chosen at random."""

    async def executions(seed: int) -> list[tuple[int, int, float]]:
        seen: list[tuple[int, int, float]] = []
        began = now()

        class Flaky(BasicBolt[int, int]):
            def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
                seen.append((tup.value, tup.attempt, round(now() - began, 6)))
                if tup.attempt <= tup.value % 3:
                    raise ValueError(tup.value)

        topology = Topology("seeded")
        topology.bolt("flaky", Flaky, topology.spout("numbers", range(20)).fields(), parallelism=3)
        await engine.run_to_end(topology, seed=seed)
        return seen

    first = await executions(1)
    assert len(first) > 20
    assert await executions(1) == first
    assert await executions(2) != first


def modules() -> list[Path]:
    """What decides and acts; explanations only look."""
    package = Path(str(stormlet.__file__)).parent
    paths = [path for layer in ("core", "runtime", "topology") for path in (package / layer).rglob("*.py")]
    return [path for path in paths if path.parent.name != "explain"]


def unordered(file: Path) -> Iterator[str]:
    """Where a module makes a set, or asks for an address."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if isinstance(node, ast.Set | ast.SetComp) or called in {"set", "frozenset", "id"}:
            yield f"{file.name}:{node.lineno} {ast.unparse(node)}"


@pytest.mark.parametrize("file", modules(), ids=lambda file: file.stem)
def test_L16_no_module_uses_sets_or_addresses(file: Path) -> None:
    """Dicts keep their order, so nothing that is iterated is a set, and nothing is ordered by ``id()``."""
    assert list(unordered(file)) == []
