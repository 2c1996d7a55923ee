"""The account of an epoch: its messages, what spoils an attempt, and what the next one is made of (law X2, X6, X7).

Theory of operation
-------------------
An *epoch* is a number of messages whose effects become durable together. While it is open, sources emit and state
changes; when all of its trees are settled, it is committed. Nobody outside hears of it before (law X3).

Most failures need no more than a replay. What has failed *before it reached state* has changed nothing, so it is
emitted again alone, as everywhere else (law S6). A bolt with state drops what is left of its old tree, so that the
message does not count twice.

A message that fails *after* it has reached state is another matter: state has the one half of it, and the other half
failed. It *spoils* the attempt: all that the attempt has changed is forgotten, and another attempt begins. That may
not be the same again. With a failure in each thousand messages and epochs of ten thousand, whole repetitions would
never end. So the epoch is *cut*: the next attempt is made of the messages before the first one that has spoilt this
one, all of which have succeeded once. The rest belongs to later epochs, the first of which begins with the message that
failed, and which are as long as what was committed and grow by a quarter each time. If the first message of an epoch
spoils it, it is tried alone, with nothing else to be done again, until it succeeds or is given up. So each attempt but
one at a lone message is followed by a commit, or is shorter than the one before, and a run gets on at any rate of
failures.

A source that was asked before a cut may emit after it, out of its turn: the messages that were cut off come before. An
epoch with such a *late* message and without these would have the position of its source pass over them. So these join
it, or the late one comes after them where the attempt is repeated anyway.

A message that was given up keeps its place: it becomes a dead letter by the commit of its epoch, and its source goes on
after it. It is left out of attempts. So if it has spoilt one, there is no need for a cut: the attempt goes on, to find
what else is to be left out, and is then repeated. With a rejected message in each hundred and a cut for each, epochs
would never be longer than that.

What fails and belongs to no message, as what a ``tick`` has emitted, leaves nothing to cut. Then the whole attempt is
repeated, and :attr:`EpochAccount.fruitless` counts these in a row.

An epoch that a source has cut itself is *whole* (law X8): the same messages must come under its number in every run. So
no attempt at it is cut, whatever fails. Each goes on to its end, to find what else fails, and is repeated without what
was given up by then. :attr:`EpochAccount.vain` counts those in a row after which nothing was.

:class:`Attempt` knows by root what has reached state. It is shared by the tasks that have state, which note it, and
the trackers of the spouts, which ask for it when a tree has failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Generic, TypeVar

import msgspec

M = TypeVar("M")


class Attempt:
    """The trees of one attempt, as far as state is concerned."""

    __slots__ = ("_dead", "has_dead", "is_entangled", "reached")

    def __init__(self) -> None:
        # Dicts and no sets, as everywhere in the engine (law L16).
        self.reached: dict[int, None] = {}
        """The roots of the trees that have reached state."""
        self.has_dead = False
        """True if a tree has failed, so that tasks with state must ask :meth:`is_dead`."""
        self._dead: dict[int, None] = {}
        self.is_entangled = False
        """True if a call has emitted for its input without anchoring to it: what came of that input cannot be told."""

    def reach(self, roots: Iterable[int]) -> None:
        """Note that a tuple of these trees has reached state, a timer or a committer."""
        for root in roots:
            self.reached[root] = None

    def has_reached(self, root: int) -> bool:
        """Return True if a tuple of this tree has reached state, or may have."""
        return root in self.reached or self.is_entangled

    def bury(self, root: int) -> None:
        """Note that this tree has failed: what is left of it must not reach state."""
        self._dead[root] = None
        self.has_dead = True

    def is_dead(self, roots: Iterable[int]) -> bool:
        """Return True if one of these trees has failed."""
        return any(root in self._dead for root in roots)

    def begin(self) -> None:
        """Another attempt begins, when nothing of the last one is left anywhere (law X2)."""
        self.reached.clear()
        self._dead.clear()
        self.has_dead = self.is_entangled = False


class Closed(msgspec.Struct, Generic[M], frozen=True):
    """An epoch that is over and may be committed."""

    number: int
    messages: Sequence[M]
    """All of its messages, in the order of their first emission."""
    given_up: Sequence[M]
    """Those among them that become dead letters."""


class EpochAccount(Generic[M]):
    """The open epoch, and the messages that were emitted once and belong to later ones."""

    def __init__(self, most: int, number: int = 1) -> None:
        """``most`` is the number of messages of a full epoch (``epoch_messages``), ``number`` that of the first."""
        self.number = number
        """The number of the open epoch."""
        self.attempt = 1
        """The number of the attempt at it."""
        self.fruitless = 0
        """Attempts in a row that have failed without a message to blame."""
        self.is_lone = False
        """True if the attempt is one at a single message, which has spoilt the last one (law X7)."""
        self.messages: list[M] = []
        """The messages of the open epoch, in the order of their first emission. It is the same list for ever: who emits
        a message appends it, without a call for each."""
        self.vain = 0
        """Attempts in a row at a whole epoch that have failed without a message being given up."""
        self.is_whole = False
        """True if attempts at the open epoch are never cut (law X8)."""
        self._most = most
        self._size = most
        self._later: deque[M] = deque()
        self._begun = 0
        """The number of messages with which the attempt has begun."""
        self._given_up: dict[M, None] = {}
        # Of the first message that has spoilt the attempt; all that is before it has not.
        self._spoilt_at: int | None = None
        self._given_up_before = 0
        """The number of messages that were given up when the attempt began."""
        self._lacks = False
        """True if the attempt is to be repeated without a cut."""
        self._fails_by_itself = False
        self._was_cut = False

    def __len__(self) -> int:
        """The number of messages in the open epoch."""
        return len(self.messages)

    def __iter__(self) -> Iterator[M]:
        """Go over the messages of the open epoch and of later ones, in the order of their first emission."""
        return chain(self.messages, self._later)

    @property
    def later(self) -> int:
        """The number of messages that were emitted once and belong to later epochs."""
        return len(self._later)

    @property
    def room(self) -> int:
        """The number of messages that the open epoch still takes from the sources."""
        return self._size - len(self.messages)

    @property
    def spoilt(self) -> bool:
        """True if the attempt has failed, so that what it has changed must be forgotten."""
        return self._lacks or self.is_broken_off

    @property
    def is_broken_off(self) -> bool:
        """True if nothing more is to be emitted in the attempt."""
        return self._spoilt_at is not None or self._fails_by_itself

    def spoil(self, message: M) -> None:
        """A message has failed that has reached state in this attempt."""
        if self.is_whole:
            self._lacks = True
            return
        end = len(self.messages) if self._spoilt_at is None else self._spoilt_at
        # Looked for where it matters alone: what comes after the first one changes nothing.
        with suppress(ValueError):
            self._spoilt_at = self.messages.index(message, 0, end)

    def spoil_by_given_up(self) -> None:
        """A message was given up that has reached state in this attempt: the next one is made of all the others."""
        self._lacks = True

    def spoil_by_newcomers(self) -> None:
        """Messages have come while an epoch that had none was coming to its end: they join it, and the next attempt is
        made of them (law X7)."""
        self._lacks = True

    def spoil_by_itself(self) -> None:
        """Something has failed that belongs to no message."""
        self._fails_by_itself = True

    def give_up(self, message: M) -> None:
        """A message is tried no more: it becomes a dead letter with its epoch."""
        self._given_up[message] = None

    def repeat(self) -> Sequence[M]:
        """Begin another attempt after one that was spoilt; return the messages to be emitted, in their order. Nothing
        of the last attempt may be under way."""
        self.attempt += 1
        late = self._take_late()
        self.is_lone = self._spoilt_at == 0
        self.vain = self.vain + 1 if len(self._given_up) == self._given_up_before else 0
        self._given_up_before = len(self._given_up)
        is_fruitless = self._spoilt_at is None and not self._lacks
        self.fruitless = self.fruitless + 1 if is_fruitless else 0
        if self._spoilt_at is not None:
            self._cut(max(min(self._spoilt_at, len(self.messages)), 1))
        self._later.extend(late)
        self._spoilt_at = None
        self._fails_by_itself = self._lacks = False
        self._begun = len(self.messages)
        return self._to_emit()

    def close(self) -> Closed[M]:
        """End the epoch, of which nothing is under way; the next one is open from now on."""
        messages = self.messages.copy()
        self.messages.clear()
        given_up = [each for each in messages if each in self._given_up] if self._given_up else []
        for each in given_up:
            del self._given_up[each]
        closed = Closed(self.number, messages, given_up)
        # A quarter more, unless it was cut: then as long as it has come to be.
        grown = self._size if self._was_cut else self._size + max(1, self._size // 4)
        self._size = min(self._most, grown)
        self._was_cut = False
        self.number += 1
        self.attempt = 1
        self.fruitless = self.vain = 0
        self._given_up_before = len(self._given_up)
        self.is_lone = self.is_whole = False
        return closed

    def give_back(self, spout: Callable[[M], bool]) -> Sequence[M]:
        """Take out the messages of a spout, which has them again, and return them; the attempt is to be repeated
        without them. Nothing may be under way."""
        back = [each for each in self.messages if spout(each)]
        self.messages[:] = [each for each in self.messages if not spout(each)]
        for each in back:
            self._given_up.pop(each, None)
        self.is_whole = False
        self._lacks = True
        return back

    def resume(self) -> Sequence[M]:
        """Take what was left for later into the epoch that has just been opened, as much as it may have; return the
        messages to be emitted."""
        self.messages += [self._later.popleft() for _ in range(min(self._size, len(self._later)))]
        self._begun = len(self.messages)
        return self._to_emit()

    def rejoin(self) -> Sequence[M]:
        """Close the gap before messages that have come late; return those to be emitted with them. Nothing may be under
        way."""
        late = self._take_late()
        if not late:
            return ()
        joining = [*self._later]
        self._later.clear()
        self.messages += [*joining, *late]
        return [each for each in joining if each not in self._given_up]

    def _take_late(self) -> Sequence[M]:
        """Take out what a source has emitted after those that are of later epochs: it was asked before the cut."""
        if not self._later:
            return ()
        late = self.messages[self._begun :]
        del self.messages[self._begun :]
        return late

    def _cut(self, length: int) -> None:
        self._later.extendleft(reversed(self.messages[length:]))
        del self.messages[length:]
        self._size = length
        self._was_cut = True

    def _to_emit(self) -> Sequence[M]:
        return [each for each in self.messages if each not in self._given_up]
