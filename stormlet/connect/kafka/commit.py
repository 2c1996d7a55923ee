"""The committer at a topic of Kafka: exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from stormlet.connect.address import found_address
from stormlet.connect.driver.context import consumer_name
from stormlet.connect.kafka.produce import Produce
from stormlet.connect.kafka.settings import Failures, Security, client_settings, creating, secrets_of
from stormlet.connect.kafka.topics import Option
from stormlet.connect.kafka.transactions import Transactions
from stormlet.connect.secrets import Secret
from stormlet.connect.session import Item
from stormlet.connect.twins import EpochWriter, twin_of
from stormlet.core.state.outgoing import Epoch
from stormlet.model.components import TaskContext
from stormlet.model.state.committers import Committer, CommitterFactory, RowSpec

T = TypeVar("T")


class Commit(CommitterFactory, Generic[T]):
    """A committer at a topic: ``Commit("kafka://k1,k2", "charges", Charge, key=lambda charge: charge.shop)``.

    The rows of an epoch are written in one transaction, with a note of the epoch, so that an epoch which comes again is
    passed over: who reads with ``isolation.level=read_committed`` has each row once (law X9).
    """

    def __init__(
        self,
        url: str | None,
        topic: str,
        kind: type[T],
        *,
        key: Callable[[T], str | bytes | None] | None = None,
        headers: Callable[[T], Mapping[str, str | bytes]] | None = None,
        transactional_id: str = "",
        create: int | None = None,
        security: Security | None = None,
        client: Mapping[str, Option] | None = None,
        password: Secret | None = None,
    ) -> None:
        """``kind`` is the type of the rows. ``transactional_id`` is a name that nobody else has at this cluster, by
        default ``topology/component``; the note is kept in the group of that name. The other options are those of
        :class:`~stormlet.connect.kafka.Produce`."""
        self.produce: Produce[T] = Produce(
            url,
            topic,
            key=key,
            headers=headers,
            create=create,
            security=security,
            client=client,
            password=password,
        )
        self.topic = topic
        self.kind = kind
        self.transactional_id = transactional_id

    @property
    def rows_kept(self) -> RowSpec:
        """Rows of the type."""
        return RowSpec(self.kind)

    def __call__(self) -> Committer[T]:
        """Make the committer."""
        return KafkaCommitter[T](self)

    def __repr__(self) -> str:
        return f"Commit({self.topic!r})"


class KafkaCommitter(Committer[T]):
    """Writes the rows of epochs."""

    def __init__(self, commit: Commit[T]) -> None:
        self._commit = commit
        self._transactions: Transactions
        self._twin: EpochWriter | None = None

    async def prepare(self, context: TaskContext) -> None:
        """Connect; an error fails the start (law R8)."""
        commit, produce = self._commit, self._commit.produce
        address = found_address(context.component, produce.url, produce.settings.password)
        name = commit.transactional_id or f"{context.topology}/{context.component}"
        if (twin := twin_of(address)) is not None:
            self._twin = await twin.transactions(name, commit.topic, address)
            return
        failures = Failures(address, secrets_of(address, produce.client))
        common = client_settings(address, produce.security, produce.client, consumer_name(context))
        self._transactions = Transactions(
            common, commit.topic, name, failures, creating(common, produce.create)
        )
        await asyncio.to_thread(self._transactions.open)

    async def commit(self, epoch: Epoch, rows: Sequence[T]) -> None:
        """Write the rows of an epoch, unless they are there."""
        messages = [self._commit.produce.outgoing(Item(row)) for row in rows]
        if self._twin is not None:
            await self._twin.write(epoch, messages)
        else:
            await asyncio.to_thread(self._transactions.write, epoch, messages)

    async def cleanup(self) -> None:
        """Disconnect."""
        if self._twin is not None:
            await self._twin.close()
        else:
            await asyncio.to_thread(self._transactions.close)
