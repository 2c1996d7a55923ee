"""``stream_on_spark``: a topology runs on Spark for as long as a streaming DataFrame gives rows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread, get_ident
from types import TracebackType
from typing import Any, Unpack

import msgspec

from stormlet.errors import EndOfStream, InvalidTopology, SparkFailed
from stormlet.model.builder_types import TopologyOptions
from stormlet.model.streams import Stream
from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import Statistics
from stormlet.runtime.dead_letters import DeadLetterTarget, opened
from stormlet.spark.engine.partition.keyed.carried import EndStates, stored_in
from stormlet.spark.engine.passage.conduct import check_paths
from stormlet.spark.engine.planning.refusals import check_stream
from stormlet.spark.engine.stream.epochs import Epochs
from stormlet.spark.engine.stream.rehearsal import rehearse
from stormlet.spark.session import check_packages
from stormlet.spark.stream.query import MicroBatch
from stormlet.spark.stream.stream import StreamSource
from stormlet.spark.threads import in_thread
from stormlet.topology import Topology
from stormlet.topology.builder import configured


def stream_on_spark(
    topology: Topology,
    *,
    files: Iterable[str | os.PathLike[str]] = (),
    dead_letters: DeadLetterTarget | None = None,
    initial_state: str | os.PathLike[str] | None = None,
    **configuration: Unpack[TopologyOptions],
) -> StreamRun:
    """Run a topology on Spark whose only spout is fed by :func:`~stormlet.spark.stream`; return when the query has
    started. Each micro-batch is an *epoch*: it goes through all bolts, and is done as a whole or not at all.

    What a bolt has changed in itself is saved with each epoch, in the checkpoint of the query, and given to its next
    instance: so it survives the process, and each epoch changes it once. A row that is given up becomes a dead letter,
    or fails its batch, as ``on_failure`` of the stream says. A sink with ``exactly_once=True`` has the rows of each
    epoch once, others at least once. ``files`` are as for :func:`~stormlet.spark.run_on_spark`. ``initial_state`` is a
    state file, with whose keyed state the first epoch of a checkpoint begins; where there are epochs already, it has no
    effect. ``configuration`` overrides the topology's options.

    Raises :class:`~stormlet.errors.InvalidTopology` for a topology that cannot run so, and for a checkpoint of another
    topology or of other numbers of tasks.
    """
    check_packages()
    where = f"stream_on_spark of topology {topology.name!r}"
    described = topology.describe()
    changed = configured(described.configuration, configuration, where, topology.name)
    described = msgspec.structs.replace(described, configuration=changed)
    check_stream(described)
    check_paths(where, files := list(files))
    (spout,) = described.spouts.values()
    assert isinstance(spout.source, StreamSource)
    source: StreamSource = spout.source
    sink, sync = opened(dead_letters)
    if sink is None and not source.fails_batch:
        raise InvalidTopology(
            f"spout {spout.id!r} needs a place where dead letters outlive the process; pass dead_letters= "
            f'(--dead-letters), or feed it with on_failure="fail_batch"'
        )
    rehearse(described)
    stored = None if initial_state is None else stored_in(initial_state)
    epochs = Epochs(described, spout.id, source, [Path(each) for each in files], sink, sync, stored)
    run = StreamRun(source, epochs)
    run.start()
    return run


class StreamRun:
    """A topology that runs on Spark in epochs. It can be used in a ``with`` block, whose end stops it."""

    def __init__(self, source: StreamSource, epochs: Epochs) -> None:
        self._source = source
        self._epochs = epochs
        self._started = Event()
        self._stopping = Event()
        self._ended = Event()
        self._error: BaseException | None = None
        self._executing: int | None = None  # the thread of the epoch that is under way
        self._loop: asyncio.AbstractEventLoop
        self._stop_asked: asyncio.Event
        self._thread = Thread(target=self._run, name=f"stormlet {source.query.name}", daemon=True)

    @property
    def epoch(self) -> int | None:
        """The number of the last epoch that is done; None before the first."""
        return self._epochs.last

    @property
    def statistics(self) -> Statistics:
        """The counts of all components, over the epochs that were done in this run."""
        return self._epochs.totals.statistics

    @property
    def failures(self) -> Sequence[RepeatedFailure]:
        """Every distinct failure of a bolt, over these epochs."""
        return self._epochs.totals.failures

    @property
    def messages(self) -> int:
        """The number of messages in these epochs."""
        return sum(each.messages for each in self.statistics.components.values())

    @property
    def acked(self) -> int:
        """The number of messages that were acked."""
        return self.messages - self.statistics.dead_letters

    def state(self, bolt: Stream[Any] | str, name: str | None = None) -> dict[Any, Any]:
        """Return the keyed state of a bolt after the last epoch, when the stream has ended; see
        :meth:`BatchResult.state`."""
        return self._states().values(bolt.component if isinstance(bolt, Stream) else bolt, name)

    def save_state(self, path: str | os.PathLike[str], *, merge: bool = False) -> None:
        """Write all keyed state after the last epoch into a state file, when the stream has ended; see
        :meth:`BatchResult.save_state`."""
        self._states().save(path, merge=merge)

    def _states(self) -> EndStates:
        if not self._ended.is_set():
            raise RuntimeError("the next epoch may be changing the state; call stop() first, or wait()")
        return self._epochs.states(self._source.query.frame.sparkSession)

    def start(self) -> None:
        """Start the query, and return when it runs. Raises the error of the start. One that is interrupted ends the
        query, too."""
        self._thread.start()
        try:
            self._started.wait()
        except BaseException:
            self._ask_to_stop()
            raise
        if self._error is not None and self._ended.is_set():
            raise self._error

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the stream, for at most so many seconds; return True if it has come.

        Raises :class:`~stormlet.errors.SparkFailed` if the query has failed more often than ``restarts`` of the stream
        allows: an epoch that fails is given again.
        """
        if not self._ended.wait(seconds):
            return False
        if self._error is not None:
            raise self._error
        return True

    def stop(self) -> None:
        """Finish the epoch that is under way, and end the query. Raises as :meth:`wait` does.

        What is called in the epoch, such as the sink of dead letters, may ask for it, too, and does not wait.
        """
        self._ask_to_stop()
        if get_ident() != self._executing:
            self.wait()

    def _ask_to_stop(self) -> None:
        self._stopping.set()
        with suppress(RuntimeError, AttributeError):  # it has ended, or not begun
            self._loop.call_soon_threadsafe(self._stop_asked.set)

    def __enter__(self) -> StreamRun:
        """Return it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it. An error of the block goes before one of the run."""
        try:
            self.stop()
        except Exception:
            if error is None:
                raise

    # In its own thread.

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()
            self._started.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop_asked = asyncio.Event()
        claim = await in_thread(self._source.query.claim, "stormlet spark checkpoint")
        try:
            await in_thread(self._epochs.prepare, "stormlet spark start")
            await self._epoch_after_epoch()
        finally:
            if claim is not None:
                claim.release()

    async def _epoch_after_epoch(self) -> None:
        keeper = self._source.keeper()
        await keeper.open()
        self._started.set()
        stop = asyncio.create_task(self._stop_asked.wait())
        try:
            while not self._stopping.is_set():
                coming = asyncio.create_task(keeper.next_batch())
                await asyncio.wait((coming, stop), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    return
                batch = coming.result()
                await in_thread(partial(self._execute, batch, keeper.id), "stormlet spark epoch")
        except EndOfStream:
            """Its data has ended, or somebody else has stopped it."""
        finally:
            stop.cancel()
            await keeper.close()

    def _execute(self, batch: MicroBatch, query: str) -> None:
        self._executing = get_ident()
        try:
            self._epochs.execute(batch.frame, batch.number, query)
        except Exception as error:
            batch.fail(error)
        except BaseException as error:  # such as SystemExit: without a verdict Spark would wait for ever
            batch.fail(SparkFailed(f"{self._source.query.name}: epoch {batch.number} raised {error!r}"))
        else:
            batch.done()
        finally:
            self._executing = None
