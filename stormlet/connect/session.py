"""The face of connectors: what one must bring, and what it is given.

A connector is a :class:`~stormlet.connect.source.Source` or a :class:`~stormlet.connect.sink.Sink` with options, and a
session that talks to the broker. It decides nothing: what is asked for, settled, renewed, given back, and when a
connection is made again, all that is the driver's, which is the same for all of them.

The contract of a source's session, in the order of a life:

1. ``connect`` makes it. It raises :class:`~stormlet.errors.BrokerRefused` for what will not help to try again, else
   :class:`~stormlet.errors.ConnectionLost`.
2. One task of the driver calls ``receive`` again and again. It is never cancelled while the run goes on.
3. Another task calls ``settle``, and a third ``renew``, while ``receive`` waits.
4. Each of them raises :class:`~stormlet.errors.ConnectionLost` when the connection is lost: then the session is closed,
   and ``connect`` is called for another one.
5. At the end ``interrupt`` asks a ``receive`` that waits to return; then come the last ``settle`` and ``close``.

``OSError``, ``TimeoutError`` and ``EOFError`` count as a lost connection too. So does
:class:`~stormlet.errors.BrokerRefused`: a broker that takes connections and refuses what they are for is given up, as
one that refuses the connection. Whatever else a session raises is a fault of the connector, and the spout dies of it as
of any exception of user code (law C5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping, Sequence
from enum import Enum
from random import Random
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec

from stormlet.core.settlement.prefix import Front, Prefix


class Settles(Enum):
    """The two ways in which a broker is told that messages are done."""

    EACH = "each"
    """Each by its own receipt."""
    PREFIX = "prefix"
    """All up to a position, by partition."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a broker, known before it is connected to."""

    settles: Settles = Settles.EACH
    lease: float | None = None
    """Seconds after which a receipt runs out unless it is renewed; None: it lasts as long as the connection. Not where
    prefixes are settled, nor is ``most_held``."""
    most_held: float | None = None
    """Seconds after which the broker closes a connection by which a message came that is not settled yet; None: it
    waits for ever, or there are leases. The message is given back before that."""
    receipts_survive: bool = False
    """True if receipts stay valid when the connection is lost: they belong to the message, not to the channel."""
    can_return: bool = False
    """True if a message can be given back without a penalty, such as an increased delivery count."""
    has_dead_letters: bool = False
    """True if messages that are given up are to be rejected, so that the broker keeps them; otherwise the dead letters
    of the run have them, and the broker is told that they are done. Never both. Not where prefixes are settled."""
    is_finite: bool = False
    """True if ``receive`` raises :class:`~stormlet.errors.EndOfStream` when there is no more."""
    has_lag: bool = False
    """True if ``lag`` says something."""


NO_HEADERS: Final[Mapping[str, str | bytes]] = MappingProxyType({})
"""Those of a message without any."""


# The garbage collector does not look into these, as thousands that live for a moment would have it run all the time.
class Delivery(msgspec.Struct, kw_only=True, gc=False):
    """One message, as a session has received it.

    The garbage collector does not look into it. A session that keeps deliveries whose receipts lead back to it, as by
    the client's own messages, lets go of them when it is closed; or it stays in memory for ever, with all of them.
    """

    body: bytes
    receipt: Any = None
    """For the session alone: what ``settle`` and ``renew`` get back. Unused where prefixes are settled."""
    name: str = ""
    """The name of the message at the broker, the same whenever it is delivered, such as ``events[2]@17``; empty if
    there is none. It is the origin of the tree, how a redelivery is known, and what the message id begins with."""
    key: str | bytes | None = None
    headers: Mapping[str, str | bytes] = NO_HEADERS
    """Untrusted, as the body is."""
    deliveries: int = 1
    """Times that it was delivered, this one included, as far as the broker counts."""
    published: float | None = None
    """Time of publication, in seconds since 1970."""
    place: Prefix | None = None
    """Its partition, as :meth:`SourceContext.assigned` has given it; needed where prefixes are settled, and None
    elsewhere."""
    position: Any = None
    """Its position in the partition: what is committed when all up to here is done."""


class Rejection(msgspec.Struct, frozen=True):
    """A message that was given up, for a broker with dead letters of its own."""

    receipt: Any
    reason: str
    """The last failure, in words."""


class Settlement(msgspec.Struct):
    """All that a broker is to be told at once."""

    done: list[Any] = msgspec.field(default_factory=list[Any])
    """Receipts of messages that are done."""
    returned: list[Any] = msgspec.field(default_factory=list[Any])
    """Receipts of messages to be given back without a penalty, soon to be delivered to anybody."""
    rejected: list[Rejection] = msgspec.field(default_factory=list[Rejection])
    """Messages for the broker's own dead letters."""
    fronts: list[tuple[Prefix, Front]] = msgspec.field(default_factory=list[tuple[Prefix, Front]])
    """Positions to commit, by partition. A session passes over those that are revoked meanwhile: the broker might take
    them, and so undo what the next owner has committed (law R2)."""

    def __bool__(self) -> bool:
        return bool(self.done or self.returned or self.rejected or self.fronts)

    def __len__(self) -> int:
        """Receipts and fronts in it."""
        return len(self.done) + len(self.returned) + len(self.rejected) + len(self.fronts)


