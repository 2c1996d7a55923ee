"""The conduct of runs on Spark towards their session, and the thread that they are called in."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from stormlet import DeadLetter
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.spark.engine.passage.conduct import SETTINGS, cancelled, hand_over, settings

NAME = next(iter(SETTINGS))


class Conf:
    """The settings of a session."""

    def __init__(self) -> None:
        self.values = {NAME: "mine"}

    def get(self, name: str, default: str | None) -> str | None:
        return self.values.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.values[name] = value

    def unset(self, name: str) -> None:
        del self.values[name]


class Session:
    """A session that has nothing but settings."""

    def __init__(self, of_jvm: str) -> None:
        self._jsparkSession = of_jvm
        self.conf = Conf()


@pytest.fixture
def session(request: pytest.FixtureRequest) -> Any:
    return Session(request.node.name)


def test_settings_are_put_back(session: Any) -> None:
    """Those that were not set before are unset."""
    with settings(session):
        assert session.conf.values == SETTINGS
    assert session.conf.values == {NAME: "mine"}


def test_the_last_of_several_runs_puts_settings_back(session: Any) -> None:
    """The first one that ends must not take them from the others."""
    first, second = settings(session), settings(session)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert session.conf.values == SETTINGS
    second.__exit__(None, None, None)
    assert session.conf.values == {NAME: "mine"}


def test_a_server_that_is_gone_is_asked_for_nothing() -> None:
    """Spark's client would try each call for ten minutes."""
    gone: Any = Session("of a server")
    gone.addTag = gone.removeTag = lambda tag: None

    def run() -> None:
        with cancelled(gone), settings(gone):
            gone.conf.set = gone.conf.unset = gone.interruptTag = pytest.fail
            raise RuntimeError("<_Error of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE")

    with pytest.raises(RuntimeError, match="UNAVAILABLE"):
        run()


def test_letters_are_handed_over_where_a_loop_runs() -> None:
    """A notebook has one in the thread that its cells run in."""
    taken: list[DeadLetter] = []

    async def take(letter: DeadLetter) -> None:
        await asyncio.sleep(0)
        taken.append(letter)

    async def cell() -> None:
        hand_over([letter], take)

    failure = Failure(FailureKind.TIMEOUT)
    letter = DeadLetter("lines", "a", 0, 1, failure, None, (failure,))
    asyncio.run(cell())
    assert taken == [letter]


def test_the_future_of_a_thread_is_waited_for() -> None:
    """Its error is the sink's (law S6)."""
    failed: Future[None] = Future()
    failed.set_exception(OSError("the disk is full"))
    failure = Failure(FailureKind.TIMEOUT)
    letter = DeadLetter("lines", "a", 0, 1, failure, None, (failure,))
    with pytest.raises(OSError, match="disk is full"):
        hand_over([letter], lambda _: failed)
