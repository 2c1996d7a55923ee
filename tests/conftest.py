"""What all tests share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import jvm
from tests.slow import in_process, is_slow, is_slow_path

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent

jvm.use_in_spark()

# In CI Hypothesis chooses a profile of its own: no deadline, and the same examples every time.
if "CI" not in os.environ:
    settings.register_profile("stormlet", deadline=None)
    settings.load_profile("stormlet")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With ``-n``, a worker takes a file at a time."""
    from tests.scheduling import FileByFile

    return FileByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """With ``-n auto``, some workers more than cores."""
    from tests.scheduling import count_workers

    return count_workers()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave slow files out of the fast run: to import Spark alone takes seconds."""
    if config.option.markexpr == "not slow" and is_slow_path(collection_path.relative_to(HERE)):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests, before ``-m`` chooses among all."""
    for item in items:
        if is_slow(item):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that is not marked slow starts no process."""
    if item.get_closest_marker("slow"):
        return (yield)
    with in_process(item):
        return (yield)


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> Iterator[None]:
    """Ctrl-C is heard, here and in child processes, also where a shell has started the suite with SIGINT ignored, as
    it does in the background."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


UNTRACED = (
    "connect/test_planted_bugs.py",
    "connect/test_price.py",
    "connect/test_soak.py",
    "epochs/test_planted_bugs.py",
    "epochs/test_simulated.py",
    "fuzz",
    "law",
    "oracle",
    "readme",
    "runtime/run/test_bottlenecks.py",
    "runtime/test_year.py",
)
"""Tests that take up to five times as long with coverage, and run little that others do not."""


@pytest.fixture(autouse=True, scope="session")
def _children_are_untraced() -> None:
    """Coverage is of this process, not of those that it starts."""
    os.environ.pop("COVERAGE_PROCESS_START", None)


@pytest.fixture(autouse=True)
def _untraced(request: pytest.FixtureRequest) -> Iterator[None]:
    """Coverage is off in some files, and where a marker says so."""
    marked = request.node.get_closest_marker("untraced") is not None
    path = request.path.relative_to(HERE)
    if "coverage" not in sys.modules or not (marked or any(map(path.is_relative_to, UNTRACED))):
        yield
        return
    from coverage import Coverage

    tracing = Coverage.current()
    if tracing is not None:
        tracing.stop()
    yield
    if tracing is not None:
        tracing.start()


@pytest.fixture(autouse=True)
def _forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test has imported from files that it wrote is not there for the next one."""
    yield
    written = str(tmp_path_factory.getbasetemp())
    sys.path[:] = [folder for folder in sys.path if not folder.startswith(written)]
    for name, module in list(sys.modules.items()):
        places = (getattr(module, "__file__", None), *getattr(module, "__path__", ()))
        if any(str(place).startswith(written) for place in places):
            del sys.modules[name]
