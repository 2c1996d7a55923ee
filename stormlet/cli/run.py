"""The ``run`` command."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from stormlet.cli.errors import FAILED, WRONG_USAGE, exit_code, explain
from stormlet.cli.inspecting.inspection import inspect_topology
from stormlet.cli.parameters import (
    DEFAULTS,
    Engine,
    FilePath,
    Flag,
    Target,
    TargetOptions,
    Whole,
    warn_of_ignored,
)
from stormlet.cli.running.batch import BatchOptions, BatchSession, begin, check_options
from stormlet.cli.running.epochs import StreamSession
from stormlet.cli.running.loops import LoopName, event_loop, loop_factory
from stormlet.cli.running.outcome import Outcome, Result, as_json
from stormlet.cli.running.page import open_page
from stormlet.cli.running.session import How, Session
from stormlet.cli.running.streams import GuardedStream, LogLevel, guarded_streams, logging_to_standard_error
from stormlet.cli.units import read_deadline, read_duration
from stormlet.errors import StormletError
from stormlet.model.setting_layers import Layered
from stormlet.topology import Topology

EXAMPLES = """\
stormlet run topology.py
stormlet run topology.py:build --arg path=words.txt
stormlet run package.module:topology --set ackers=2 --set message_timeout=none
stormlet run topology.py --state counts.state
stormlet run topology.py --state counts.state --fresh
stormlet run topology.py --duration 5m --dead-letters given-up.jsonl
stormlet run topology.py --replay-dead-letters given-up.jsonl --dead-letters again.jsonl
stormlet run topology.py --ui 8080
stormlet run topology.py --explain-stuck 20 --set record_edges=1
stormlet run topology.py --quiet --json-summary | tail -n 1
stormlet run topology.py --engine spark --master spark://host:7077"""


