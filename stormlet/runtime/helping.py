"""The coroutines beside the tasks: they look for calm, rotate the ackers, tick the bolts, and explain what is stuck."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any

from stormlet.core.description import Description
from stormlet.runtime.assembly import Tasks
from stormlet.runtime.conductor import Conductor
from stormlet.runtime.explaining.explainer import Explainer
from stormlet.runtime.explaining.stuck_trees import StuckTrees
from stormlet.runtime.tickers import rotate_ackers, tick_bolts

ORPHAN_TIMEOUT = 30.0
"""Seconds after which the ackers forget what they heard of trees that never began, where timeouts are off
(law L5)."""


def helping(
    description: Description, tasks: Tasks, conductor: Conductor, explainer: Explainer
) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
    """Each with its name; to be run from the start of the spouts to the end."""
    configuration = description.configuration
    yield "conductor", conductor.run()
    if tasks.ackers:
        timeout = configuration.message_timeout or ORPHAN_TIMEOUT
        yield "ticker", rotate_ackers(tasks.ackers, timeout, configuration.timeout_buckets)
    for id, spec in description.bolts.items():
        ticked = [task for task in tasks.bolts[id] if task.worker.method("tick") is not None]
        if spec.tick is not None and ticked:
            yield f"ticks of {id}", tick_bolts(ticked, spec.tick)
    if configuration.explain_stuck is not None and tasks.ackers:
        stuck = StuckTrees(
            description.name, explainer, configuration.explain_stuck, configuration.message_timeout
        )
        yield "stuck trees", stuck.watch()
