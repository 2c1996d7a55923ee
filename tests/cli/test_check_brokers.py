"""``stormlet check`` on sources and sinks: their brokers' rules beside the options of the topology."""

from __future__ import annotations

from typing import Any

import pytest

from stormlet import Topology
from stormlet.cli.inspecting.checks import findings
from stormlet.cli.inspecting.checks.brokers import longest_time
from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.connect import files, kafka, rabbitmq, redis
from stormlet.connect.source import Source
from stormlet.model.configuration import Configuration, configure

MQ = rabbitmq.Queue[bytes]("amqp://mq", "orders", as_=bytes)
STREAM = redis.Stream[bytes]("redis://r", "orders", group="g", as_=bytes)
LOG = kafka.Topics[bytes]("kafka://k", ["orders"], group="g", as_=bytes)


def ignore(value: object) -> None: ...


def reading(source: Source[Any], sink: Any = ignore, *, parallelism: int = 1, **options: Any) -> Topology:
    """From a broker to a sink."""
    topology = Topology("reading", **options)
    topology.bolt("sink", sink, topology.spout("orders", source, parallelism=parallelism).shuffle())
    return topology


def found(topology: Topology) -> list[Finding]:
    """As the command has them, which lays the options of bolts over those of spouts."""
    declared = topology.describe()
    description, _ = declared.configured(topology.configuration, "here")
    return findings(description)


def only(topology: Topology) -> Finding:
    (finding,) = found(topology)
    return finding


@pytest.mark.parametrize("source", [MQ, STREAM, LOG])
@pytest.mark.parametrize(
    "sink", [ignore, rabbitmq.Publish[bytes]("amqp://mq", exchange="done"), files.Write[bytes]("/data")]
)
def test_defaults_go_together(source: Source[Any], sink: Any) -> None:
    """For every kind of settlement."""
    assert found(reading(source, sink)) == []


def test_a_message_is_done_before_its_lease_is_given_up() -> None:
    """With all its attempts and the pauses between them."""
    finding = only(reading(STREAM, message_timeout=600.0))
    assert (finding.rule, finding.component) == ("held too long", "orders")
    assert finding.problem == (
        "a message of spout 'orders' may be under way for 1 h 15 min (message_timeout=600, max_attempts=5), and its "
        "lease is renewed for max_hold=3600 s only: then another source gets it"
    )
    assert found(reading(STREAM, message_timeout=600.0, max_attempts=3)) == []
    longer = redis.Stream[bytes]("redis://r", "orders", group="g", max_hold=7200.0)
    assert found(reading(longer, message_timeout=600.0)) == []


@pytest.mark.parametrize(
    ("timeout", "took"),
    [(None, "for ever (message_timeout=none,"), (300.0, "for 37 min 32 s (message_timeout=300,")],
)
def test_a_message_is_done_before_its_connection_is_closed(timeout: float | None, took: str) -> None:
    """Which RabbitMQ does after half an hour, so that it is given back before."""
    finding = only(reading(MQ, message_timeout=timeout))
    assert (finding.rule, took in finding.problem) == ("held too long", True)
    assert "one that is under way for 24 min 00 s is given back and comes again" in finding.problem


@pytest.mark.parametrize("source", [STREAM, LOG])
def test_a_message_may_take_for_ever(source: Source[Any]) -> None:
    """Where that is a choice that costs nobody anything."""
    assert found(reading(source, message_timeout=None)) == []


def test_everything_at_once_is_too_much() -> None:
    """Of a broker; an iterable has it anyway."""
    finding = only(reading(MQ, max_spout_pending=None))
    assert (finding.rule, finding.component) == ("boundless prefetch", "orders")
    topology = Topology("reading", max_spout_pending=None)
    topology.bolt("sink", ignore, topology.spout("orders", [1]).shuffle())
    assert found(topology) == []


@pytest.mark.parametrize(
    ("pending", "tasks", "fault"), [(9_999, 1, True), (5_000, 2, False), (10_000, 1, False)]
)
def test_a_batch_fills_with_what_may_be_pending(pending: int, tasks: int, fault: bool) -> None:
    """Of all tasks of the spouts above it together."""
    topology = reading(LOG, files.Write[bytes]("/data"), parallelism=tasks, max_spout_pending=pending)
    assert [(each.rule, each.component) for each in found(topology)] == ([("small batches", "sink")] * fault)


def test_sizes_that_nobody_asked_for_are_not_compared() -> None:
    """A sink takes what there is."""
    assert (
        found(reading(MQ, rabbitmq.Publish[bytes]("amqp://mq", exchange="done"), max_spout_pending=10)) == []
    )
    asked = reading(MQ, rabbitmq.Publish[bytes]("amqp://mq", exchange="done", size=20), max_spout_pending=10)
    assert [each.rule for each in found(asked)] == ["small batches"]


def test_a_sink_has_what_it_needs_pending() -> None:
    """Unless something else is said."""
    topology = reading(LOG, files.Write[bytes]("/data"))
    _, components = topology.describe().configured(topology.configuration, "here")
    assert components["orders"].max_spout_pending == 10_000


@pytest.mark.parametrize(
    ("options", "longest"),
    [
        ({"max_attempts": 1}, 45.0),
        ({"max_attempts": 3, "replay_delay": 1.0}, 3 * 45.0 + (1 + 2) * 1.25),
        ({"max_attempts": 3, "replay_delay": 10.0, "replay_delay_max": 12.0}, 3 * 45.0 + (10 + 12) * 1.25),
        ({"timeout_buckets": 2, "max_attempts": 1}, 60.0),
        ({"max_attempts": 1_001, "message_timeout": 1.0, "replay_delay": 1.0, "replay_delay_max": 1.0}, 1501.5 + 1250),
    ],
)  # fmt: skip
def test_the_longest_time_of_a_message(options: dict[str, Any], longest: float) -> None:
    """Timeouts are late by a bucket, pauses by their jitter."""
    assert longest_time(configure(Configuration(), options, "here")) == pytest.approx(longest)
