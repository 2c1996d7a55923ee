"""Values that an option of a connector cannot have are refused where they are written, by its name."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stormlet import InvalidTopology, StartFailed, Topology
from stormlet.connect import files, http, kafka, nats, postgres, rabbitmq, redis
from stormlet.connect.address import read_address
from stormlet.connect.secrets import Secret
from stormlet.errors import BrokerRefused
from stormlet.testing import Simulation
from stormlet.testing.brokers import twin
from tests.connect.sessions import context

HERE = Path("here")
queue: Callable[..., Any] = partial(rabbitmq.Queue, "amqp://mq", "orders")
topics: Callable[..., Any] = partial(kafka.Topics, "kafka://k1", ["orders"], group="billing")
produce: Callable[..., Any] = partial(kafka.Produce, "kafka://k1", "charges")
tail: Callable[..., Any] = partial(files.Tail, HERE / "log", bookmark=HERE / "mark")
lines: Callable[..., Any] = partial(files.Lines, HERE, bookmark=HERE / "mark")
add: Callable[..., Any] = partial(redis.Add, "redis://r", "charges")
publish: Callable[..., Any] = partial(nats.Publish, "nats://n", "charges.new")
upsert: Callable[..., Any] = partial(postgres.Upsert, "postgresql://db/shop", "charges")
put: Callable[..., Any] = partial(postgres.Put, "postgresql://db/shop", "charges")
post: Callable[..., Any] = partial(http.Post, "http://shop")

WRONG: list[tuple[Callable[..., Any], str, list[Any]]] = [
    (queue, "consumer_timeout", [0, -1.0, math.nan, "1800"]),
    (queue, "rejects", ["no", 1, None]),
    (queue, "unique_ids", ["no", 1, None]),
    (topics, "start", ["newest", None]),
    (topics, "protocol", ["cooperative", None]),
    (topics, "create", [0, -1, 1.5, "4", True]),
    (topics, "lost_after", [0, -1.0, math.nan, "45", None]),
    (produce, "create", [0, "4"]),
    (produce, "lost_after", [0, math.nan]),
    (tail, "start", ["End", None]),
    (tail, "poll", [0, -1, math.nan, "1", None]),
    (tail, "linger", [-1, math.nan, "1", None]),
    (lines, "format", ["CSV", None]),
    (lines, "poll", [0, math.nan]),
    (lines, "pattern", [3]),
    (lines, "follow", ["no", 1]),
    (add, "max_length", [0, -1, 1.5, "10"]),
    (add, "body", [None, 3]),
    (add, "insecure", ["no"]),
    (publish, "message_id", ["order", 3]),
    (publish, "create", [True, ["CHARGES"]]),
    (publish, "insecure", ["no"]),
    (upsert, "key", ["id", b"id"]),
    (upsert, "columns", ["id"]),
    (upsert, "insecure", ["no"]),
    (put, "create", ["no", 1]),
    (post, "method", [None, 3]),
    (post, "content_type", [None]),
    (post, "insecure", ["no"]),
]


@pytest.mark.parametrize(
    ("make", "name", "value"), [(make, name, value) for make, name, values in WRONG for value in values]
)
def test_what_an_option_cannot_be_is_refused(make: Callable[..., Any], name: str, value: object) -> None:
    """Otherwise a misspelt word was another choice, in silence, and a number failed long after."""
    make()
    with pytest.raises(InvalidTopology, match=f"^{name}"):
        make(**{name: value})


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (queue, {"consumer_timeout": None, "rejects": True, "unique_ids": True}),
        (topics, {"start": "latest", "protocol": "consumer", "create": 4, "lost_after": 5}),
        (tail, {"start": "end", "poll": 1, "linger": 0}),
        (lines, {"format": "csv", "pattern": "*.csv", "follow": True, "poll": 0.5}),
        (add, {"max_length": 10, "body": "b", "ca_file": HERE, "insecure": True}),
        (publish, {"message_id": "origin", "create": "CHARGES", "ca_file": HERE}),
        (publish, {"message_id": str}),
        (upsert, {"key": ("id",), "columns": ["id", "what"]}),
        (put, {"create": True}),
        (post, {"method": "PUT", "content_type": "text/plain", "ca_file": HERE}),
    ],
)
def test_what_an_option_can_be_is_taken(make: Callable[..., Any], options: dict[str, Any]) -> None:
    """Words, whole numbers of seconds, paths, functions, any sequence of names."""
    make(**options)


@pytest.mark.asyncio
@pytest.mark.parametrize("make", [topics, produce])
@pytest.mark.parametrize(
    ("client", "words"),
    [
        ({"nonsense": 1}, 'No such configuration property: "nonsense"'),
        ({"socket.timeout.ms": "soon"}, 'Invalid value for configuration property "socket.timeout.ms"'),
        ({"debug": Secret("hunter2")}, r'Invalid value "\*\*\*" for configuration property "debug"'),
        ({"stats_cb": 5}, "client=: expected stats_cb property as a callable"),
    ],
    ids=["name", "value", "secret", "type"],
)
async def test_a_setting_that_the_client_of_kafka_does_not_take_fails_the_start(
    make: Callable[..., Any], client: dict[str, Any], words: str
) -> None:
    """In words, without the secret that one may be."""
    with pytest.raises(BrokerRefused, match=f"kafka://k1: {words}") as refused:
        await make(client=client).connect(read_address("kafka://k1", where="here"), context())
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            redis.Stream("redis://r", "orders", group="billing", lease=7200),
            "a lease of 7200 s is longer than max_hold=3600, for which a message is held; raise max_hold",
        ),
        (
            nats.Stream("nats://n", "ORDERS", consumer="billing", settle_every=31),
            "settle_every=31 is too long for a lease of 30 s, which runs out meanwhile: messages that are done come",
        ),
    ],
    ids=["max_hold", "settle_every"],
)
async def test_what_a_lease_does_not_allow_fails_the_start(source: Any, words: str, sim: Simulation) -> None:
    """Messages would come again and again: a lease is renewed no more when its message is done."""
    topology = Topology("leased")
    topology.spout("orders", source)
    with twin(source.url), pytest.raises(StartFailed, match=words):
        async with topology.run():
            await sim.advance(seconds=1)
