"""``soak``: bursts at full load, between which everything must come to rest, be accounted for, and weigh no more than
before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random, SystemRandom
from typing import Any

from stormlet.errors import InvalidTopology, StormletError
from stormlet.model.number_checks import check_finite
from stormlet.testing.chaos.silence import silence
from stormlet.testing.soaking.parts import SoakedKit
from stormlet.testing.soaking.report import SoakFailed, SoakReport, growth_of
from stormlet.testing.soaking.run import How, LawBroken, SoakedRun
from stormlet.topology import Topology

SHOWN_LINES = 60


class SoakLoop(asyncio.SelectorEventLoop):
    """An ordinary loop, on which the runtime finds other parts and uses them."""

    def __init__(self, parts: SoakedKit) -> None:
        super().__init__()
        self.parts = parts
        began = self.time()
        parts.use(lambda: self.time() - began, _no_jump)


def soak(
    topology: Topology,
    *,
    minutes: float = 20.0,
    burst: float = 30.0,
    every: float = 0.5,
    growth: float = 16.0,
    seed: int | None = None,
    sources: Mapping[Any, Any] | None = None,
    configuration: Mapping[str, object] | None = None,
    on_rest: Callable[[SoakReport], object] = id,
) -> SoakReport:
    """Run the topology in real time for so many ``minutes`` while tasks are killed, bolts raise and inputs are slow,
    one of them each ``every`` seconds on the average, and judge it.

    After each ``burst`` of so many seconds the spouts pause until everything is settled; then the books must be
    balanced, and the memory is read. A topology that ends is run again. ``seed`` decides what goes wrong;
    ``sources`` and ``configuration`` are as for :meth:`~stormlet.Topology.run`. ``on_rest`` is called with the report
    so far, at each rest.

    Raises :class:`SoakFailed` when a message is lost, the law is broken otherwise, or the process takes ``growth`` MiB
    more at the end than after the warm-up, a quarter of the time, as far as the system tells;
    :class:`~stormlet.errors.InvalidTopology` for a spout that nobody feeds.
    """
    for name, given in (("minutes", minutes), ("burst", burst), ("every", every), ("growth", growth)):
        check_finite("soak", name, given)
    report = SoakReport(topology.name, SystemRandom().getrandbits(32) if seed is None else seed)
    random = Random(report.seed)
    how = How(burst, every, sources, configuration or {}, on_rest)
    with silence():
        while report.seconds < minutes * 60.0:
            _soak_once(topology, how, random.getrandbits(32), report, minutes * 60.0)
    if (grown := growth_of(report, growth)) is not None:
        raise SoakFailed(report, [grown])
    return report


def _soak_once(topology: Topology, how: How, seed: int, report: SoakReport, until: float) -> None:
    parts = SoakedKit(seed)
    try:
        with asyncio.Runner(loop_factory=lambda: SoakLoop(parts)) as runner:
            runner.run(_run(topology, how, seed, parts, report, until))
    except InvalidTopology:
        raise
    except (LawBroken, StormletError) as error:
        violations = parts.witness.violations or [str(error)]
        raise SoakFailed(report, violations, parts.journal.lines()[-SHOWN_LINES:]) from error


async def _run(
    topology: Topology, how: How, seed: int, parts: SoakedKit, report: SoakReport, until: float
) -> None:
    await SoakedRun(how, parts, report).run(topology, seed, until)


def _no_jump(seconds: float) -> None:
    """Real time cannot be set."""
