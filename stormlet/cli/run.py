"""The ``run`` command."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from stormlet.cli.durations import read_deadline, read_duration
from stormlet.cli.logs import logging_to_standard_error
from stormlet.cli.loops import LoopName, loop_factory
from stormlet.cli.outcome import Outcome, Result, as_json
from stormlet.cli.parameters import Arguments, ConfigFile, Flag, Settings, Target, read_arguments
from stormlet.cli.replaying import Replay
from stormlet.cli.session import How, Session
from stormlet.cli.settings import effective_settings
from stormlet.cli.streams import guarded_streams
from stormlet.errors import InvalidTopology, StormletError, TargetError
from stormlet.loading import load_topology

EXAMPLES = """\
stormlet run topology.py
stormlet run topology.py:build --arg path=words.txt
stormlet run package.module:topology --set ackers=2 --set message_timeout=none
stormlet run topology.py --duration 5m --dead-letters given-up.jsonl
stormlet run topology.py --replay-dead-letters given-up.jsonl --dead-letters again.jsonl
stormlet run topology.py --quiet --json-summary | tail -n 1"""


def run(
    target: Target,
    /,
    *,
    arg: Arguments = (),
    settings: Settings = (),
    config: ConfigFile = None,
    duration: Annotated[str | None, Parameter(show_default=False)] = None,
    drain_timeout: Annotated[str | None, Parameter(show_default=False)] = None,
    dead_letters: Annotated[Path | None, Parameter(show_default=False)] = None,
    replay_dead_letters: Annotated[Path | None, Parameter(show_default=False)] = None,
    seed: Annotated[int | None, Parameter(show_default=False)] = None,
    loop: Annotated[LoopName | None, Parameter(show_default=False)] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None, Parameter(show_default=False)
    ] = None,
    debug: Flag = False,
    quiet: Flag = False,
    json_summary: Flag = False,
) -> int:
    """Run a topology until its sources have ended and everything is settled.

    Ctrl-C or SIGTERM drains it, a second one cancels it, a third one kills. The exit code is 0 when all was
    done, 1 after a crash or with messages given up or left over, 2 for wrong usage or an invalid topology,
    128 + n when signal n ended the run.

    Parameters
    ----------
    duration
        Drain after so long, in seconds or as 90s, 5m, 1h.
    drain_timeout
        How long a drain may take before what is left fails; "none" for no deadline.
    dead_letters
        Append messages that are given up to this JSONL file.
    replay_dead_letters
        Emit the messages of this file instead of what the sources have. A Spout class hears no ack or fail of
        them. The file stays as it is.
    seed
        For shuffling, ids and the jitter of replays.
    loop
        The event loop; uvloop where it is installed.
    log_level
        How much is logged on standard error; warnings and errors by default.
    debug
        The debug mode of asyncio; warns of bolts that hold the event loop for longer than 100 ms.
    quiet
        Nothing but errors on standard error: no view, no progress, no summary.
    json_summary
        End standard output with one line of JSON: outcome, exit code and all counts.
    """
    with ExitStack() as stack:
        output, errors = stack.enter_context(guarded_streams())
        try:
            flags = {} if drain_timeout is None else {"drain_timeout": read_deadline(drain_timeout)}
            seconds = None if duration is None else read_duration("--duration", duration)
            factory = loop_factory(loop)
            layered = effective_settings(config, settings, flags=flags)  # before anything is loaded
            topology = load_topology(target, read_arguments(arg))
            replay = (
                None
                if replay_dead_letters is None
                else Replay(replay_dead_letters, topology, layered.values, dead_letters)
            )
            how = How(layered.values, seed, seconds, dead_letters, replay, quiet)
            stack.enter_context(logging_to_standard_error(log_level, quiet=quiet))
            with asyncio.Runner(loop_factory=factory, debug=debug or None) as runner:
                result = Session(topology, how, runner.get_loop(), output, errors).run()
        except StormletError as error:
            result = _not_run(error)
        if json_summary and output is not None:
            output.end_line()
            output.write(f"{as_json(result)}\n")
    if result.error is not None:
        raise result.error
    return result.exit_code


def _not_run(error: StormletError) -> Result:
    wrong = isinstance(error, TargetError | InvalidTopology)
    return Result(None, Outcome.INVALID if wrong else Outcome.CRASHED, error=error)
