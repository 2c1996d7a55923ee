"""A stand-in for a topology that commits epochs, and the plain account of what must be durable after each.

What an epoch brings follows from a seed and its number alone, so that the account needs to know nothing else: it
applies all epochs, one after the other, to dicts. The program keeps its tables as the engine does: it writes what has
changed, and beside it portions of all keys, round after round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec

from stormlet.core.state.commits import Append, Commit, Rows, Shape, StateId, Store, Stored

TOTAL, SEEN, LAST = StateId("count", "total"), StateId("count", "seen"), StateId("latest", "value")
SHAPES = {
    TOTAL: Shape("value", "str", "int"),
    SEEN: Shape("map", "str", "bytes"),
    LAST: Shape("value", "str", "int"),
}
KEYS = {TOTAL: 40, SEEN: 25, LAST: 5}
TASKS = ["lines[0]", "lines[1]", "orders[0]"]
COMMITTERS = ["ledger", "mail"]

Key = str
Value = int | bytes | None
Changes = Mapping[Key, Value]


def random_of(seed: int, epoch: int, what: str) -> Random:
    return Random(f"{seed} {epoch} {what}")


def changes(seed: int, epoch: int, state: StateId) -> Changes:
    """Of each state now and then none, sometimes a large value."""
    random = random_of(seed, epoch, str(state))
    count = random.choice([0, 1, 3, 8])
    keys = [f"k{random.randrange(KEYS[state])}" for _ in range(count)]
    return {
        key: random.choice([None, epoch, epoch, random.randbytes(random.choice([3, 9000]))]) for key in keys
    }


def positions(seed: int, epoch: int) -> Mapping[str, bytes]:
    random = random_of(seed, epoch, "positions")
    return {task: b"%d" % epoch for task in TASKS if random.random() < 0.6}


def outbox(seed: int, epoch: int) -> Sequence[Rows]:
    random = random_of(seed, epoch, "outbox")
    return [Rows(each, epoch, random.randbytes(20)) for each in COMMITTERS if random.random() < 0.6]


def letters(seed: int, epoch: int) -> Sequence[bytes]:
    random = random_of(seed, epoch, "letters")
    return [random.randbytes(9) for _ in range(random.choice([0, 0, 1, 2]))]


def delivered(seed: int, epoch: int) -> Sequence[tuple[str, int]]:
    random = random_of(seed, epoch, "delivered")
    return [(each, epoch - random.randint(1, 3)) for each in COMMITTERS if random.random() < 0.7]


def letters_delivered(epoch: int) -> int:
    return max(epoch - 2, 0)


@dataclass
class Account:
    """All that must be durable after an epoch, in plain words."""

    epoch: int = 0
    closed_at: float | None = None
    positions: dict[str, bytes] = field(default_factory=dict)
    states: dict[StateId, dict[Key, Value]] = field(default_factory=dict)
    outbox: list[Rows] = field(default_factory=list)
    letters: list[tuple[int, bytes]] = field(default_factory=list)

    def add(self, seed: int) -> None:
        """One more epoch."""
        self.epoch += 1
        self.closed_at = float(self.epoch)
        self.positions.update(positions(seed, self.epoch))
        for state in KEYS:
            self.states.setdefault(state, {}).update(changes(seed, self.epoch, state))
        had = dict(delivered(seed, self.epoch))
        self.outbox = [rows for rows in self.outbox if rows.epoch > had.get(rows.committer, 0)]
        self.outbox += outbox(seed, self.epoch)
        self.letters = [letter for letter in self.letters if letter[0] > letters_delivered(self.epoch)]
        self.letters += [(self.epoch, letter) for letter in letters(seed, self.epoch)]

    @property
    def live(self) -> dict[StateId, dict[Key, Value]]:
        return without_deleted(self.states)


def account(seed: int, epoch: int) -> Account:
    found = Account()
    for _ in range(epoch):
        found.add(seed)
    return found


def read(stored: Stored) -> Account:
    """What is durable, as a run takes it up: the newest value of a key wins."""
    return Account(
        stored.epoch,
        stored.closed_at,
        dict(stored.positions),
        {state: decoded(stored.blobs(state)) for state in KEYS},
        list(stored.outbox),
        list(stored.letters),
    )


def decoded(blobs: Iterable[bytes]) -> dict[Key, Value]:
    found: dict[Key, Value] = {}
    for blob in blobs:
        found.update(msgspec.msgpack.decode(blob))
    return found


def without_deleted(states: Mapping[StateId, Mapping[Key, Value]]) -> dict[StateId, dict[Key, Value]]:
    live = {
        state: {key: value for key, value in values.items() if value is not None}
        for state, values in states.items()
    }
    return {state: values for state, values in live.items() if values}


def differences(stored: Stored, seed: int, *, past: bool = False) -> Iterator[str]:
    """Where it is not all of its epoch and nothing else; of a past one, rows may have been delivered since."""
    found, expected = read(stored), account(seed, stored.epoch)
    if found.live != expected.live:
        yield f"states after epoch {stored.epoch}"
    for name in ("closed_at", "positions") if past else ("closed_at", "positions", "outbox", "letters"):
        if getattr(found, name) != getattr(expected, name):
            yield f"{name} after epoch {stored.epoch}: {getattr(found, name)}, not {getattr(expected, name)}"


class Program:
    """One run, from what is durable."""

    def __init__(self, store: Store, seed: int, history: float = 0.0) -> None:
        self._seed = seed
        self._history = history
        self._store = store
        stored = store.load()
        store.declare(SHAPES)
        self.epoch = stored.epoch
        self._live = {state: read(stored).live.get(state, {}) for state in KEYS}
        self._round = {state: list(live) for state, live in self._live.items()}
        self._begun = {state for state in KEYS if state in stored.states}
        """A round that was begun before may have ended in its midst: what is written first is the rest of it."""

    def run(self, epochs: int) -> None:
        for _ in range(epochs):
            self.commit()

    def commit(self) -> None:
        self._store.commit(self.next())
        self.epoch += 1

    def next(self) -> Commit:
        """The next epoch, which is sealed by this: the tables go on from it."""
        epoch = self.epoch + 1
        return Commit(
            epoch,
            float(epoch),
            positions(self._seed, epoch),
            [append for state in KEYS for append in self._appends(state, changes(self._seed, epoch, state))],
            outbox(self._seed, epoch),
            letters(self._seed, epoch),
            delivered(self._seed, epoch),
            letters_delivered(epoch),
            history=self._history,
        )

    def _appends(self, state: StateId, changed: Changes) -> Iterator[Append]:
        if not changed:
            return
        live, rest = self._live[state], self._round[state]
        if begins := not rest or state not in self._begun:
            self._begun.add(state)
            rest[:] = live
        count = len(changed) // 2 + 1
        portion = {key: live[key] for key in rest[:count] if key in live}
        del rest[:count]
        for key, value in changed.items():
            if value is None:
                live.pop(key, None)
            else:
                live[key] = value
        yield Append(state, msgspec.msgpack.encode({**portion, **changed}), begins)
