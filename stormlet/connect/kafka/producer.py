"""The sink's connection to Kafka: an idempotent producer, whose reports a thread polls for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stormlet.connect.kafka.settings import Create, Failures, greet, logger, made, missing_client
from stormlet.connect.session import DONE, Item, Written
from stormlet.errors import ConnectionLost, ConnectorError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

POLL: Final = 0.1
"""Seconds of one poll."""
PROBE: Final = 1.0
"""Seconds between questions to a cluster of which no broker was there."""
FULL: Final = 0.01
"""Seconds before the client is asked again to take a message for which it had no room."""

HOPELESS: Final = frozenset(
    (
        "MSG_SIZE_TOO_LARGE",
        "INVALID_MSG_SIZE",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_RECORD",
        "INVALID_MSG",
        "_BAD_MSG",
    )
)
"""Errors of a message that no further attempt can help."""


class Outgoing(msgspec.Struct):
    """One message for Kafka."""

    topic: str
    body: bytes
    key: str | bytes | None = None
    headers: Mapping[str, str | bytes] = {}


class Batch:
    """The messages of one ``write``: which of them were reported. The thread reports; the loop waits."""

    def __init__(self, size: int, done: Callable[[], None]) -> None:
        self.written: list[Written | None] = [None] * size
        self.lost: ConnectorError | None = None
        self._left = size
        self._done = done

    def report(self, number: int, written: Written) -> None:
        """This is known of one message."""
        self.written[number] = written
        self._left -= 1
        if not self._left:
            self._done()


class KafkaSinkSession:
    """One producer. It implements :class:`~stormlet.connect.session.SinkSession`."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        failures: Failures,
        outgoing: Callable[[Item], Outgoing],
        create: Create | None,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._failures = failures
        self._outgoing = outgoing
        self._create = create
        self._loop = asyncio.get_running_loop()
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._producer: Producer
        self._closing = False
        self._batches: dict[asyncio.Future[None], None] = {}
        self._error: Exception | None = None

    async def connect(self) -> KafkaSinkSession:
        """Reach the broker. Raises :class:`~stormlet.errors.ConnectorError`."""
        threading.Thread(target=self._run, name="stormlet kafka", daemon=True).start()
        try:
            await self._connected
        except BaseException:
            self._closing = True
            raise
        return self

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Write these, and wait until all were reported."""
        if self._error is not None:
            raise self._error
        done: asyncio.Future[None] = self._loop.create_future()
        batch = Batch(len(items), partial(self._soon, partial(_resolve, done, None)))
        self._batches[done] = None
        try:
            for number, item in enumerate(items):
                await self._produce(item, partial(self._reported, batch, number))
            await done
        finally:
            self._batches.pop(done, None)
        if batch.lost is not None:
            raise batch.lost
        return [each or DONE for each in batch.written]

    async def _produce(
        self, item: Item, reported: Callable[[KafkaError | None, Message | None], None]
    ) -> None:
        from confluent_kafka import KafkaException

        message = self._outgoing(item)
        headers: list[tuple[str, str | bytes | None]] = list(message.headers.items())
        while True:
            try:
                self._producer.produce(
                    message.topic, message.body, message.key, on_delivery=reported, headers=headers or None
                )
            except BufferError:  # the client has a hundred thousand already
                await asyncio.sleep(FULL)
            except KafkaException as exception:
                reported(exception.args[0], None)
                return
            else:
                return

    def _reported(self, batch: Batch, number: int, error: KafkaError | None, message: Message | None) -> None:
        if error is None:
            self._failures.is_up()
            batch.report(number, DONE)
            return
        words, name = self._failures.words(error), error.name()
        if error.fatal() or name.startswith("_PURGE") or "AUTHORIZATION" in name or "UNKNOWN_TOPIC" in name:
            batch.lost = self._failures.error(error)
        batch.report(number, Written(words, permanent=name in HOPELESS))

    async def close(self) -> None:
        """End the producer, and forget what was not reported."""
        self._closing = True
        await self._ended

    # The thread.

    def _run(self) -> None:
        try:
            self._producer = self._made()
            greet(self._producer, self._failures, self._topics, self._create)
            self._soon(partial(_resolve, self._connected, None))
            while not self._closing:
                self._producer.poll(POLL)
                self._look_at_brokers()
            lost: Exception = ConnectionLost(f"{self._failures.where}: the connection is closed")
        except Exception as error:
            lost = error
        with suppress(AttributeError):  # there is none
            self._producer.purge()
            del self._producer  # its threads end with it
        self._soon(partial(self._fail, lost))

    def _made(self) -> Producer:
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise missing_client() from None
        return made(Producer, {**self._settings, "error_cb": self._failures.note}, self._failures)

    def _look_at_brokers(self) -> None:
        from confluent_kafka import KafkaException

        self._failures.check()
        if self._failures.is_down:
            try:
                self._producer.list_topics(timeout=PROBE)
                self._failures.is_up()
            except KafkaException as exception:
                logger.debug("%s", exception)

    def _fail(self, error: Exception) -> None:
        self._error = error
        for future in (self._connected, *self._batches):
            _resolve(future, error)
        _resolve(self._ended, None)

    def _soon(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(function)


def _resolve(future: asyncio.Future[None], error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