def run(
    target: Target,
    /,
    *,
    options: TargetOptions = DEFAULTS,
    duration: Annotated[str | None, Parameter(metavar="SECONDS")] = None,
    drain_timeout: Annotated[str | None, Parameter(metavar="SECONDS")] = None,
    explain_stuck: Annotated[str | None, Parameter(metavar="SECONDS")] = None,
    state: Annotated[FilePath | None, Parameter(metavar="FILE")] = None,
    fresh: Flag = False,
    dead_letters: Annotated[FilePath | None, Parameter(metavar="FILE")] = None,
    replay_dead_letters: Annotated[FilePath | None, Parameter(metavar="FILE")] = None,
    ui: Annotated[str | None, Parameter(metavar="[HOST:]PORT")] = None,
    ui_show_values: Flag = False,
    ui_control: Flag = False,
    ui_host: Annotated[tuple[str, ...], Parameter(metavar="NAME", negative=(), show_default=False)] = (),
    engine: Engine = "process",
    master: str | None = None,
    files: Annotated[tuple[Path, ...], Parameter(metavar="FILE", negative=())] = (),
    staging: Annotated[str | None, Parameter(metavar="FOLDER")] = None,
    seed: Whole | None = None,
    loop: LoopName | None = None,
    log_level: LogLevel | None = None,
    debug: Flag = False,
    quiet: Flag = False,
    json_summary: Flag = False,
) -> int:
    """Run a topology until its sources have ended and everything is settled, in this process or on Spark.

    Ctrl-C, SIGTERM or SIGHUP drains it, a second one cancels it, a third one kills. The exit code is 0 when all was
    done, 1 after a crash or with messages given up or left over, 2 for wrong usage, an invalid topology, or a file of
    state or of dead letters that cannot be used, 128 + n when signal n ended the run.

    Parameters
    ----------
    duration
        Drain after this time, in seconds or as 90s, 5m, 1h.
    drain_timeout
        Time for a drain, after which what is left fails; "none" for no deadline.
    explain_stuck
        Explain on standard error, once each, trees that are open for longer: where their tuples are, and where the
        code waits that has them. With --set record_edges=1, since when and which way they came, too. Choose less than
        the message timeout: only replays by the engine are older than that.
    state
        Keep the state of bolts and the positions of sources in this file, and go on where the last run with it has
        ended, also by kill -9. A name that ends with .rocksdb is a directory of RocksDB, for what does not fit into
        memory.
    fresh
        Begin anew although there is a state file: it is moved aside, and kept under a name with the time.
    dead_letters
        Append messages that are given up to this JSONL file.
    replay_dead_letters
        Emit the messages of this file instead of those of the sources. A Spout class gets no ack or fail for
        them. The file stays as it is.
    ui
        Show the run in a browser, at this port of this machine; 0 takes any that is free. At another address, such as
        0.0.0.0:8080, it needs a token in the environment variable STORMLET_UI_TOKEN.
    ui_show_values
        Show the values of messages on that page, too.
    ui_control
        Have buttons on that page that activate, deactivate and drain the topology, and emit dead letters again; the
        address that is printed has a token.
    ui_host
        A name that the page is called by, besides addresses and localhost. May be repeated.
    engine
        "spark" runs the topology on Spark, as one batch, or in epochs if it reads a stream; "check --engine spark"
        shows its stages.
    master
        The Spark cluster, as spark://host:7077; all cores of this machine by default.
    files
        A module or an archive of modules to send to the executors; those of the topology itself are sent anyway. May
        be repeated.
    staging
        A folder that all executors reach, for what a run on Spark keeps until its ledger is checked; a temporary one of
        this machine by default.
    seed
        Seed of shuffling, ids and the jitter of replays.
    loop
        The event loop; uvloop where it is installed.
    log_level
        Lowest level that is logged to standard error; warning by default.
    debug
        Use the debug mode of asyncio, which warns of bolts that hold the event loop for longer than 100 ms.
    quiet
        Write nothing but errors to standard error: no view, no progress, no summary.
    json_summary
        End standard output with one line of JSON: outcome, exit code and all counts.
    """
    with guarded_streams() as (output, errors):
        write = partial(_write_json, output if json_summary else None)
        try:
            check_options(
                engine,
                {
                    "--duration": duration,
                    "--drain-timeout": drain_timeout,
                    "--explain-stuck": explain_stuck,
                    "--replay-dead-letters": replay_dead_letters,
                    "--state": state,
                    "--fresh": fresh,
                    "--ui": ui,
                    "--loop": loop,
                    "--debug": debug,
                },
                {"--master": master, "--files": files, "--staging": staging},
            )
            settings = options.layered(**_flags(drain_timeout, explain_stuck))  # before anything is loaded
            if engine == "spark":
                begin(master)
                topology = options.topology(target)
                with logging_to_standard_error(log_level, quiet=quiet):
                    warn_of_ignored(settings, topology)
                    notes = _notes(topology, settings)
                    choices = BatchOptions(settings.values, files, staging, dead_letters, seed, quiet, notes)
                    result = _session_on_spark(topology, choices, errors).run()
                    write(result)
            else:
                how = How(
                    settings=settings,
                    seed=seed,
                    duration=None if duration is None else read_duration("--duration", duration),
                    state=state,
                    fresh=fresh,
                    dead_letters=dead_letters,
                    replay=replay_dead_letters,
                    quiet=quiet,
                )
                factory = loop_factory(loop)
                topology = options.topology(target)
                # Last, as it takes a port.
                page = open_page(
                    ui, values=ui_show_values, control=ui_control, hosts=ui_host, origins=settings.origins
                )
                with (
                    logging_to_standard_error(log_level, quiet=quiet),
                    event_loop(factory, debug=debug) as loop_of_run,
                ):
                    warn_of_ignored(how.settings, topology)
                    session = Session(topology, replace(how, page=page), loop_of_run, output, errors)
                    result = session.run()
                    write(result)  # before the wait, in which a signal kills
                    session.await_threads()
        except StormletError as error:
            result = Result(None, _outcome_without_a_run(error), error=error)
            write(result)
    if result.error is not None:
        print(explain(result.error), file=sys.stderr)
    if output is None or not output.closed_by_reader:
        return result.exit_code
    if not output.closing_reported:
        print("stormlet: standard output was closed before all was written", file=sys.stderr)
    return result.exit_code or FAILED


def _outcome_without_a_run(error: StormletError) -> Outcome:
    return Outcome.INVALID if exit_code(error) == WRONG_USAGE else Outcome.CRASHED


def _session_on_spark(
    topology: Topology, options: BatchOptions, errors: GuardedStream | None
) -> BatchSession | StreamSession:
    from stormlet.spark.engine.planning.refusals import reads_stream  # which loads the bridge

    kind = StreamSession if reads_stream(topology.describe()) else BatchSession
    return kind(topology, options, errors)


def _notes(topology: Topology, settings: Layered) -> Sequence[str]:
    """The notes of ``check``. Raises :class:`~stormlet.errors.InvalidTopology` if Spark cannot run it."""
    from stormlet.cli.inspecting.stages import notes_of  # which loads the bridge

    return tuple(notes_of(inspect_topology(topology, settings, state_survives=True)))


def _flags(drain_timeout: str | None, explain_stuck: str | None) -> Mapping[str, object]:
    """The options of the topology that have a parameter of their own."""
    flags: dict[str, object] = {}
    if drain_timeout is not None:
        flags["drain_timeout"] = read_deadline(drain_timeout)
    if explain_stuck is not None:
        flags["explain_stuck"] = read_duration("--explain-stuck", explain_stuck)
    return flags


def _write_json(output: GuardedStream | None, result: Result) -> None:
    if output is not None:
        output.end_line()
        output.write(f"{as_json(result)}\n")
        output.flush()
