"""Dead letters that are part of an epoch: as they are kept, and back again for a sink that lacks them (law X1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.report.letter_records import LetterRecord, read_record, record_of
from stormlet.report.rebuilding import CannotRebuild
from stormlet.runtime.dead_letters import DeadLetters


def kept(letter: DeadLetter, seconds: float) -> bytes:
    """Return a letter as it is kept; ``seconds`` is the time by the wall clock."""
    return msgspec.json.encode(record_of(letter, datetime.fromtimestamp(seconds, UTC)))


def restored(letter: bytes) -> DeadLetter:
    """Return a letter as far as it is known: exceptions have become words, and records of the user's plain data."""
    record = read_record(letter)
    reason = "; ".join(each for each in (record.reason, record.exception) if each)
    failure = Failure(FailureKind[record.cause], record.failed_in, record.failed_task, reason)
    return DeadLetter(
        record.component,
        _value_of(record),
        msgspec.json.decode(record.message_id),
        record.attempts,
        failure,
        _origin_of(record),
        stream=record.stream,
    )


def _value_of(record: LetterRecord) -> object:
    try:
        return record.rebuilt_value({})
    except CannotRebuild:
        return msgspec.json.decode(record.value)


def _origin_of(record: LetterRecord) -> object:
    try:
        return record.rebuilt_origin({})
    except CannotRebuild:
        return msgspec.json.decode(record.origin)


async def hand_over(letters: Sequence[bytes], sink: DeadLetters) -> None:
    """Give a sink what another run has left; raises what it raises."""
    for each in letters:
        letter = restored(each)
        pause = sink.hand_over(letter)
        if pause is not None:
            await pause
        sink.last.append(letter)
