"""The page "Why is it stuck?": its first words."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stormlet import Place, TupleTimedOut
from tests.readme.explaining_page.kit import no_answer, one_bolt


async def asks(value: object) -> None:
    await no_answer()


@pytest.mark.simulated_time
async def test_what_and_where() -> None:
    """A message whose tree does not complete is found out by `message_timeout`, which says *that* something is wrong.
    This page is about *what*: which tuples are outstanding, which task has each of them, and the line of your code in
    which it waits.
    """
    async with one_bolt(asks, run={"message_timeout": 10}) as (running, source):
        tree = await running.emit(source, "a")
        await asyncio.sleep(1)
        (outstanding,) = tree.explain().outstanding
        with pytest.raises(TupleTimedOut, match="held by 'bolt'"):
            await tree
    assert (outstanding.value, outstanding.name) == ("a", "bolt[0]")
    assert outstanding.stack[0].line == asks.__code__.co_firstlineno + 1


@pytest.mark.simulated_time
async def test_the_shop(orders: ModuleType) -> None:
    """Here one order waits for a shop that does not answer, the orders after it wait for their turn, and a bolt forgets
    another one:
    """
    async with orders.topology.run(drain_timeout=0) as running:
        await asyncio.sleep(10)
        found = {
            each.value: (each.place, each.name)
            for explanation in running.explain_oldest()
            for each in explanation.outstanding
        }
    assert found == {
        "order 1": (Place.HELD, "ship[0]"),
        "order 3": (Place.EXECUTING, "price[0]"),
        "order 4": (Place.QUEUED, "price[0]"),
        "order 5": (Place.QUEUED, "price[0]"),
    }


@pytest.mark.usefixtures("orders")
def test_the_command(tmp_path: Path) -> None:
    """`python -m stormlet run orders.py --explain-stuck 10 --set record_edges=1` logs:"""
    # With other seconds, as this is real time; tests/readme/test_explaining_page.py holds the log to the letter.
    command = (
        f"-m stormlet run {tmp_path / 'orders.py'} --explain-stuck 0.4 --set record_edges=1 --duration 60"
    )
    more = ["--set", "drain_timeout=0"]
    told = ""
    with subprocess.Popen(
        [sys.executable, *command.split(), *more], stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None
        for line in run.stderr:
            told += line
            if "one more tree is open for at least 0.4 s" in line:
                run.send_signal(signal.SIGINT)
    assert "'order 1' is held by ship[0]" in told
    assert "'order 3' is executed by price[0]" in told
    assert "price (orders.py:11) > ask_the_shop (orders.py:15)" in told
    assert "one more tree is open for at least 0.4 s" in told
