"""The base of sources at brokers."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar, Unpack

from stormlet.connect.address import Address
from stormlet.connect.decoding import decoder
from stormlet.connect.driver.options import SourceOptions, SourceSettings, source_settings
from stormlet.connect.driver.resumable import ResumableSpout
from stormlet.connect.driver.spout import SourceSpout
from stormlet.connect.session import Capabilities, Session, Settles, SourceContext
from stormlet.connect.twins import session_of_twin, twin_of
from stormlet.errors import BrokerRefused
from stormlet.model.components import Spout

T = TypeVar("T")


class Source(Generic[T]):
    """A source at a broker: ``topology.spout("orders", source)``. Derive a class for each kind of broker, with
    ``capabilities``, ``reads`` and ``begin``; each task of the spout has a connection of its own.

    The values are of the type ``as_``, or :class:`~stormlet.connect.decoding.Received` without one. A body that cannot
    be decoded is a dead letter, with its bytes.
    """

    needs_acks: ClassVar[bool] = True
    lets_go: ClassVar[bool] = True
    """See :attr:`stormlet.model.traits.SpoutTraits.lets_go`."""

    single_task_reason: ClassVar[str] = (
        "ordered_by= would keep the order in each task alone, as the broker gives messages of one key to all of them"
    )
    """See :attr:`stormlet.model.traits.SpoutTraits.single_task_reason`."""

    @property
    def single_task(self) -> bool:
        """True if its tasks could not keep an order together (law R7). A connector of a broker that gives all messages
        of one key to one consumer may know better."""
        return self.settings.ordered_by is not None and self.capabilities.settles is Settles.EACH

    @property
    def resumable(self) -> bool:
        """True if its sessions can begin behind a given message of each partition
        (:attr:`~stormlet.connect.session.SourceContext.resume`), so that a topology with ``state=`` may have it. Names
        of messages have the form ``partition@position`` then."""
        return False

    @property
    def resume_advice(self) -> str:
        """See :attr:`stormlet.model.traits.SpoutTraits.resume_advice`."""
        return "it goes on by what its broker was told, and cannot begin elsewhere; leave out state="

    def __init__(self, url: str | None = None, *, as_: Any = None, **options: Unpack[SourceOptions]) -> None:
        """``url`` may also be in the environment or the TOML file (:mod:`stormlet.connect.address`); ``options`` are
        those of :class:`~stormlet.connect.driver.options.SourceSettings`."""
        self.url = url
        self.as_ = as_
        self.settings: SourceSettings = source_settings(options)
        self.outputs: Any = as_ if isinstance(as_, type) and as_ not in (str, bytes) else None
        """The record type of the stream, as the builder asks for it."""
        self.decode = decoder(as_, self.settings.encoding)

    @property
    def capabilities(self) -> Capabilities:
        """The rules of the broker."""
        raise NotImplementedError(f"{type(self).__name__} must define capabilities")

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of queues or topics that it reads."""
        raise NotImplementedError(f"{type(self).__name__} must define reads")

    @property
    def group(self) -> str:
        """The group whose members share the messages; empty if all do who read the same queue."""
        return ""

    async def begin(self, address: Address, context: SourceContext) -> Session:
        """Connect to the broker."""
        raise NotImplementedError(f"{type(self).__name__} must define begin(self, address, context)")

    async def connect(self, address: Address, context: SourceContext) -> Session:
        """Connect to the broker, or to the twin that stands for it in a test."""
        if context.resume is not None and twin_of(address) is not None:
            raise BrokerRefused(
                f"{address}: a twin does not begin where a state says; leave out state= here, or take the broker"
            )
        twin = session_of_twin(self, address, context)
        return await (self.begin(address, context) if twin is None else twin)

    def __call__(self) -> Spout[T]:
        """Make the spout of one task."""
        return ResumableSpout[T](self) if self.resumable else SourceSpout[T](self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.reads))})"
