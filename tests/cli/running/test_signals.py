"""What Ctrl-C, SIGTERM and SIGHUP do while a run lasts."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from stormlet.cli.running.signals import SIGNALS, signals_handled_by, unignored


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    """Whatever the tests do with them."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in SIGNALS]


def test_signals_are_handled_meanwhile() -> None:
    """Afterwards they do again what they did before."""
    before = handlers()
    with signals_handled_by(signal.SIG_DFL):
        assert handlers() == [signal.SIG_DFL] * len(SIGNALS)
    assert handlers() == before


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As SIGINT is where a shell has started the process in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with signals_handled_by(signal.SIG_DFL):
        assert handlers() == [signal.SIG_IGN] + [signal.SIG_DFL] * (len(SIGNALS) - 1)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_handler_that_is_not_pythons_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not be put back."""
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    assert unignored() == ()
