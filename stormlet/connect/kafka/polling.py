"""The thread of one consumer: it polls, and everything else that is asked of the consumer happens in it.

It polls always. Who does not poll for ``max.poll.interval.ms`` is taken for dead, and who does not answer a rebalance
holds up the group. While enough messages are ready and nobody takes any, it waits for :data:`PATIENCE` seconds, and
then pauses all partitions and polls on; not at once, as a partition that is paused loses what the client has fetched.

While no broker answers, or no commit succeeds, nothing of what is ready is given: nobody could be told that it is done,
and all of it would come twice if the connection were lost or its partitions were given to another member.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

from stormlet.connect.kafka.ahead import Ahead
from stormlet.connect.kafka.partitions import Partitions, Place
from stormlet.connect.kafka.settings import REFUSALS, Create, Failures, greet, logger, partitions_of
from stormlet.connect.kafka.share import Share
from stormlet.connect.session import NO_HEADERS, Delivery
from stormlet.errors import ConnectionLost

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

SLICE: Final = 0.05
"""Seconds of one poll, after which the thread sees what else is asked of it."""
PATIENCE: Final = 0.25
"""Seconds without room for messages after which partitions are paused."""
REPORTS: Final = 0.002
"""Seconds between polls for the reports of commits, while there is no room for messages."""
SPARE: Final = 100
"""Messages that may come meanwhile, before partitions are paused."""
PROBE: Final = 1.0
"""Seconds between questions to a cluster of which no broker was there."""


class Reader(Protocol):
    """The loop's side, which the thread may call at any time."""

    def connected(self) -> None:
        """The broker has answered, and has the topics."""
        ...

    def received(self) -> None:
        """Messages are ready."""
        ...

    def failed(self, error: Exception) -> None:
        """There is no connection, or none any more."""
        ...

    def ended(self) -> None:
        """The consumer is closed."""
        ...


