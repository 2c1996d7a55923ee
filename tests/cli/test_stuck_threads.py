"""Threads that keep the process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from stormlet.cli.running.stuck_threads import await_threads, tasks_of_threads


@pytest.fixture
def thread() -> Iterator[Callable[[str], threading.Event]]:
    """Starts a thread of this name, which ends when the event is set."""
    started: list[tuple[threading.Thread, threading.Event]] = []

    def start(name: str) -> threading.Event:
        done = threading.Event()
        made = threading.Thread(target=done.wait, name=name)
        made.start()
        started.append((made, done))
        return done

    yield start
    for made, done in started:
        done.set()
        made.join()


def test_they_are_known_by_the_task_that_they_work_for(thread: Callable[[str], threading.Event]) -> None:
    """Each task once, and no thread of others."""
    for name in ("b[0]_0", "b[0]_1", "a[1]_0", "c[0]_0", "ThreadPoolExecutor-0_0"):
        thread(name)
    assert tasks_of_threads({"a[1]", "b[0]", "d[0]"}) == ["a[1]", "b[0]"]


def test_nothing_is_said_of_threads_that_end(thread: Callable[[str], threading.Event]) -> None:
    """Nor of those that belong to nobody here."""
    said: list[str] = []
    thread("a[0]_0").set()
    thread("elsewhere_0")
    await_threads({"a[0]"}, said.append)
    assert said == []


def test_those_that_do_not_are_named_and_waited_for(thread: Callable[[str], threading.Event]) -> None:
    """User code cannot be cancelled there."""
    said: list[str] = []
    done = thread("a[0]_0")

    def say(text: str) -> None:
        said.append(text)
        done.set()

    await_threads({"a[0]"}, say, grace=0.01)
    assert said == ["waiting for user code in the threads of a[0] to return; Ctrl-C kills"]
    assert tasks_of_threads({"a[0]"}) == []
