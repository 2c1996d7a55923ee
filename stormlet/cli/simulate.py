"""The ``simulate`` command: a topology under many seeds and faults, on simulated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import join
from time import monotonic
from typing import Annotated, TypeAlias

from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.cli.errors import FAILED
from stormlet.cli.output import write_text
from stormlet.cli.parameters import DEFAULTS, Target, TargetOptions, Whole
from stormlet.core.shortened import counted, escaped, printable
from stormlet.errors import TargetError
from stormlet.model.configuration import Setting, spell_setting
from stormlet.testing import SimulationFailed, SimulationReport
from stormlet.testing import simulate as simulate_topology
from stormlet.testing.chaos.simulating import Kind

EXAMPLES = """\
stormlet simulate topology.py
stormlet simulate topology.py --seeds 10000 --faults 'kill=0.05 drop=0'
stormlet simulate topology.py --seed 17 --faults 'kill:split[0]@3'
stormlet simulate topology.py --allow order"""


SEEDS = 1000
"""Seeds of a simulation that names none."""
Allowed: TypeAlias = Annotated[tuple[Kind, ...], Parameter(metavar="KIND", negative=(), show_default=False)]


def simulate(
    target: Target,
    /,
    *,
    options: TargetOptions = DEFAULTS,
    seeds: Annotated[Whole | None, Parameter(validator=Number(gte=1))] = None,
    seed: Annotated[Whole | None, Parameter(validator=Number(gte=0))] = None,
    faults: str = "",
    seconds: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    allow: Allowed = (),
) -> int:
    """Run a topology under many seeds, on simulated time, and judge every run.

    Each seed decides in which order tasks go, and what goes wrong: tasks that die, exceptions, slow bolts, messages to
    the ackers that come late, twice or never, clocks that jump, queues of one. With state= the whole process is killed,
    too, and begins again with what its store has, which is in memory here. The first seed under which a message is
    lost, reported twice, or acked too early is shrunk to the fewest faults, and the exit code is 1. The same holds
    where your code acks before its work, emits without anchors, loses an update across an await, and more of the kind.
    In the end, results and state are compared with those of runs in which nothing fails.

    Parameters
    ----------
    seeds
        Number of seeds, from 0; 1,000 by default.
    seed
        This seed alone, instead of ``--seeds``.
    faults
        Probability of each kind, as in 'kill=0.05 drop=0'; or the exact faults, as a failed run prints them; or none.
    seconds
        Stop and drain after this many simulated seconds: for topologies that never end.
    allow
        A kind of bug that is meant here, and not reported. May be repeated.
    """
    if seed is not None and seeds is not None:
        raise TargetError("--seed is one seed, and --seeds the number of seeds from 0; give one of them")
    layered = options.layered()
    topology = options.topology(target)
    chosen = [seed] if seed is not None else range(seeds or SEEDS)
    began = monotonic()
    try:
        report = simulate_topology(
            topology,
            seeds=chosen,
            faults=faults or "kill=0.01",
            seconds=seconds,
            configuration=layered.values,
            allow=allow,
        )
    except SimulationFailed as failed:
        again = _again(failed, target, options.arguments, layered.values, seconds, allow)
        write_text(f"{escaped(str(failed))}\n\nagain: {again}\n")
        return FAILED
    write_text(_summary(topology.name, report, monotonic() - began))
    return 0


def _again(
    failed: SimulationFailed,
    target: str,
    arguments: Sequence[str],
    options: Mapping[str, Setting],
    seconds: float | None,
    allow: Sequence[str],
) -> str:
    """The command line that repeats it, wherever the options came from: files and environments change."""
    words = ["stormlet", "simulate", target]
    words += [word for each in arguments for word in ("--arg", each)]
    words += [word for option in options.items() for word in ("--set", spell_setting(*option))]
    words += [] if seconds is None else ["--seconds", str(seconds)]
    words += [word for each in allow for word in ("--allow", each)]
    return join([*words, "--seed", str(failed.result.seed), "--faults", failed.exactly])


def _summary(name: str, report: SimulationReport, took: float) -> str:
    counts = report.counts
    faults = ", ".join(f"{kind.value} {number:,}" for kind, number in report.faults.most_common()) or "none"
    return (
        f"{printable(name)}: {counted(report.seeds, 'seed')} in {took:.1f} s, and none failed\n"
        f"messages acked {counts['acked']:,}, replayed {counts['replayed']:,}, "
        f"dead letters {counts['dead_letters']:,}, restarts {counts['restarts']:,}\n"
        f"faults: {faults}\n{_missed(report)}"
    )


def _missed(report: SimulationReport) -> str:
    """A list that no longer repeats what it did must not look as if that were mended."""
    if not report.missed:
        return ""
    total, (seed, fault) = len(report.missed) + report.faults.total(), report.missed[0]
    return f"{len(report.missed):,} of {counted(total, 'fault')} never struck, such as {fault} under seed {seed}\n"
