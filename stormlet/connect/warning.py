"""Warnings of a connector at its first connection, and not at each later one."""

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
            logger.warning(
                "%s: %s", context.component, words, extra=log_fields(context.topology, context.component)
            )

    return warn
