"""The source of Kafka's topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Unpack, overload

from stormlet.connect.address import Address
from stormlet.connect.decoding import Received
from stormlet.connect.driver.options import SourceOptions, checked
from stormlet.connect.kafka.session import KafkaSession
from stormlet.connect.kafka.settings import (
    LOST_AFTER,
    Failures,
    GroupOptions,
    Security,
    client_settings,
    creating,
    secrets_of,
)
from stormlet.connect.secrets import Secret
from stormlet.connect.session import Capabilities, Session, Settles, SourceContext
from stormlet.connect.source import Source
from stormlet.errors import InvalidTopology

T = TypeVar("T")


def _is_pattern(topic: str) -> bool:
    return topic.startswith("^")


Option = str | int | float | bool | Secret

FETCHING = {"fetch.queue.backoff.ms": 20}
"""What ``client`` may change. A client that has fetched enough fetches no more for so long; by default a second, which
is longer than small messages last."""

OURS = {
    "group.id": "group",
    "group.protocol": "protocol",
    "enable.auto.commit": "the acks of trees",
    "enable.auto.offset.store": "the acks of trees",
    "auto.offset.reset": "start",
    "partition.assignment.strategy": "protocol",
}
"""Settings of the client that have another way here, with that way."""


class Topics(Source[T]):
    """A source of topics: ``Topics("kafka://k1,k2", ["events"], group="billing", as_=Event)``.

    Each task is a member of the group, and has some of the partitions. Of each partition it commits the position before
    which all messages are done. A partition that goes to another member is drained first.
    """

    @overload
    def __init__(
        self: Topics[Received],
        url: str | None,
        topics: Sequence[str],
        *,
        group: str,
        as_: None = None,
        start: Literal["earliest", "latest"] = ...,
        create: int | None = ...,
        protocol: Literal["classic", "consumer"] = ...,
        security: Security | None = ...,
        client: Mapping[str, Option] | None = ...,
        lost_after: float = ...,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        url: str | None,
        topics: Sequence[str],
        *,
        group: str,
        as_: type[T],
        start: Literal["earliest", "latest"] = ...,
        create: int | None = ...,
        protocol: Literal["classic", "consumer"] = ...,
        security: Security | None = ...,
        client: Mapping[str, Option] | None = ...,
        lost_after: float = ...,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    def __init__(
        self,
        url: str | None,
        topics: Sequence[str],
        *,
        group: str,
        as_: Any = None,
        start: Literal["earliest", "latest"] = "earliest",
        create: int | None = None,
        protocol: Literal["classic", "consumer"] = "classic",
        security: Security | None = None,
        client: Mapping[str, Option] | None = None,
        lost_after: float = LOST_AFTER,
        **options: Unpack[SourceOptions],
    ) -> None:
        """``topics`` are names, or patterns that begin with ``^``.

        ``start`` says where a group begins that has committed nothing. ``create`` makes a topic that is not there,
        with so many partitions, instead of failing the start. ``protocol`` is that of the group: ``"classic"`` with
        cooperative rebalances, or ``"consumer"``, which Kafka 4 has. ``client`` has further settings of
        librdkafka, of which a :class:`~stormlet.connect.secrets.Secret` does not show. ``lost_after``: seconds without
        any broker after which this member of the group is given up and health says so; until then the client itself
        tries again.

        Raises :class:`~stormlet.errors.InvalidTopology` for settings that would break what is promised.
        """
        super().__init__(url, as_=as_, **options)
        checked(GroupOptions(start=start, create=create, protocol=protocol, lost_after=lost_after))
        if isinstance(topics, str):
            raise InvalidTopology(f"topics={topics!r} must be a list, such as [{topics!r}]")
        self.topics = tuple(topics)
        self.start = start
        self.create = create
        self.protocol = protocol
        self.security = security or Security()
        self.client = dict(client or {})
        self.lost_after = lost_after
        self._group = group
        for name in self.client.keys() & OURS.keys():
            raise InvalidTopology(
                f"client={{{name!r}: ...}} is not open to change: {OURS[name]} decides that"
            )

    @property
    def capabilities(self) -> Capabilities:
        """The rules of Kafka."""
        return Capabilities(settles=Settles.PREFIX, has_lag=True)

    @property
    def reads(self) -> tuple[str, ...]:
        """The topics."""
        return self.topics

    @property
    def group(self) -> str:
        """The group."""
        return self._group

    @property
    def resumable(self) -> bool:
        """True unless messages may be emitted in another order than their partition's, or positions would be missing
        in the state."""
        is_ordered = self.settings.ordered_by is None
        return is_ordered and self.start == "earliest" and not any(map(_is_pattern, self.topics))

    @property
    def resume_advice(self) -> str:
        """The options that are in the way."""
        options = {
            "ordered_by=": self.settings.ordered_by is not None,
            'start="latest"': self.start != "earliest",
            "the pattern of topics": any(map(_is_pattern, self.topics)),
        }
        return f"leave out {' and '.join(name for name, is_given in options.items() if is_given)}, or state="

    async def begin(self, address: Address, context: SourceContext) -> Session:
        """Connect to Kafka."""
        failures = Failures(address, secrets_of(address, self.client), self.lost_after)
        common = client_settings(address, self.security, self.client, context.consumer)
        settings = {**FETCHING, **common, **self._consumer_settings()}
        session = KafkaSession(
            context,
            settings,
            self.topics,
            failures,
            from_end=self.start == "latest",
            create=creating(common, self.create),
        )
        return await session.connect()

    def _consumer_settings(self) -> dict[str, Any]:
        classic = {"partition.assignment.strategy": "cooperative-sticky"}
        return {
            "group.id": self._group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",  # of what is kept no longer, nothing more is passed over than is gone
            "enable.partition.eof": True,
            **(classic if self.protocol == "classic" else {"group.protocol": "consumer"}),
        }