class Polling:
    """The thread. What is given to :meth:`ask` is called in it, such as the other public methods."""

    def __init__(
        self,
        make: Callable[[], Consumer],
        topics: Sequence[str],
        partitions: Partitions,
        ahead: Ahead,
        failures: Failures,
        reader: Reader,
        create: Create | None,
        share: Share | None,
    ) -> None:
        self._make = make
        self._topics = topics
        self._partitions = partitions
        self._ahead = ahead
        self._failures = failures
        self._reader = reader
        self._create = create
        self._share = share
        self._consumer: Consumer
        self._asked = queue.SimpleQueue[Callable[[], None]]()
        self._had_room = self._probed = monotonic()

    def start(self) -> None:
        """Start the thread."""
        # A daemon: a loop that was left without a word does not keep the program from its end.
        threading.Thread(target=self._run, name="stormlet kafka", daemon=True).start()

    def ask(self, function: Callable[[], None]) -> None:
        """Have the thread call this soon. From any thread."""
        self._asked.put(function)

    @property
    def is_down(self) -> bool:
        """True while no broker is known to be there, or none takes commits. From any thread."""
        return self._failures.is_down or self._partitions.is_behind

    def close(self) -> None:
        """Leave the group. What is assigned is let go without a word, as everything was said before."""
        self._partitions.closing = True

    def meanwhile(self) -> None:
        """Do what is asked while a callback waits, and nobody polls."""
        self._serve(SLICE)

    def _run(self) -> None:
        try:
            self._consumer = self._partitions.consumer = self._make()
        except Exception as error:
            self._reader.failed(error)
            return
        try:
            self._work()
        except Exception as error:
            self._reader.failed(error)
            self._partitions.give_up_commits()
            while not self._partitions.closing:
                self._serve(1.0)
        self._partitions.give_up_commits()
        self._consumer.close()
        self._reader.ended()

    def _work(self) -> None:
        partitions = self._partitions
        topics = [each for each in self._topics if not each.startswith("^")]
        greet(self._consumer, self._failures, topics, self._create)
        if self._share is not None:
            partitions.take(self._share.of(partitions_of(self._consumer, self._failures, topics)))
        else:
            self._consumer.subscribe(
                list(self._topics),
                on_assign=partitions.on_assign,
                on_revoke=partitions.on_revoke,
                on_lost=partitions.on_lost,
            )
        self._reader.connected()
        while not partitions.closing:
            self._turn()

    def _turn(self) -> None:
        partitions, ahead = self._partitions, self._ahead
        is_down = self.is_down
        is_ready = ahead.has_room and not is_down
        self._serve(0.0 if is_ready else REPORTS if partitions.is_committing else SLICE)
        if is_ready:
            self._had_room = monotonic()
            partitions.hold(False)
            self._keep(self._read())
        elif partitions.is_committing or partitions.is_held or is_down:
            self._keep([self._consumer.poll(0)])
            partitions.hold(partitions.is_held or is_down or len(ahead) >= ahead.most + SPARE)
        else:
            partitions.hold(monotonic() - self._had_room > PATIENCE)
        if len(ahead) and not self.is_down:
            self._reader.received()
        self._look_at_brokers()

    def _serve(self, seconds: float) -> None:
        """Do all that is asked; wait so long for the first."""
        try:
            function = self._asked.get(timeout=seconds) if seconds else self._asked.get_nowait()
            while True:
                function()
                function = self._asked.get_nowait()
        except queue.Empty:
            return

    def _look_at_brokers(self) -> None:
        """Raise if the connection must be made again."""
        from confluent_kafka import KafkaException

        self._failures.check()
        if self._failures.is_down and monotonic() - self._probed > PROBE:
            try:
                self._consumer.list_topics(timeout=SLICE)
                self._failures.is_up()
            except KafkaException as exception:
                logger.debug("%s", exception)
            self._probed = monotonic()

    # Messages.

    def _read(self) -> Sequence[Message | None]:
        # One call while there is much: each takes the interpreter's lock again, and may wait 5 ms for it.
        messages = self._consumer.consume(self._ahead.most, 0)
        return messages or [self._consumer.poll(SLICE)]

    def _keep(self, messages: Sequence[Message | None]) -> None:
        partitions = self._partitions
        deliveries = self._converted(messages)
        if partitions.taken:
            back = partitions.taken.intersection(partitions.places)
            partitions.taken.clear()
            if back:  # within one call: nobody could say to which of its lives a message belongs
                raise ConnectionLost(f"{self._failures.where}: a partition was taken and given in one moment")
        if deliveries:
            self._ahead.add(deliveries)

    def _converted(self, messages: Sequence[Message | None]) -> list[Delivery]:
        places, positions = self._partitions.places, dict[Place, int]()
        deliveries = list[Delivery]()
        for message in messages:
            if message is None:
                continue
            topic, number, offset = message.topic(), message.partition(), message.offset()
            if message.error() is not None or topic is None or number is None or offset is None:
                self._trouble(message.error(), (topic or "", number or 0), offset or 0)
                continue
            place = places.get((topic, number))
            if place is not None:  # else it was given away while this message was on its way
                positions[place] = offset + 1
                deliveries.append(_delivery(message, place, offset))
        self._partitions.delivered(positions)
        return deliveries

    def _trouble(self, error: KafkaError | None, name: tuple[str, int], offset: int) -> None:
        kind = "" if error is None else error.name()
        if kind == "_PARTITION_EOF":
            self._partitions.reached_end(name, offset)
        elif error is not None:
            if kind in REFUSALS or error.fatal():
                raise self._failures.error(error)
            logger.warning("%s", self._failures.words(error))


def _delivery(message: Message, place: Place, offset: int) -> Delivery:
    kind, milliseconds = message.timestamp()
    return Delivery(
        body=message.value() or b"",
        name=f"{place.name}@{offset}",
        key=message.key(),
        headers=_headers(message),
        published=milliseconds / 1000 if kind else None,
        place=place,
        position=offset + 1,
    )


def _headers(message: Message) -> Mapping[str, str | bytes]:
    headers = message.headers()
    if not headers:
        return NO_HEADERS
    pairs = headers.items() if isinstance(headers, dict) else headers
    return {name: b"" if value is None else value for name, value in pairs}
