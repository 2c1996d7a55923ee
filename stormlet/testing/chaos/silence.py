"""No log while faults are injected."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def silence() -> Generator[None]:
    """The engine tells of every injected failure, which is not what anybody wants to read."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("stormlet")]
    loggers = [(logger, logger.disabled) for logger in map(logging.getLogger, names)]
    try:
        for logger, _ in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in loggers:
            logger.disabled = disabled
