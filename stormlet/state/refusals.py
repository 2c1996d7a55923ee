"""Sentences that all stores share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stormlet.core.state.commits import Commit, StateId
from stormlet.errors import StateUnusable


class NotBegun(StateUnusable):
    """A file or directory is there, and no run has begun with it."""


LARGEST = 512 * 2**20
"""Bytes of the largest blob: sqlite has no larger ones than 10⁹ bytes."""

DISK_FULL = (
    "cannot be written, as its disk is full; free some space and start again: no committed epoch is lost"
)
DISK_WORKS = "see that its disk works and has space, and start again: no committed epoch is lost"


def refuse_gap(place: object, epoch: int, last: int) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for an epoch that does not follow the last one (law X2)."""
    if epoch != last + 1:
        raise StateUnusable(
            f"{place} ends with epoch {last}, so epoch {epoch} cannot be added: something else has written to it since "
            f"this run has read it; end that, and start again"
        )


def refuse_unkept(place: object, epoch: int, first: int, last: int) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for an epoch that cannot be read any more, or not yet."""
    if not first <= epoch <= last:
        raise StateUnusable(f"{place} does not have epoch {epoch}; it has those from {first} to {last}")


def refuse_unknown(place: object, component: str, known: Iterable[str]) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for a component of which nothing is kept."""
    names = sorted(known)
    if component not in names:
        raise StateUnusable(f"{place} has nothing of {component!r}; it has what belongs to: {listed(names)}")


def refuse_taken(place: object, old: str, new: str, known: Iterable[str]) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for another id by which something is kept already."""
    if new in known:
        raise StateUnusable(
            f"{place} has something of {new!r} already, so that {old!r} cannot be called that; forget one of them first"
        )


def refuse_no_state(place: object, state: StateId, known: Iterable[StateId]) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for a state that is not there."""
    states = list(known)
    if state not in states:
        raise StateUnusable(f"{place} has no state {str(state)!r}; it has {listed(map(str, states))}")


def listed(names: Iterable[str]) -> str:
    """Return names in one line."""
    return ", ".join(map(repr, sorted(names))) or "nothing"


def component_of(task: str) -> str:
    """``lines[0]`` -> ``lines``."""
    return task.rpartition("[")[0] or task


def refuse_large(place: object, commit: Commit) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for a blob that no file can hold."""
    for what, blob in _blobs(commit):
        if len(blob) > LARGEST:
            raise StateUnusable(
                f"{what} has {len(blob)} bytes to keep of epoch {commit.epoch}, of which {place} takes at most "
                f"{LARGEST} in one piece; make epochs shorter, by epoch_messages= or epoch_seconds="
            )


def _blobs(commit: Commit) -> Iterator[tuple[str, bytes]]:
    for append in commit.appends:
        yield f"the state {append.state}", append.blob
    for rows in commit.outbox:
        yield f"the committer {rows.committer!r}", rows.blob
    for task, position in commit.positions.items():
        yield f"the source {task}", position
    for letter in commit.letters:
        yield "a dead letter", letter
