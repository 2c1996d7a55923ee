"""The log of what does not end, a run, its drain or an epoch: what it waits for (law S5, C3, X7)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from stormlet.core.shortened import counted
from stormlet.report.failures import log_fields
from stormlet.runtime.bolt.committer import CommitterTask
from stormlet.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds before the log says what is waited for: of an epoch beyond ``epoch_seconds``, and again after as many."""
MOST_NAMED = 3


def log_slow_epoch(topology: str, epoch: int, seconds: float, tasks: Tasks) -> None:
    """Log an epoch that has been open for so long."""
    logger.warning(
        "epoch %s of topology %r has not ended for %g s; it waits for %s",
        *(f"{epoch:,}", topology, seconds, _named(tasks)),
        extra=log_fields(topology),
    )


def log_endless_calls(topology: str, tasks: Tasks) -> None:
    """Log that all messages have their outcomes, and calls are still running."""
    logger.warning(
        "topology %r has no messages left but does not end, as calls are still running: %s; nothing else ends them: "
        "give what they wait for a time limit, such as asyncio.timeout",
        *(topology, _named(tasks)),
        extra=log_fields(topology),
    )


def log_end_of_drain(topology: str, seconds: float, tasks: Tasks) -> None:
    """Log that the time of a drain is over."""
    logger.warning(
        "topology %r has not drained within %g s, its drain_timeout, and what is left fails; it was waiting for %s",
        *(topology, seconds, _named(tasks)),
        extra=log_fields(topology),
    )


def _named(tasks: Tasks) -> str:
    holders = list(_holders(tasks))
    more = f"; and {len(holders) - MOST_NAMED} more" if len(holders) > MOST_NAMED else ""
    return ("; ".join(holders[:MOST_NAMED]) or "messages that are under way") + more


def _holders(tasks: Tasks) -> Iterator[str]:
    for bolt in tasks.all_bolts:
        if isinstance(bolt, CommitterTask) and bolt.is_due:
            yield f"{bolt.name}, which has the epoch before it in hand, in {bolt.code_in_use.place()}"
        elif bolt.restarting:
            yield f"{bolt.name}, which is being restarted"
        elif bolt.calls() or bolt.is_asked:
            yield f"{bolt.name}, in {bolt.code_in_use.place()}"
        elif bolt.holds_inputs:
            yield f"{bolt.name}, which holds inputs"
    for spout in tasks.all_spouts:
        waiting = len(spout.tracker.replays)
        if waiting:
            yield f"{counted(waiting, 'message')} of {spout.name}, whose replay is due later"
