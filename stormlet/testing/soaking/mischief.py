"""What goes wrong in a soak, and when: somebody is killed, raises, or is slow, at random times."""

from __future__ import annotations

import asyncio
from random import Random

from stormlet.runtime.run.handle import Running
from stormlet.testing.chaos.faults import FaultKind
from stormlet.testing.soaking.parts import SoakedKit

KINDS = {FaultKind.KILL: 2, FaultKind.ERROR: 2, FaultKind.SLOW: 1}
"""What happens, and how often in comparison."""


async def make_mischief(running: Running, parts: SoakedKit, random: Random, every: float) -> None:
    """Until it is cancelled, have something go wrong each ``every`` seconds, on the average."""
    while True:
        await asyncio.sleep(random.expovariate(1.0 / every))
        kind = random.choices([*KINDS], [*KINDS.values()])[0]
        if kind is FaultKind.KILL:
            _kill(running, parts, random)
        elif parts.tasks.all_bolts:
            parts.let_suffer(random.choice(parts.tasks.all_bolts), kind)


def _kill(running: Running, parts: SoakedKit, random: Random) -> None:
    tasks = [*parts.tasks.ackers, *parts.tasks.all_spouts, *parts.tasks.all_bolts]
    mortal = [task for task in tasks if task.mortal]
    if mortal:
        task = random.choice(mortal)
        parts.met[FaultKind.KILL] += 1
        parts.journal.note("FAULT: {} is killed", task.name)
        running.kill(task.plan.component, task.plan.index)
