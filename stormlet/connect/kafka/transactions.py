"""Transactions of a producer, each with the rows of one epoch and a note of its number.

Theory of operation
-------------------
*The note* is what a consumer would commit: an offset of the first partition of the topic, in a group that has the name
of the transactions. The offset is the number of the epoch, and its metadata the line. It becomes visible together with
the rows, or not at all.

*Who comes later* under the same name ends what an earlier one has left open, by ``init_transactions``: what was about
to be committed is committed, all else aborted. Only then the note is read. The earlier one can commit nothing any more.

*A transaction that takes longer* than ``transaction.timeout.ms``, as of a process that was stopped in its middle, is
ended by the broker, and the client is told the same as one whose name another one has taken. So after that time the
note decides: if nobody has written since, this one may begin anew.

*The outcome of a commit may be unknown*, as its answer was lost. Whoever comes later reads it from the note. So nothing
is tried twice here: whatever takes too long is an error, after which another producer begins under the same name.

All of it waits, and is to be called from a thread, by one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, Final

from stormlet.connect.kafka.produce import producer_settings
from stormlet.connect.kafka.producer import Outgoing
from stormlet.connect.kafka.settings import Create, Failures, greet, made, missing_client
from stormlet.core.state.outgoing import Epoch
from stormlet.errors import BrokerGivenUp, ConnectionLost, ConnectorError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

CALL: Final = 10.0
"""Seconds of one call of the client."""
FENCED: Final = frozenset(("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"))
"""Errors of one whose name another one has taken."""
TIMEOUT: Final = "transaction.timeout.ms"
ENDED_AFTER: Final = 60_000
"""Milliseconds after which the broker ends a transaction, unless that setting says otherwise."""
BEGINNING: Final = 30.0
"""Seconds for which a cluster may take to be ready for transactions."""
RETRY: Final = 0.1
"""Seconds between two attempts."""


class Transactions:
    """A transactional producer, and what it has committed."""

    def __init__(
        self, settings: Mapping[str, Any], topic: str, name: str, failures: Failures, create: Create | None
    ) -> None:
        """``name`` is the ``transactional.id``, and the group of the note."""
        self.last: Epoch | None = None
        """The last epoch whose rows are there."""
        self._settings = settings
        self._topic = topic
        self._name = name
        self._failures = failures
        self._create = create
        self._producer: Producer
        self._notes: Consumer
        self._failed: KafkaError | None = None
        self._began = 0.0

    def open(self) -> None:
        """Reach the broker, end what another one has left, and read the note.

        Raises :class:`~stormlet.errors.ConnectorError`.
        """
        try:
            from confluent_kafka import Consumer, Producer
        except ImportError:
            raise missing_client() from None
        ours = {"error_cb": self._failures.note, "transactional.id": self._name}
        self._producer = made(Producer, {**producer_settings(self._settings), **ours}, self._failures)
        greet(self._producer, self._failures, [self._topic], self._create)
        self._try(partial(self._producer.init_transactions, BEGINNING))
        reading = {"enable.auto.commit": False, "isolation.level": "read_committed"}
        notes = {**self._settings, **reading, "group.id": self._name}
        self._notes = made(Consumer, notes, self._failures)
        self._group = self._notes.consumer_group_metadata()
        self.last = self._note()

    def _note(self) -> Epoch | None:
        from confluent_kafka import KafkaException

        deadline = monotonic() + BEGINNING
        while True:
            try:
                (note,) = self._notes.committed([self._partition()], CALL)
                break
            except KafkaException as exception:  # such as a coordinator that is not ready
                if monotonic() > deadline:
                    raise self._failures.error(exception.args[0]) from None
                sleep(RETRY)
        return Epoch(note.offset, note.metadata or "") if note.offset > 0 else None

    def _partition(self, epoch: Epoch | None = None) -> TopicPartition:
        from confluent_kafka import TopicPartition

        if epoch is None:
            return TopicPartition(self._topic, 0)
        return TopicPartition(self._topic, 0, epoch.number, metadata=epoch.line)

    def write(self, epoch: Epoch, messages: Iterable[Outgoing]) -> None:
        """Write the rows of an epoch, unless they are there.

        Raises :class:`~stormlet.errors.ConnectorError`, after which these transactions are of no use: others must be
        opened, and none after :class:`~stormlet.errors.BrokerGivenUp`, as another one has taken this name.
        """
        if not epoch.follows(self.last):
            return
        self._failed = None
        self._began = time()  # which goes on while the machine sleeps
        try:
            self._producer.begin_transaction()
            for message in messages:
                self._produce(message)
            self._producer.send_offsets_to_transaction([self._partition(epoch)], self._group, CALL)
            self._producer.commit_transaction(CALL)
        except Exception as error:
            try:
                reason = self._reason(error, epoch)
            finally:
                self._abort()
            raise reason from None
        self.last = epoch

    def _produce(self, message: Outgoing) -> None:
        headers: list[tuple[str, str | bytes | None]] = list(message.headers.items())
        while True:
            try:
                self._producer.produce(
                    message.topic,
                    message.body,
                    message.key,
                    on_delivery=self._reported,
                    headers=headers or None,
                )
            except BufferError:  # the client has a hundred thousand already
                self._producer.poll(RETRY)
            else:
                self._producer.poll(0)
                return

    def _reported(self, error: KafkaError | None, message: Message | None) -> None:
        self._failed = self._failed or error

    def _try(self, step: Callable[[], None]) -> None:
        from confluent_kafka import KafkaException

        try:
            step()
        except KafkaException as exception:
            raise self._meaning(exception.args[0]) from None

    def _reason(self, error: Exception, epoch: Epoch) -> Exception:
        """Return the first cause: that a transaction must be aborted is only what follows of it."""
        from confluent_kafka import KafkaException

        first = self._failed or (error.args[0] if isinstance(error, KafkaException) else None)
        if first is None:
            return error
        if first.name() in FENCED and self._was_ended(epoch):
            return ConnectionLost(
                f"{self._failures.where}: the broker has ended a transaction that took more than "
                f"{self._timeout:g} s ({TIMEOUT}), as of a process that was stopped; it is written again"
            )
        return self._meaning(first)

    def _was_ended(self, epoch: Epoch) -> bool:
        """Return True if the broker may have ended the transaction for its age, and nobody else has written since."""
        if time() - self._began < self._timeout:
            return False
        note = self._note()
        ours = [(each.number, each.line) for each in (self.last, epoch) if each]
        return self.last is None if note is None else (note.number, note.line) in ours

    @property
    def _timeout(self) -> float:
        return float(self._settings.get(TIMEOUT, ENDED_AFTER)) / 1000

    def _meaning(self, error: KafkaError) -> ConnectorError:
        if error.name() in FENCED:  # a restart would fence the one that has taken its place
            return BrokerGivenUp(
                f"{self._failures.where}: another run writes under the name {self._name!r} (transactional_id=), and "
                f"has taken the place of this one ({error.name()})"
            )
        return self._failures.error(error)

    def _abort(self) -> None:
        from confluent_kafka import KafkaException

        with suppress(KafkaException):  # whoever comes later does it
            self._producer.purge()
            self._producer.abort_transaction(CALL)

    def close(self) -> None:
        """End the clients."""
        with suppress(AttributeError):  # it was not opened
            del self._producer  # its threads end with it
            self._notes.close()
