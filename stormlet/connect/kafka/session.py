"""The source's connection to Kafka: the loop's side of the thread that polls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from stormlet.connect.kafka.ahead import Ahead
from stormlet.connect.kafka.partitions import Fronts, Partitions, Place
from stormlet.connect.kafka.polling import Polling
from stormlet.connect.kafka.settings import Create, Failures, made, missing_client
from stormlet.connect.kafka.share import Share
from stormlet.connect.session import Delivery, Settlement, SourceContext

if TYPE_CHECKING:
    from confluent_kafka import Consumer

T = TypeVar("T")

CLOSES_WITHIN: Final = 10.0
"""Seconds after which nobody waits any more for the client to end."""


class KafkaSession:
    """One consumer. It implements :class:`~stormlet.connect.session.Session`."""

    def __init__(
        self,
        context: SourceContext,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        failures: Failures,
        *,
        from_end: bool,
        create: Create | None,
    ) -> None:
        self._context = context
        self._settings = settings
        self._failures = failures
        self._loop = asyncio.get_running_loop()
        self._partitions = Partitions(self, failures, from_end=from_end)
        resume = context.resume
        share = None if resume is None else Share(context.task_index, context.parallelism, resume)
        self._ahead = ahead = Ahead()
        self._polling = Polling(
            self._consumer, topics, self._partitions, ahead, failures, self, create, share
        )
        self._connected = self._loop.create_future()
        self._ended = self._loop.create_future()
        self._waiting: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._interrupted = False

    async def connect(self) -> KafkaSession:
        """Reach the broker. Raises :class:`~stormlet.errors.ConnectorError`."""
        self._polling.start()
        try:
            await self._connected
        except BaseException:
            self._polling.ask(self._polling.close)
            raise
        return self

    def _consumer(self) -> Consumer:
        try:
            from confluent_kafka import Consumer
        except ImportError:
            raise missing_client() from None
        callbacks = {"error_cb": self._failures.note, "on_commit": self._partitions.on_commit}
        return made(Consumer, {**self._settings, **callbacks}, self._failures)

    # The face of sessions.

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - see there
        """Return messages, when there are any."""
        until = self._loop.time() + timeout
        while not (deliveries := self._take(most)):
            seconds = until - self._loop.time()
            if self._interrupted or seconds <= 0:
                break
            await self._wait(seconds)
        return deliveries

    def _take(self, most: int) -> Sequence[Delivery]:
        if self._error is not None:
            raise self._error
        if self._polling.is_down:
            return []
        had_room = self._ahead.has_room
        deliveries = self._ahead.take(most)
        if self._ahead.has_room and not had_room:
            self._polling.ask(_go_on)
        return deliveries

    async def _wait(self, seconds: float) -> None:
        """Wait until the thread says that there is something to see."""
        self._waiting = waiting = self._loop.create_future()
        timer = self._loop.call_later(seconds, _resolve, waiting, None, None)
        try:
            # Looked at again: the thread may have seen that nobody was waiting.
            if not len(self._ahead) or self._polling.is_down:
                await waiting
        finally:
            self._waiting = None
            timer.cancel()

    def interrupt(self) -> None:
        """Have :meth:`receive` return."""
        self._interrupted = True
        self._wake()

    async def settle(self, settlement: Settlement) -> int:
        """Commit positions."""
        if self._error is not None:
            raise self._error
        done = self._loop.create_future()

        def reported(error: Exception | None) -> None:
            self._soon(partial(_resolve, done, None, error))

        self._polling.ask(partial(self._partitions.commit, settlement.fronts, reported))
        await done
        return 0

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        """Do nothing: partitions have no leases."""
        return ()

    async def pause(self, places: Collection[Place]) -> None:
        """Receive nothing more of these partitions."""
        self._ahead.pause(places)
        await self._asked(partial(self._partitions.pause, places))

    async def resume(self, places: Collection[Place]) -> None:
        """Receive messages of these partitions again."""
        self._ahead.resume(places)
        self._wake()
        await self._asked(partial(self._partitions.resume, places))

    async def lag(self) -> Mapping[str, int]:
        """Return the messages that are not committed, by partition."""
        return await self._asked(self._partitions.lag)

    async def close(self) -> None:
        """Leave the group."""
        self._polling.ask(self._polling.close)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._ended), CLOSES_WITHIN)

    async def _asked(self, function: Callable[[], T]) -> T:
        """Have the thread call a function; return its result."""
        if self._error is not None:
            raise self._error
        done: asyncio.Future[T] = self._loop.create_future()

        def call() -> None:
            try:
                result = function()
            except Exception as error:
                self._soon(partial(_resolve, done, None, error))
            else:
                self._soon(partial(_resolve, done, result, None))

        self._polling.ask(call)
        return await done

    # What the thread calls.

    def connected(self) -> None:
        """The broker has answered."""
        self._soon(partial(_resolve, self._connected, None, None))

    def received(self) -> None:
        """Messages are ready."""
        if self._waiting is not None:
            self._soon(self._wake)

    def failed(self, error: Exception) -> None:
        """There is no connection."""
        self._soon(partial(self._fail, error))

    def ended(self) -> None:
        """The consumer is closed."""
        self._soon(partial(_resolve, self._ended, None, None))

    def _fail(self, error: Exception) -> None:
        self._error = error
        _resolve(self._connected, None, error)
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None:
            _resolve(self._waiting, None, None)

    def assign(self, names: Sequence[str]) -> Sequence[Place]:
        """Partitions have come."""

        async def assigned() -> Sequence[Place]:
            return [self._context.assigned(name) for name in names]

        return self._in_loop(assigned())

    def revoke(self, places: Sequence[Place]) -> Fronts:
        """Drain these."""

        async def revoked() -> Fronts:
            self._ahead.forget(places)
            return await self._context.revoking(places)

        return self._in_loop(revoked())

    def lose(self, places: Sequence[Place]) -> None:
        """These are gone."""

        def lost() -> None:
            self._ahead.forget(places)
            self._context.lost(places)

        self._soon(lost)

    def _in_loop(self, work: Coroutine[Any, Any, Sequence[T]]) -> Sequence[T]:
        """Run this in the loop; wait for it, unless that has come to its end."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        while not future.done():
            if self._partitions.closing or self._loop.is_closed():
                future.cancel()
                return []
            self._polling.meanwhile()
        return future.result()

    def _soon(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(function)


def _go_on() -> None:
    """Nothing: the thread need not wait any more."""


def _resolve(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
