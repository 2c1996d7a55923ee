"""``simulate``: one run for each seed, and for a seed that fails the fewest faults that still make it fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from stormlet.core.shortened import shortened
from stormlet.errors import InvalidConfiguration, StormletError
from stormlet.model.checks.numbers import check_int
from stormlet.testing.arguments import (
    IN_A_PLAIN_FUNCTION,
    check_sources,
    check_topology,
    refuse_in_a_loop,
)
from stormlet.testing.chaos.comparing import Compared
from stormlet.testing.chaos.evidence import SeedResult
from stormlet.testing.chaos.faults import Fault, FaultKind, Faults, FaultsLike, read_faults
from stormlet.testing.chaos.journal import silence
from stormlet.testing.chaos.simulator import Simulator, TopologyLike
from stormlet.testing.leaks import chosen_kinds

Kind = Literal["anchors", "acks", "errors", "values", "replays", "joins", "updates", "order", "state"]
"""Emits without anchors, acks before the end of the work, exceptions after
them, values that are changed afterwards, messages that a spout does
not replay, joins with the replay of a message, lost updates, results that depend on the order, and state that
depends on what fails."""
Allow: TypeAlias = bool | Collection[Kind]
"""Kinds that are no bugs, because it is meant so; True: all of them."""
KINDS: Final[tuple[str, ...]] = get_args(Kind)


SHOWN_LINES = 60


@dataclass(slots=True)
class SimulationReport:
    """The counts of simulations in all."""

    seeds: int = 0
    faults: Counter[FaultKind] = field(default_factory=Counter[FaultKind])
    counts: Counter[str] = field(default_factory=Counter[str])
    """``acked``, ``replayed``, ``dead_letters`` and ``restarts``."""
    missed: list[tuple[int, Fault]] = field(default_factory=list[tuple[int, Fault]])
    """Seeds, and faults of an exact list that did not happen under them: there the list does not repeat what it once
    did."""

    def add(self, result: SeedResult) -> None:
        """One more seed."""
        self.seeds += 1
        self.faults.update(fault.kind for fault in result.faults)
        self.counts.update(result.counts)
        self.missed += [(result.seed, fault) for fault in result.missed]


class SimulationFailed(StormletError, AssertionError):
    """A seed under which the law was broken. The message has a line that repeats it, and the end of its log."""

    def __init__(self, topology: str, result: SeedResult) -> None:
        super().__init__(topology, result)
        self.topology = topology
        self.result = result

    @property
    def exactly(self) -> str:
        """The faults, as ``simulate(..., faults=...)`` takes them."""
        return self.result.exactly

    def __str__(self) -> str:
        result, log = self.result, self.result.log
        left_out = len(log) - SHOWN_LINES
        above = [f"... {left_out} lines above, in result.log"] if left_out > 0 else []
        return "\n".join(
            (
                f"topology {self.topology!r}, seed {result.seed}: {result.violations[0]}",
                *(f"and: {violation}" for violation in result.violations[1:4]),
                result.repeated,
                *map(str, result.explanations),
                *above,
                *log[-SHOWN_LINES:],
            )
        )


def simulate(
    topology: TopologyLike,
    *,
    seeds: Iterable[int] = range(100),
    faults: FaultsLike = Faults(),  # noqa: B008 it is frozen
    sources: Mapping[Any, Any] | None = None,
    seconds: float | None = None,
    configuration: Mapping[str, object] | None = None,
    on_seed: Callable[[SeedResult], None] | None = None,
    allow: Allow = False,
) -> SimulationReport:
    """Run the topology once for each seed, on a loop whose order, slices and faults the seed decides, and judge
    every run: the engine by the law, and the user's code by what can be seen without knowing what it is for.

    A run ends when the topology is finished; with ``seconds`` it is stopped after so many simulated ones, and
    drains; either way it is judged by what is left then. ``topology`` is a topology, or a function that makes a new
    one for each run; ``sources`` stand in for its spouts, and ``configuration`` changes its own, as for
    :meth:`~stormlet.Topology.run`.

    ``on_seed`` is called with each result, after its run and before the next one. Assert there that all is well in the
    world outside, and make that ready for the next run::

        def check(result: SeedResult) -> None:
            assert sorted(charged) == sorted(orders)
            charged.clear()

    When all seeds are done, more runs of the same input follow, with which some are compared: not with ``seconds``,
    and not for fewer than ten seeds, unless their faults are listed or nothing may fail in them. ``allow`` names kinds
    of bugs that are none, because it is meant so, or is True for all: "anchors", "acks", "errors", "values", "replays",
    "joins", "updates", "order" and "state".

    Raises :class:`SimulationFailed` for the first seed that breaks the law, with the fewest faults that still do;
    :class:`~stormlet.errors.InvalidTopology` for a topology that never finishes;
    :class:`~stormlet.errors.InvalidConfiguration` for exact faults at places that it has not.
    """
    refuse_in_a_loop("simulate", otherwise=IN_A_PLAIN_FUNCTION)
    check_sources("simulate", sources)
    if not callable(topology):
        check_topology("simulate", topology)
    wanted = read_faults(faults) if isinstance(faults, str) else faults
    if not isinstance(cast("object", seeds), Iterable):
        raise InvalidConfiguration(f"simulate: seeds must be numbers such as range(100), not {seeds!r}")
    _check_faults(wanted)
    if on_seed is not None and not callable(on_seed):
        raise InvalidConfiguration(f"simulate: on_seed is a function of a result, not {shortened(on_seed)}")
    report = SimulationReport()
    simulator = Simulator(topology, sources, seconds, configuration, chosen_kinds("allow", allow, KINDS))
    compared = Compared(simulator.collected, simulator.allowed, wanted)
    with silence():
        for seed in seeds:
            check_int("simulate", "a seed", seed)
            result = simulator.run(seed, wanted, collects=compared.harmless)
            if result.violations:
                raise SimulationFailed(simulator.name, simulator.explained(simulator.shrunk(result)))
            report.add(result)
            compared.add(result)
            if on_seed is not None:
                _report(on_seed, result)
        for result in compared.judged() if seconds is None else ():
            if result.violations:
                raise SimulationFailed(simulator.name, simulator.shrunk(result, compared.judge))
    return report


def _check_faults(wanted: object) -> None:
    if isinstance(wanted, Faults) or _are_faults(wanted):
        return
    raise InvalidConfiguration(
        f"simulate: faults are Faults(kill=0.05), a list of Fault, or a text, not {shortened(wanted)}"
    )


def _are_faults(wanted: object) -> bool:
    if not isinstance(wanted, Sequence):
        return False
    return all(isinstance(each, Fault) for each in cast("Sequence[object]", wanted))


def _report(on_seed: Callable[[SeedResult], None], result: SeedResult) -> None:
    try:
        on_seed(result)
    except Exception as error:
        error.add_note(result.repeated)
        raise