class Session(Protocol):
    """A source's connection to a broker."""

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - the broker's own
        """Return 1 to ``most`` messages, as soon as there are any; none after ``timeout`` seconds or after
        :meth:`interrupt`. What is returned must not be lost by whatever comes next.

        A broker that pushes is held back by :attr:`SourceContext.credit`: what it has pushed and was not returned yet
        may wait in the session.

        Raises :class:`~stormlet.errors.ConnectionLost`, and :class:`~stormlet.errors.EndOfStream` at the end of a
        finite source.
        """
        ...

    def interrupt(self) -> None:
        """Have a :meth:`receive` that waits, and all later ones, return what is there at once."""
        ...

    async def settle(self, settlement: Settlement) -> int:
        """Tell the broker, and return when it knows. Returns the number of receipts that it did not take any more, as
        their lease has run out.

        Raises :class:`~stormlet.errors.ConnectionLost`, after which nothing is known of any of it, and
        :class:`~stormlet.errors.NotSettled` if the same is to be told again later.
        """
        ...

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        """Begin these leases anew; return those that are lost, or receipts equal to them, as the broker has given them
        to somebody else. Called only if there are leases."""
        ...

    async def pause(self, places: Collection[Prefix]) -> None:
        """Receive nothing more of these partitions. Called only where prefixes are settled."""
        ...

    async def resume(self, places: Collection[Prefix]) -> None:
        """Receive messages of these partitions again."""
        ...

    async def lag(self) -> Mapping[str, int]:
        """Return the number of messages that the broker has and does not know to be done, by partition; that of a queue
        is under its name. Called only if there is any."""
        ...

    async def close(self) -> None:
        """End the connection. Messages that were delivered and not settled come again, to this source or another. What
        was pushed and is not returned yet is to be let go of. Must not raise for a connection that is lost."""
        ...


class ConnectContext(Protocol):
    """The driver, as a source or a sink that connects sees it."""

    @property
    def topology(self) -> str:
        """The name of the topology."""
        ...

    @property
    def component(self) -> str:
        """The id of the spout or bolt."""
        ...

    @property
    def task_index(self) -> int:
        """The place of this task among those of its component, from 0."""
        ...

    @property
    def parallelism(self) -> int:
        """The number of these tasks."""
        ...

    @property
    def consumer(self) -> str:
        """A name for this task that is the same in each run on this host: ``host-component-index``."""
        ...

    @property
    def connection(self) -> int:
        """The number of this connection, from 1."""
        ...

    @property
    def random(self) -> Random:
        """Randomness of this task, by the seed of the run (law L16)."""
        ...


class SourceContext(ConnectContext, Protocol):
    """The driver, as a source that connects sees it."""

    @property
    def credit(self) -> int:
        """Messages that may be delivered and not settled at a time: the prefetch of brokers that push."""
        ...

    @property
    def resume(self) -> Mapping[str, str] | None:
        """With ``state=``, for a source that is ``resumable``: the name of the last message of each partition that was
        emitted, behind which the session begins, and which counts instead of what was committed. None otherwise."""
        ...

    def assigned(self, name: str, most_uncommitted: int = 10_000) -> Prefix:
        """A partition belongs to this session from now on. Its deliveries carry what this returns."""
        ...

    def revoking(self, places: Collection[Prefix]) -> Awaitable[Sequence[tuple[Prefix, Front]]]:
        """Partitions are about to be given to somebody else: await this, commit the fronts that it returns, and only
        then let go (law R2).

        What is buffered of them is dropped. It waits for the trees that are under way, for ``revoke_timeout`` seconds
        at most. When it returns, or is cancelled, these partitions are revoked, and whatever is left is withdrawn.
        """
        ...

    def lost(self, places: Collection[Prefix]) -> None:
        """Partitions belong to somebody else already: they are revoked, and nothing of them is committed any more."""
        ...


class SinkContext(ConnectContext, Protocol):
    """The driver, as a sink that connects sees it."""

    def away(self, error: str) -> None:
        """The broker takes nothing, and the session tries again by itself; ``error`` says why. Health is not ready
        until :meth:`back`."""
        ...

    def back(self) -> None:
        """The broker takes values again."""
        ...


class Item(msgspec.Struct, frozen=True):
    """One value for a sink."""

    value: Any
    origin: Any = None
    """The origin of its message: the same in every attempt, as a part of a key by which a broker or its reader knows
    what has come twice."""
    attempt: int = 1


class Written(msgspec.Struct, frozen=True):
    """The outcome of one item of a sink."""

    reason: str = ""
    """The reason that it was not written; empty: it was, and the broker has said so."""
    permanent: bool = False
    """True if no further attempt can help: its message goes to the dead letters (law S6). Otherwise it is replayed."""
    later: bool = False
    """True if the broker has no room for it now: it is neither failed nor replayed, but written again, for as long as
    that takes, and what is behind it waits (law R10). Not for what the broker may never take, or has in part."""


DONE = Written()
"""It was written, and the broker has said so."""


class SinkSession(Protocol):
    """A sink's connection to a broker."""

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Write these; return what became of each when the broker has said so.

        Raises :class:`~stormlet.errors.ConnectionLost`, after which nothing is known of any of them: they are all
        written again, by another session.
        """
        ...

    async def close(self) -> None:
        """End the connection; whatever is not confirmed is written again. Must not raise for one that is lost."""
        ...
