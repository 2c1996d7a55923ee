"""The sink at Kafka's topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Unpack

from stormlet.connect.address import Address
from stormlet.connect.driver.options import SinkOptions, checked
from stormlet.connect.kafka.producer import KafkaSinkSession, Outgoing
from stormlet.connect.kafka.settings import (
    LOST_AFTER,
    ClientOptions,
    Failures,
    Security,
    client_settings,
    creating,
    secrets_of,
)
from stormlet.connect.kafka.topics import Option
from stormlet.connect.session import ConnectContext, Item, SinkSession
from stormlet.connect.sink import Sink

T = TypeVar("T")


def producer_settings(common: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that all producers have in common."""
    return {
        "partitioner": "murmur2_random",  # that of Kafka's own client
        "linger.ms": 1,  # the values of one batch come at once
        **common,
        "enable.idempotence": True,
    }


class Produce(Sink[T]):
    """A sink at a topic: ``Produce("kafka://k1,k2", "invoices", key=lambda invoice: invoice.shop)``.

    A value is done when all replicas in sync have it. Values with equal keys go to the same partition, the one to which
    Kafka's own client brings them, in the order of their first attempts. A replay writes a value again: the header
    ``stormlet-origin`` is equal then.
    """

    def __init__(
        self,
        url: str | None,
        topic: str | Callable[[T], str],
        *,
        key: Callable[[T], str | bytes | None] | None = None,
        headers: Callable[[T], Mapping[str, str | bytes]] | None = None,
        origin_header: str | None = "stormlet-origin",
        create: int | None = None,
        security: Security | None = None,
        client: Mapping[str, Option] | None = None,
        lost_after: float = LOST_AFTER,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``topic`` may be a function of the value, as ``key`` and ``headers`` are. ``create`` makes a topic that is
        not there, with so many partitions, instead of failing the start. ``client`` has further settings of
        librdkafka, of which a :class:`~stormlet.connect.secrets.Secret` does not show. ``lost_after``: seconds without
        any broker after which this producer is given up and health says so; until then the client itself tries again,
        and writes nothing twice."""
        super().__init__(url, **options)
        checked(ClientOptions(create=create, lost_after=lost_after))
        self.topic = topic
        self.key = key
        self.headers = headers
        self.origin_header = origin_header
        self.create = create
        self.security = security or Security()
        self.client = dict(client or {})
        self.lost_after = lost_after

    @property
    def writes(self) -> str:
        """The topic."""
        return self.topic if isinstance(self.topic, str) else "(by value)"

    def outgoing(self, item: Item) -> Outgoing:
        """Return the message for a value."""
        value: T = item.value
        headers = {} if self.headers is None else dict(self.headers(value))
        if self.origin_header is not None and item.origin is not None:
            headers[self.origin_header] = str(item.origin)
        topic = self.topic if isinstance(self.topic, str) else self.topic(value)
        return Outgoing(topic, self.encode(value), None if self.key is None else self.key(value), headers)

    async def begin(self, address: Address, context: ConnectContext) -> SinkSession:
        """Connect to Kafka."""
        failures = Failures(address, secrets_of(address, self.client), self.lost_after)
        common = client_settings(address, self.security, self.client, context.consumer)
        settings = {
            "message.timeout.ms": 0,  # it writes when the broker is there again, and nothing twice
            **producer_settings(common),
        }
        topics = [self.topic] if isinstance(self.topic, str) else []
        create = creating(common, self.create)
        return await KafkaSinkSession(settings, topics, failures, self.outgoing, create).connect()
