"""The log of a run, on standard error."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from stormlet.cli.report import RunFormatter

LogLevel = Literal["debug", "info", "warning", "error"]

ENGINE = str(Path(__file__).parents[2] / "runtime")


@contextmanager
def logging_to_standard_error(level: LogLevel | None, *, quiet: bool) -> Generator[None]:
    """Unless the user's file has set logging up. A ``level`` that was asked for holds in any case; the
    default is warnings, errors if ``quiet``."""
    root = logging.getLogger()
    before = root.level
    wanted = level or ("error" if quiet else None)
    if wanted is not None:
        root.setLevel(wanted.upper())
    handler = logging.StreamHandler()
    handler.setFormatter(RunFormatter("%(levelname)s %(name)s: %(message)s"))
    ours = [] if root.handlers else [handler]
    for each in ours:
        root.addHandler(each)
    logging.getLogger("asyncio").addFilter(is_not_ours)
    try:
        yield
    finally:
        logging.getLogger("asyncio").removeFilter(is_not_ours)
        for each in ours:
            root.removeHandler(each)
        root.setLevel(before)


def is_not_ours(record: logging.LogRecord) -> bool:
    """Whether a record of asyncio tells more than the engine does, which in debug mode says itself what has held the
    loop, and which component."""
    slow = str(record.msg).startswith("Executing ") and isinstance(record.args, tuple)
    return not (slow and ENGINE in str(record.args))
