"""``stormlet run``: one topology, from its start to its closing summary."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from stormlet.cli.endings import say, stopping_on_closed_output, stopping_on_signals
from stormlet.cli.report import LogFormatter, summarise
from stormlet.core.configuration import read_options
from stormlet.core.logic import SourceKind
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
    _set_up_logging()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run(topology, settings))


def _set_up_logging() -> None:
    """To standard error, unless the user's file has set logging up."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop of uvloop where that is installed; None is asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop if _standard_streams_are_open() else None


def _standard_streams_are_open() -> bool:
    # uvloop opens files of its own under the numbers of closed ones, and aborts when it closes them.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            return False
    return True


async def _run(topology: Topology, settings: Mapping[str, object]) -> int:
    began = time.monotonic()
    with ExitStack() as at_the_end:  # after the block is left: its drain can be stopped, too
        async with topology.run(seed=None, active=True, dead_letters=None, **settings) as running:
            at_the_end.callback(
                lambda: say(summarise(topology.name, running.statistics(), time.monotonic() - began))
            )
            at_the_end.enter_context(stopping_on_closed_output(running.stop))
            at_the_end.enter_context(stopping_on_signals(running.stop))
            _mention_what_nobody_feeds(topology)
            await running.finished()
    statistics = running.statistics()
    return 1 if statistics.dead_letters or statistics.left_over else 0


def _mention_what_nobody_feeds(topology: Topology) -> None:
    for spout in topology.describe().spouts.values():
        if spout.kind is SourceKind.FED:
            say(f"spout {spout.id!r} has no source, so this run waits for Ctrl-C; running.emit could feed it")
