"""A queue, stream or table of a broker, as the tests that all brokers share need it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from stormlet.connect.sink import Sink
from stormlet.connect.source import Source


class Place(ABC):
    """A client that fills a place of the test's own, and looks into it. Sources of it, and a sink beside it, need no
    client: they are made in other processes, too."""

    has_leases: ClassVar[bool] = False
    """Sources have the option ``lease``."""
    forgets: ClassVar[int] = 0
    """Messages that a broker may have taken for done and does not know of when it was killed."""
    keeps_once: ClassVar[bool] = True
    """The sink writes nothing twice, by an id or a key."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.name = name

    @abstractmethod
    async def __aenter__(self) -> Any: ...

    @abstractmethod
    async def __aexit__(self, *_: object) -> None: ...

    @abstractmethod
    async def fill(self, *bodies: str) -> None:
        """Add messages; the place is made if it is not there."""

    @abstractmethod
    async def undone(self) -> int:
        """The number of messages that the broker does not know to be done."""

    @abstractmethod
    def through(self, port: int) -> str:
        """The URL of a proxy before the broker, with heartbeats if there are any."""

    @abstractmethod
    def source(self, *, url: str = "", **options: Any) -> Source[Any]:
        """A source of the place."""

    @abstractmethod
    def sink(self, *, url: str = "") -> Sink[str]:
        """A sink for numbers, to a place beside this one."""

    @abstractmethod
    async def make_outputs(self) -> None:
        """Make the place beside this one, empty."""

    @abstractmethod
    async def outputs(self) -> list[str]:
        """What the sink has written."""
