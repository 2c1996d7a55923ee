"""The log of an epoch that does not end: what it waits for (law X7)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from stormlet.report.failures import log_fields
from stormlet.runtime.bolt.committer import CommitterTask
from stormlet.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds that an epoch may last beyond ``epoch_seconds`` before the log says what it waits for, and again after as
many."""
MOST_NAMED = 3


def log_slow_epoch(topology: str, epoch: int, seconds: float, tasks: Tasks) -> None:
    """Log an epoch that has been open for so long."""
    holders = list(_holders(tasks))
    named = "; ".join(holders[:MOST_NAMED]) or "messages that are under way"
    more = f"; and {len(holders) - MOST_NAMED} more" if len(holders) > MOST_NAMED else ""
    logger.warning(
        "epoch %s of topology %r has not ended for %g s; it waits for %s%s",
        *(f"{epoch:,}", topology, seconds, named, more),
        extra=log_fields(topology),
    )


def _holders(tasks: Tasks) -> Iterator[str]:
    for bolt in tasks.all_bolts:
        if isinstance(bolt, CommitterTask) and bolt.is_due:
            yield f"{bolt.name}, which has the epoch before it in hand, in {bolt.code_in_use.place()}"
        elif bolt.restarting:
            yield f"{bolt.name}, which is being restarted"
        elif bolt.calls():
            yield f"{bolt.name}, in {bolt.code_in_use.place()}"
        elif bolt.holds_inputs:
            yield f"{bolt.name}, which holds inputs"
    for spout in tasks.all_spouts:
        waiting = len(spout.tracker.replays)
        if waiting:
            yield f"{waiting:,} messages of {spout.name}, whose replay is due later"
