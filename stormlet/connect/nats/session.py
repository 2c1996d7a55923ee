"""The session of a source with a consumer of JetStream."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from stormlet.connect.nats.connection import Connection, status_of
from stormlet.connect.nats.jetstream import NANO, JetStream
from stormlet.connect.nats.pulling import Pulls
from stormlet.connect.session import Delivery, Settlement
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import ConnectionLost

if TYPE_CHECKING:
    from nats.aio.msg import Msg

ACK: Final = b"+ACK"
NAK: Final = b"-NAK"
TERM: Final = b"+TERM "
PROGRESS: Final = b"+WPI"
AT_ONCE: Final = 200
"""Words to the server that are sent before others have their turn."""
LONGEST_REASON: Final = 500


class StreamSession:
    """See :class:`~stormlet.connect.session.Session`. A receipt is the subject at which a delivery is acked."""

    def __init__(self, connection: Connection, stream: str, consumer: str, lease: float) -> None:
        self._connection = connection
        self._api = JetStream(connection)
        self._stream = stream
        self._consumer = consumer
        self._pulls = Pulls(connection, f"{self._api.prefix}.CONSUMER.MSG.NEXT.{stream}.{consumer}", lease)
        self._clock = asyncio.get_running_loop().time
        self._ending: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Listen for what comes."""
        await self._pulls.begin()

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - see Session
        """Return what has come, and ask for more."""
        until = self._clock() + timeout
        while not (found := self._pulls.take(most)) and self._clock() < until and self._ending is None:
            await self._pulls.ask(most)
            await self._pulls.wait(until)
        if self._ending is not None:
            await self._ending
            found += self._pulls.take(most - len(found))
        elif found:
            await self._pulls.ask(most - len(found))
        return [delivery(message) for message in found]

    def interrupt(self) -> None:
        """Ask for nothing more; what is on its way is still returned."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._pulls.end(), name="end pulls")

    async def settle(self, settlement: Settlement) -> int:
        """Ack, give back and terminate. JetStream does not say which of them it did not expect."""
        told = [(receipt, ACK) for receipt in settlement.done]
        told += [(receipt, NAK) for receipt in settlement.returned]
        told += [(each.receipt, TERM + _line(each.reason)) for each in settlement.rejected]
        await self._tell(told)
        return 0

    async def renew(self, receipts: Sequence[str]) -> Sequence[str]:
        """Say that these are under way. JetStream does not say if somebody else has them."""
        await self._tell([(receipt, PROGRESS) for receipt in receipts])
        return ()

    async def _tell(self, told: Sequence[tuple[str, bytes]]) -> None:
        if not told:
            return
        for number, (receipt, word) in enumerate(told, 1):
            await self._connection.tell(receipt, word)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        # A consumer does all in order. It does not answer an ack of a delivery that it has forgotten when it was
        # killed, but always this word, which changes nothing for what is settled.
        if status_of(await self._connection.ask(told[-1][0], PROGRESS)):
            raise ConnectionLost(
                f"{self._connection.address}: nobody takes acks for the consumer {self._consumer!r}: it was deleted, "
                "or its server is not there"
            )

    async def pause(self, places: Collection[Prefix]) -> None:
        """Not called: each message is settled by itself."""

    async def resume(self, places: Collection[Prefix]) -> None:
        """Not called, as :meth:`pause`."""

    async def lag(self) -> Mapping[str, int]:
        """Return the number of messages that the consumer has not given, or that are not acked."""
        return {self._stream: await self._api.undone(self._stream, self._consumer)}

    async def close(self) -> None:
        """Give back what has come and was not taken, and disconnect."""
        with suppress(ConnectionLost):
            if self._connection.error is None:
                await self._pulls.end()
                await self._tell([(message.reply, NAK) for message in self._pulls.rest()])
        await self._connection.close()


def delivery(message: Msg) -> Delivery:
    """Return the delivery of a message."""
    # $JS.ACK.domain.account.stream.consumer.deliveries.position.number.time.left.random, or in nine words without
    # domain and account.
    receipt = message.reply
    words = receipt.split(".")
    stream, _, deliveries, position, _, time = words[2:8] if len(words) < 11 else words[4:10]
    return Delivery(
        body=message.data,
        receipt=receipt,
        name=f"{stream}@{position}",
        key=message.subject,
        headers=message.headers or {},
        deliveries=int(deliveries),
        published=int(time) / NANO,
    )


def _line(reason: str) -> bytes:
    return " ".join(reason.split())[:LONGEST_REASON].encode()
