"""``stormlet run``: one topology, from its start to its closing summary."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from stormlet.cli.endings import say, stopping_on_closed_output, stopping_on_signals
from stormlet.cli.parameters import Arguments, ConfigFile, Settings, Target, read_arguments
from stormlet.cli.report import LogFormatter, summarise
from stormlet.cli.settings import effective_settings
from stormlet.core.logic import SourceKind
from stormlet.loading import load_topology
from stormlet.topology import Topology

EXAMPLES = """\
stormlet run topology.py
stormlet run topology.py:build --arg path=words.txt
stormlet run package.module:topology --set ackers=2 --set message_timeout=none"""


def run(target: Target, /, *, arg: Arguments = (), settings: Settings = (), config: ConfigFile = None) -> int:
    """Run a topology until its spouts have ended and everything is settled.

    Ctrl-C or SIGTERM drains it, a second one cancels it, a third one kills.
    """
    layered = effective_settings(config, settings)  # before anything is loaded
    topology = load_topology(target, read_arguments(arg))
    _set_up_logging()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run(topology, layered.values))


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
