"""The sink at Kafka's topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, Unpack

from stormlet.connect.address import Address
from stormlet.connect.driver.options import SinkOptions
from stormlet.connect.kafka.producer import KafkaSinkSession, Outgoing
from stormlet.connect.kafka.settings import Failures, Security, client_settings, secrets_of
from stormlet.connect.kafka.topics import Option
from stormlet.connect.session import ConnectContext, Item, SinkSession
from stormlet.connect.sink import Sink

T = TypeVar("T")


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
        security: Security | None = None,
        client: Mapping[str, Option] | None = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``topic`` may be a function of the value, as ``key`` and ``headers`` are. ``client`` has further settings of
        librdkafka, of which a :class:`~stormlet.connect.secrets.Secret` does not show."""
        super().__init__(url, **options)
        self.topic = topic
        self.key = key
        self.headers = headers
        self.origin_header = origin_header
        self.security = security or Security()
        self.client = dict(client or {})

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
        failures = Failures(address, secrets_of(address, self.client))
        settings = {
            "partitioner": "murmur2_random",  # that of Kafka's own client
            "message.timeout.ms": 0,  # it writes when the broker is there again, and nothing twice
            "linger.ms": 1,  # the values of one batch come at once
            **client_settings(address, self.security, self.client, context.consumer),
            "enable.idempotence": True,
        }
        topics = [self.topic] if isinstance(self.topic, str) else []
        return await KafkaSinkSession(settings, topics, failures, self.outgoing).connect()
