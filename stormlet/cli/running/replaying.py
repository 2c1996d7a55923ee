"""``stormlet run --replay-dead-letters FILE``: emits the dead letters of an earlier run again.

::

    replay = Replay(letters, topology, settings, dead_letters)  # raises TargetError before anything starts
    async with topology.run(active=False, dead_letters=dead_letters, **settings) as running:
        await replay.through(running)  # ends early when the topology is stopped
    say(replay.summary())
    return 0 if replay.all_acked else 1

Every letter is a message of the host's (law C4): a ``Spout`` class gets neither ``ack`` nor ``fail`` for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from stormlet.cli.running.letters import letter_file
from stormlet.core.outcomes import Failure, FailureKind, TupleFailed
from stormlet.core.schema import Record
from stormlet.core.shortened import cut
from stormlet.errors import (
    InvalidEmit,
    KeyFunctionFailed,
    StormletError,
    TargetError,
    TopologyStopping,
    UnroutableKey,
)
from stormlet.model.configuration import configure
from stormlet.model.streams import Stream, StreamId
from stormlet.report.failures import log_fields
from stormlet.report.letter_records import LetterRecord, NoLetter
from stormlet.report.rebuilding import CannotRebuild
from stormlet.runtime.dead_letters import LetterFile, Line, read_lines
from stormlet.runtime.run.handle import Running
from stormlet.runtime.tree import Tree
from stormlet.topology import Topology


@dataclass(frozen=True, slots=True)
class Message:
    """A letter that can be emitted."""

    record: LetterRecord
    stream: Stream[Any]
    value: object
    origin: object
    attempts: int
    """As many as a message of its spout gets."""


class NotReplayable(StormletError):
    """A line cannot be emitted; the message says why."""


class Replayable:
    """Makes messages of lines."""

    def __init__(self, topology: Topology, settings: Mapping[str, object]) -> None:
        where = f"run of topology {topology.name!r}"
        self._configuration = configure(topology.configuration, settings, where)
        self._spouts = topology.describe().spouts
        self._topology = topology
        self._attempts = {
            id: configure(self._configuration, spec.options, where).max_attempts
            for id, spec in self._spouts.items()
        }
        self._records = dict(self._records_of_streams())

    @property
    def tracked(self) -> bool:
        """True if the outcome of a message will be known (law L9)."""
        return self._configuration.ackers > 0

    def message(self, line: Line) -> Message:
        """Raises :class:`NotReplayable`."""
        try:
            record = line.record()
            stream = self._stream(record)
            value, origin = record.rebuilt_value(self._records), record.rebuilt_origin(self._records)
        except (NoLetter, CannotRebuild) as error:
            raise NotReplayable(str(error)) from error
        schema = stream.output.schema
        if schema.enforced and (misfit := schema.misfit(value)) is not None:
            raise NotReplayable(f"its value does not fit {stream.id}: {misfit}")
        return Message(record, stream, value, origin, self._attempts[record.component])

    def _stream(self, record: LetterRecord) -> Stream[Any]:
        spec = self._spouts.get(record.component)
        if spec is None:
            known = ", ".join(map(repr, self._spouts))
            raise NotReplayable(f"the topology has no spout {record.component!r}, only {known}")
        if record.stream not in spec.outputs:
            known = ", ".join(map(repr, spec.outputs))
            raise NotReplayable(f"spout {spec.id!r} has no stream {record.stream!r}, only {known}")
        id, output = StreamId(spec.id, record.stream), spec.outputs[record.stream]
        if output.direct:
            raise NotReplayable(f"{id} is direct, and a letter does not say to which task it went")
        return Stream(id, output, spec.outputs, self._topology)

    def _records_of_streams(self) -> Mapping[str, type]:
        schemas = [output.schema for spec in self._spouts.values() for output in spec.outputs.values()]
        return {each.record.__qualname__: each.record for each in schemas if isinstance(each, Record)}


AT_ONCE = 1000
"""Letters under way at most; ``max_spout_pending`` may allow fewer."""
SHOWN_PROBLEMS = 5


class Replay:
    """All letters of one file, and what became of them."""

    def __init__(
        self,
        letters: Path,
        topology: Topology,
        settings: Mapping[str, object],
        dead_letters: Path | None = None,
    ) -> None:
        """Check every line. What is not acked will be appended to the file ``dead_letters``; without it, the log
        says of each distinct failure which letter it was first and how many others.

        Raises :class:`~stormlet.errors.TargetError` if a file cannot be used, both are one, the topology runs
        without ackers, or a line cannot be emitted: it names the lines and the reasons.
        """
        self.acked = 0
        self.failed_again = 0
        self.not_tried = 0
        """Letters without an outcome, as the topology was stopped."""
        self._path = letters
        self._log = FailedAgain(topology.name, letters)
        self._size = _size_of(letters)
        self._replayable = Replayable(topology, settings)
        if not self._replayable.tracked:
            raise TargetError(
                f"{letters}: with ackers=0 nobody knows what becomes of a letter; set ackers to 1"
            )
        self._refuse(dict(self._problems()))
        self._rest_path = dead_letters
        self._rest = None if dead_letters is None else _rest_file(dead_letters, letters)
        self._open: dict[int, Line] = {}
        self._room = asyncio.Semaphore(AT_ONCE)

    @property
    def all_acked(self) -> bool:
        """True if nothing is left to be done."""
        return not self.failed_again and not self.not_tried

    def summary(self) -> str:
        """One line: how many were acked, and where the rest is."""
        counts = f"{self.acked:,} acked, {self.failed_again:,} failed again, {self.not_tried:,} not tried"
        rest = "" if self.all_acked or self._rest is None else f"; what was not acked is in {self._rest_path}"
        return f"dead letters of {self._path}: {counts}{rest}"

    async def through(self, running: Running) -> None:
        """Emit every letter, in order, and wait for the outcomes. When the topology is stopped or crashes, the
        letters without an outcome are counted, and kept with those that failed again, as they are.

        Raises :class:`~stormlet.errors.StormletError` if the file for the rest cannot be written.
        """
        lines = self._lines()
        try:
            await self._emit_all(running, lines)
        except* StormletError as errors:
            raise errors.exceptions[0] from None
        finally:
            for line in (*self._open.values(), *lines):
                self._keep(line)
            self._log.close()

    async def _emit_all(self, running: Running, lines: Iterator[Line]) -> None:
        async with asyncio.TaskGroup() as group:
            for line in lines:
                self._open[line.number] = line
                await self._room.acquire()
                message = self._replayable.message(line)
                try:
                    tree = await _emit(running, message)
                except TopologyStopping:
                    return
                except (InvalidEmit, UnroutableKey, KeyFunctionFailed) as error:
                    self._settle(line, message, (Failure(FailureKind.FAILED, reason=str(error)),))
                else:
                    group.create_task(self._await(tree, line, message), name=f"dead letter {line.number}")

    async def _await(self, tree: Tree[object], line: Line, message: Message) -> None:
        with suppress(TupleFailed):
            await tree
        self._settle(line, message, tree.history if tree.failure is not None else ())

    def _settle(self, line: Line, message: Message, failures: Sequence[Failure]) -> None:
        self._room.release()
        if failures and failures[-1].kind is FailureKind.SHUTDOWN:
            return  # it stays open
        del self._open[line.number]
        if failures:
            self.failed_again += 1
            self._record(line, message, failures)
        else:
            self.acked += 1

    def _record(self, line: Line, message: Message, failures: Sequence[Failure]) -> None:
        if self._rest is None:
            self._log.add(line.number, message.record.component, failures[-1])
        else:
            self._rest.append(message.record.failed_again(failures, datetime.now(UTC)))

    def _keep(self, line: Line) -> None:
        self.not_tried += 1
        if self._rest is not None:
            self._rest.append_line(line.text)

    def _lines(self) -> Iterator[Line]:
        return read_lines(self._path, self._size)

    def _problems(self) -> Iterator[tuple[int, str]]:
        for line in self._lines():
            try:
                self._replayable.message(line)
            except NotReplayable as error:
                yield line.number, str(error)

    def _refuse(self, problems: Mapping[int, str]) -> None:
        if not problems:
            return
        shown = [f"\n  line {number}: {why}" for number, why in problems.items()][:SHOWN_PROBLEMS]
        more = f"\n  and {len(problems) - len(shown):,} more" if len(problems) > len(shown) else ""
        raise TargetError(
            f"nothing was started: {len(problems):,} of the lines in {self._path} cannot be fed again"
            f"{''.join(shown)}{more}\n"
            f"  Feed a copy without them: stormlet dead-letters --json leaves out broken lines and values without a "
            f"type by --replayable, and letters of other spouts by --component"
        )


async def _emit(running: Running, message: Message) -> Tree[Any]:
    return await running.emit(message.stream, message.value, attempts=message.attempts, origin=message.origin)


def _size_of(path: Path) -> int:
    try:
        if path.is_fifo():
            raise TargetError(f"the dead letters of {path} are read twice, which a pipe cannot; name a file")
        with path.open("rb"):
            return path.stat().st_size
    except OSError as error:
        raise TargetError(f"the dead letters of {path} cannot be read: {error.strerror}") from None


def _rest_file(path: Path, letters: Path) -> LetterFile:
    if path.exists() and path.samefile(letters):
        raise TargetError(
            f"{letters} cannot be fed again and appended to at once; name another --dead-letters"
        )
    return letter_file(path)


logger = logging.getLogger(__name__)

Kind: TypeAlias = tuple[object, ...]

MOST_KINDS: Final = 100
"""The most kinds of failures that are counted apart."""
OTHERS: Final[Kind] = ()
"""All that are not."""


class FailedAgain:
    """Logs the first letter of each kind of failure at once, and at the end the number of others like it."""

    def __init__(self, topology: str, letters: Path) -> None:
        self._topology = topology
        self._letters = letters
        self._first: dict[Kind, tuple[int, dict[str, object]]] = {}
        """Line of the first one of each kind, and the fields of its log record."""
        self._more = Counter[Kind]()

    def add(self, line: int, component: str, failure: Failure) -> None:
        """The letter in this line, of this spout, has failed again."""
        kind: Kind = component, failure.kind, failure.component, failure.holders, type(failure.exception)
        if kind not in self._first and len(self._first) >= MOST_KINDS:
            kind = OTHERS
        if kind in self._first:
            self._more[kind] += 1
            return
        fields = log_fields(self._topology, component)
        self._first[kind] = line, fields
        logger.error("%s:%d failed again: %s", self._letters, line, cut(str(failure)), extra=fields)

    def close(self) -> None:
        """The replay is over."""
        for kind, (line, fields) in self._first.items():
            if more := self._more[kind]:
                like = "in other ways, after" if kind == OTHERS else "like"
                logger.error(
                    "%s: %s more failed again %s line %d; --dead-letters FILE keeps them",
                    *(self._letters, f"{more:,}", like, line),
                    extra=fields,
                )
