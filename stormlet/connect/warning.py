"""Warnings of a connector; most are for its first connection, and not for each later one."""

from __future__ import annotations

import logging
from collections.abc import Callable

from stormlet.connect.session import ConnectContext
from stormlet.report.failures import log_fields

logger = logging.getLogger("stormlet.connect")


def warnings(context: ConnectContext) -> Callable[[str], None]:
    """Return what logs a warning at the first connection of a task."""

    def warn(words: str) -> None:
        if context.connection == 1:
            log_warning(context, words)

    return warn


def log_warning(context: ConnectContext, words: str) -> None:
    """Log a warning, whichever connection it is."""
    fields = log_fields(context.topology, context.component)
    logger.warning("%s: %s", context.component, words, extra=fields)
