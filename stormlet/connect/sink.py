"""The base of sinks at brokers."""

from __future__ import annotations

from typing import Generic, TypeVar, Unpack

from stormlet.connect.address import Address
from stormlet.connect.decoding import encoded
from stormlet.connect.driver.options import SinkOptions, SinkSettings, sink_settings
from stormlet.connect.driver.sink import SinkBolt
from stormlet.connect.session import SinkContext, SinkSession
from stormlet.connect.twins import sink_session_of_twin
from stormlet.model.components import BatchBolt

T = TypeVar("T")


class Sink(Generic[T]):
    """A sink at a broker: ``topology.bolt("tell", sink, orders.shuffle())``. Derive a class for each kind of broker,
    with ``writes`` and ``begin``; each task of the bolt has a connection of its own."""

    def __init__(self, url: str | None = None, **options: Unpack[SinkOptions]) -> None:
        """``url`` may also be in the environment or the TOML file (:mod:`stormlet.connect.address`); ``options`` are
        those of :class:`~stormlet.connect.driver.options.SinkSettings`."""
        self.url = url
        self.settings: SinkSettings = sink_settings(options)
        self.least_pending = self.settings.size if "size" in options else 0
        """See :attr:`stormlet.model.components.BoltBase.least_pending`: batches of a size that was asked for fill."""

    @property
    def writes(self) -> str:
        """The name of the queue or topic that it writes to."""
        raise NotImplementedError(f"{type(self).__name__} must define writes")

    def encode(self, value: T) -> bytes:
        """Return the body for a value: bytes and text as they are, all else as JSON."""
        return encoded(value)

    async def begin(self, address: Address, context: SinkContext) -> SinkSession:
        """Connect to the broker."""
        raise NotImplementedError(f"{type(self).__name__} must define begin(self, address, context)")

    async def connect(self, address: Address, context: SinkContext) -> SinkSession:
        """Connect to the broker, or to the twin that stands for it in a test."""
        twin = sink_session_of_twin(self, address, context)
        return await (self.begin(address, context) if twin is None else twin)

    def __call__(self) -> BatchBolt[T, None]:
        """Make the bolt of one task."""
        return SinkBolt[T](self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.writes!r})"
