"""A stream on Spark that the command line runs."""

from __future__ import annotations

import signal

import pytest

from stormlet import Topology
from stormlet.cli.running.batch import BatchOptions
from stormlet.cli.running.epochs import StreamSession
from stormlet.cli.running.outcome import Outcome


def test_an_interrupted_start_is_a_cancelled_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a batch, so that --json-summary has its line."""
    pytest.importorskip("pyspark")
    monkeypatch.setattr("stormlet.spark.stream_on_spark", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    result = StreamSession(Topology("words"), BatchOptions({}), None).run()
    assert (result.outcome, result.signal, result.exit_code) == (Outcome.CANCELLED, signal.SIGINT, 130)
