"""Bugs planted in the engine's epochs, each of which lives that are cut short must bring to light:
``python -m tests.epochs.planted_bugs --seeds 1000``."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from stormlet.core.state.commits import Commit
from stormlet.core.state.epochs import Attempt, EpochAccount
from stormlet.core.state.outgoing import Epoch, Outgoing, OutgoingTable
from stormlet.core.state.redeliveries import Given, Redeliveries
from stormlet.core.state.value_table import ValueTable
from stormlet.runtime.bolt.epoch_worker import EpochWorker
from stormlet.runtime.epochs.keeper import EpochKeeper
from stormlet.runtime.epochs.sources import Sources
from stormlet.runtime.epochs.wave import Wave
from stormlet.runtime.epochs.writer import EpochWriter
from stormlet.runtime.spout.feeds import KeptFeed
from stormlet.runtime.spout.positions import Position
from stormlet.state.memory import MemoryStore
from tests.epochs.lives import Lives

Patch = pytest.MonkeyPatch
A_WRITE = 0.005
"""Seconds that a write takes which should have come first."""


def _late(writer: Any, write: Callable[[], None]) -> None:
    """Have a write that is under way take a moment."""
    writer._activity.begin()

    def finish() -> None:
        write()
        writer._activity.end()

    writer._loop.call_later(A_WRITE, finish)


def tells_before_the_commit(patch: Patch) -> None:
    """Law X3."""
    write = EpochWriter.write

    def told_first(
        writer: Any, commit: Commit, then: Callable[[], None], first: Callable[[], None] | None = None
    ) -> None:
        then()
        _late(writer, lambda: write(writer, commit, lambda: None, first))

    patch.setattr(EpochWriter, "write", told_first)


def rows_are_delivered_before_they_are_durable(patch: Patch) -> None:
    """Law X9."""
    write, commit_of = EpochWriter.write, EpochKeeper._commit_of

    def early(keeper: Any, closed: Any, cut: Any) -> Commit:
        commit = commit_of(keeper, closed, cut)
        for each in keeper._state._committers:
            each.written()
        for committer in keeper._committers:
            committer.deliver()
        return commit

    patch.setattr(EpochKeeper, "_commit_of", early)
    patch.setattr(
        EpochWriter,
        "write",
        lambda writer, commit, then, first=None: _late(writer, lambda: write(writer, commit, then, first)),
    )


def the_overlay_is_stale(patch: Patch) -> None:
    """What a spoilt attempt has changed stays (law K3)."""
    patch.setattr(ValueTable, "roll_back", lambda table: None)


def the_position_is_one_too_far(patch: Patch) -> None:
    """Law X8."""
    after = KeptFeed.position_after

    def too_far(feed: Any, messages: Sequence[Any]) -> bytes | None:
        found = after(feed, messages)
        return found and Position(msgspec.msgpack.decode(found, type=Position).count + 1, None).encoded()

    patch.setattr(KeptFeed, "position_after", too_far)


def committers_are_called_out_of_order(patch: Patch) -> None:
    """The last epoch first, and the next one does not wait (law X4, X9)."""
    first, had = Outgoing.first.fget, Outgoing.had
    assert first is not None

    def turned(method: Callable[[Any], Any], outgoing: Any) -> Any:
        outgoing._due.rotate()  # the last one is the first one now
        found = method(outgoing)
        outgoing._due.rotate(-1)
        return found

    def popped(outgoing: Any) -> None:
        outgoing._due.rotate()
        had(outgoing)

    patch.setattr(Outgoing, "first", property(partial(turned, first)))
    patch.setattr(Outgoing, "had", popped)
    patch.setattr(
        EpochKeeper,
        "pending",
        property(lambda keeper: keeper._epoch.own + keeper._sources.backlog),
    )


def the_outbox_is_not_forgotten(patch: Patch) -> None:
    """It grows for ever (law X9)."""
    note = MemoryStore.note_delivered
    patch.setattr(MemoryStore, "note_delivered", lambda store, rows, letters: note(store, (), letters))


def every_epoch_is_new_to_a_sink(patch: Patch) -> None:
    """``follows`` is always true (law X10)."""
    patch.setattr(Epoch, "follows", lambda epoch, last: True)


def rows_are_not_rolled_back(patch: Patch) -> None:
    """Those of a spoilt attempt come, too (law K3, X9)."""
    patch.setattr(Outgoing, "roll_back", lambda outgoing: None)
    patch.setattr(OutgoingTable, "roll_back", lambda outgoing: None)


def the_next_attempt_is_not_begun(patch: Patch) -> None:
    """Bolts hear of no more ends (law X5)."""
    patch.setattr(Wave, "begin_attempt", lambda wave: None)


def stragglers_of_dead_trees_count(patch: Patch) -> None:
    """Their message is replayed, and counts, too (law X6)."""
    patch.setattr(Attempt, "is_dead", lambda attempt, roots: False)


def the_instance_of_an_epoch_bolt_is_kept(patch: Patch) -> None:
    """It has what it had in the attempt before (law X5)."""

    async def keep(worker: Any, out: object) -> None:
        worker._state.has_gathered = False

    patch.setattr(EpochWorker, "_begin", keep)


def no_failure_spoils_an_attempt(patch: Patch) -> None:
    """What has reached state is replayed alone (law X6)."""
    patch.setattr(Attempt, "has_reached", lambda attempt, root: False)


def messages_that_come_late_leave_a_gap(patch: Patch) -> None:
    """Those before them are in a later epoch, and the position passes over them (law X7, X8)."""
    patch.setattr(EpochAccount, "rejoin", lambda account: ())


def messages_may_come_after_the_end(patch: Patch) -> None:
    """The bolts that were told of it do not count them (law X5)."""
    patch.setattr(EpochKeeper, "_is_too_late", lambda keeper: False)


def dead_letters_are_not_kept(patch: Patch) -> None:
    """Those of an epoch that was not told are lost (law X1)."""
    patch.setattr(Sources, "letters_of", lambda sources, given_up: ())


def what_a_broker_gives_again_counts_again(patch: Patch) -> None:
    """Durable messages that were not acked are not remembered (law X8)."""
    patch.setattr(Redeliveries, "seal", lambda redeliveries, message_ids: redeliveries._acked.clear())


def what_is_under_way_comes_twice(patch: Patch) -> None:
    """What a broker gives again before it is durable is executed again (law X8)."""
    give = Redeliveries.give

    def given(redeliveries: Redeliveries, task: int, message_id: object, value: object) -> Given:
        found = give(redeliveries, task, message_id, value)
        return Given.FIRST if found is Given.UNDER_WAY else found

    patch.setattr(Redeliveries, "give", given)


def acks_count_before_they_have_returned(patch: Patch) -> None:
    """One that raises has not reached the broker, which gives its message again (law X8)."""
    tell = Redeliveries.tell

    def told(redeliveries: Redeliveries, task: int, message_id: object) -> bool:
        redeliveries.acked(message_id)
        return tell(redeliveries, task, message_id)

    patch.setattr(Redeliveries, "tell", told)


BUGS: Sequence[Callable[[Patch], None]] = [
    tells_before_the_commit,
    rows_are_delivered_before_they_are_durable,
    the_overlay_is_stale,
    the_position_is_one_too_far,
    committers_are_called_out_of_order,
    the_outbox_is_not_forgotten,
    every_epoch_is_new_to_a_sink,
    rows_are_not_rolled_back,
    the_next_attempt_is_not_begun,
    stragglers_of_dead_trees_count,
    the_instance_of_an_epoch_bolt_is_kept,
    no_failure_spoils_an_attempt,
    messages_may_come_after_the_end,
    dead_letters_are_not_kept,
    what_a_broker_gives_again_counts_again,
    what_is_under_way_comes_twice,
    acks_count_before_they_have_returned,
]


RARE = [messages_that_come_late_leave_a_gap]
"""Those that take hundreds of seeds."""


SHORT_FORM_BEGINS_AT = {messages_may_come_after_the_end: 600}
"""The first seed of the test, for those that the first hundred do not find."""


def found_by(bug: Callable[[Patch], None], seeds: int, first: int = 0) -> tuple[int, str] | None:
    """The first seed that brings a bug to light, and what was wrong; None if none of so many does."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        for seed in range(first, first + seeds):
            lives = Lives(seed)
            try:
                lives.run()
            except Exception as error:
                return seed, f"{type(error).__name__}: {error}"
            if found := lives.differences():
                return seed, ", ".join(found)
    return None


def main() -> None:
    """Plant one bug after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    seeds = parser.parse_args().seeds
    logging.disable(logging.CRITICAL)
    missed = 0
    for bug in [*BUGS, *RARE]:
        found = found_by(bug, seeds)
        missed += found is None
        said = f"not in {seeds} seeds" if found is None else f"seed {found[0]}: {found[1]}"
        print(f"{bug.__name__}: {said}"[:200], flush=True)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
