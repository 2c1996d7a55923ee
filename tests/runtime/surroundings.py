"""What a process and an event loop have only one of each, so that a library must leave it alone."""

from __future__ import annotations

import asyncio
import atexit
import builtins
import codecs
import decimal
import faulthandler
import gc
import locale
import logging
import os
import random
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

Reader = Callable[[], object]


def signals() -> object:
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    return handlers, blocked, signal.getitimer(signal.ITIMER_REAL)


def logs() -> object:
    """Every logger that is not as ``getLogger`` makes it; a library may add a NullHandler to its own."""
    loggers = {"": logging.getLogger(), **logging.getLogger().manager.loggerDict}
    found = {name: logger_state(each) for name, each in loggers.items() if isinstance(each, logging.Logger)}
    unusual = {name: state for name, state in found.items() if state != (0, [], [], True, False)}
    module: Any = logging
    classes = logging.getLoggerClass(), logging.getLogRecordFactory(), module._warnings_showwarning
    return unusual, logging.getLogger().manager.disable, logging.lastResort, classes


def logger_state(logger: logging.Logger) -> object:
    handlers = [each for each in logger.handlers if type(each) is not logging.NullHandler]
    return logger.level, handlers, list(logger.filters), logger.propagate, logger.disabled


def event_loop_policy() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return asyncio.get_event_loop_policy()


def garbage_collector() -> object:
    return gc.isenabled(), gc.get_threshold(), list(gc.callbacks), gc.get_debug(), gc.get_freeze_count()


def hooks() -> object:
    return (
        (sys.excepthook, sys.unraisablehook, sys.displayhook, sys.breakpointhook, threading.excepthook),
        (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()),
        (sys.get_coroutine_origin_tracking_depth(), sys.get_asyncgen_hooks()),
    )


def limits() -> object:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.getswitchinterval(), sys.getrecursionlimit(), sys.get_int_max_str_digits(), files


def warning_filters() -> object:
    return list(warnings.filters), warnings.showwarning, warnings.formatwarning


def locale_and_numbers() -> object:
    return locale.setlocale(locale.LC_ALL), repr(decimal.getcontext()), random.getstate()


def environment() -> object:
    mask = os.umask(0)
    os.umask(mask)
    return dict(os.environ), os.getcwd(), mask, os.getpriority(os.PRIO_PROCESS, 0)  # noqa: PTH109 as it is


def imports() -> object:
    return list(sys.path), list(sys.meta_path), list(sys.path_hooks), builtins.__import__, list(sys.argv)


def streams() -> object:
    return sys.stdin, sys.stdout, sys.stderr, codecs.lookup_error("strict")


def at_exit() -> object:
    module: Any = atexit
    return module._ncallbacks(), faulthandler.is_enabled()


def event_loop() -> object:
    loop: Any = asyncio.get_running_loop()
    own = loop.get_exception_handler(), loop.get_task_factory(), getattr(loop, "_default_executor", None)
    return id(loop), own, loop.slow_callback_duration, loop.get_debug()


def threads() -> object:
    return sorted(each.name for each in threading.enumerate())


def descriptors() -> object:
    """By number, what each open file descriptor leads to; the one that lists them is gone."""
    found = {}
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 numbers, not paths
        try:
            found[int(number)] = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
        except FileNotFoundError:
            continue
    return found


def tasks() -> object:
    return sorted(each.get_name() for each in asyncio.all_tasks())


ASPECTS: Mapping[str, Reader] = {
    each.__name__: each
    for each in (
        signals, logs, event_loop_policy, garbage_collector, hooks, limits, warning_filters, locale_and_numbers,
        environment, imports, streams, at_exit, event_loop, threads, descriptors, tasks,
    )
}  # fmt: skip

Snapshot = Mapping[str, object]


def take() -> Snapshot:
    """All of it, now; to be called in a running loop."""
    return {name: read() for name, read in ASPECTS.items()}


def changed(before: Snapshot) -> list[str]:
    """Which aspects are not as they were."""
    now = take()
    return [name for name in ASPECTS if now[name] != before[name]]
