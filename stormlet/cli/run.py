"""``stormlet run``: one topology, from its start to its closing summary."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain, repeat

from stormlet.cli.report import summarise
from stormlet.core.configuration import read_options
from stormlet.loading import load_topology
from stormlet.topology import Topology


def run(target: str, arguments: Mapping[str, str], settings: Mapping[str, object]) -> int:
    """Run the topology that ``target`` names until it is finished; 0, or 1 if messages were given up or left
    over.

    Raises what the settings, the loading and the run raise: :class:`~stormlet.errors.InvalidConfiguration`,
    :class:`~stormlet.errors.TargetError`, :class:`~stormlet.errors.InvalidTopology`,
    :class:`~stormlet.errors.TopologyCrashed`.
    """
    read_options(settings, "--set")  # before anything is loaded; and run's own arguments are no options
    topology = load_topology(target, arguments)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")  # unless the user's file has done so
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run(topology, settings))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop of uvloop where that is installed; None is asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _run(topology: Topology, settings: Mapping[str, object]) -> int:
    began = time.monotonic()
    with ExitStack() as at_the_end:  # after the block is left: its drain can be stopped, too
        async with topology.run(seed=None, active=True, dead_letters=None, **settings) as running:
            at_the_end.callback(
                lambda: _say(summarise(topology.name, running.statistics(), time.monotonic() - began))
            )
            at_the_end.enter_context(_stopping_on_signals(running.stop))
            await running.finished()
    statistics = running.statistics()
    return 1 if statistics.dead_letters or statistics.left_over else 0


@contextmanager
def _stopping_on_signals(stop: Callable[[], object]) -> Generator[None]:
    """Ctrl-C and SIGTERM drain the topology; a second one cancels it (law C3)."""
    if sys.platform == "win32":  # no such handlers there: Ctrl-C cancels at once
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    answers = chain(("draining; once more cancels",), repeat("cancelling"))

    def answer(name: str) -> None:
        _say(f"{name}: {next(answers)}")
        stop()

    for number in numbers:
        loop.add_signal_handler(number, answer, number.name)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
