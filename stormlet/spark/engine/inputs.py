"""The inputs of one partition, each with a tree of its own there, and the outcomes of these trees.

A tree has a root that counts up, and spans what becomes of one attempt at one input within the partition. An input that
fails is executed again under another root, so that outputs of a failed attempt are known by their root (law S6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final, cast

import msgspec

from stormlet.core.ledger import Ledger, OpenTree
from stormlet.core.outcomes import Failure, FailureKind, History
from stormlet.core.retries import ReplayPolicy
from stormlet.core.tuples import AnyTuple, JoinedTuple, Source
from stormlet.runtime.wire.outbox import Control
from stormlet.spark.engine.account import Account
from stormlet.spark.engine.exits import Dropped

NO_WORD: Final = 0
"""The word of a message, which its spout emits in this partition."""


class Input(msgspec.Struct):
    """One input, in all its attempts here."""

    target: int
    """The id of the task that it is for."""
    value: Any
    source: Source
    messages: tuple[int, ...]
    """The roots of the messages that it belongs to; none if it is untracked."""
    word: int
    attempt: int
    attempts: int
    """Attempts so far that count (law S6)."""
    history: History = msgspec.field(default_factory=History)


class GivenUp(msgspec.Struct, frozen=True):
    """An input that was given up, and with it its messages."""

    messages: tuple[int, ...]
    attempts: int
    history: History


class Inputs:
    """Those that are not settled, and as much of the others as their outputs need."""

    def __init__(self, account: Account, policy_of: Callable[[int], ReplayPolicy]) -> None:
        """``policy_of`` gives the policy for a message, by its root."""
        self.given_up: list[GivenUp] = []
        self.replayed: dict[int, int] = {}
        """By root, the attempts of messages that were acked here after more than one."""
        self._account = account
        self._policy_of = policy_of
        self._ledger = Ledger()
        self._roots = count(1)
        self._open: dict[int, Input] = {}
        self._acked: dict[int, tuple[int, ...]] = {}
        self._failed: dict[int, None] = {}

    def new_root(self) -> int:
        """Return the root for one attempt at one input."""
        return next(self._roots)

    def begin(self, attempts: Iterable[tuple[int, int, Input]]) -> None:
        """Begin attempts: each is the root, the XOR of the edges that it was delivered with, and the input."""
        inits: dict[int, OpenTree] = {}
        for root, checksum, each in attempts:
            self._open[root] = each
            inits[root] = OpenTree(message_id=root, checksum=checksum)
        self._ledger.init(inits)

    def post(self, control: Control) -> None:
        """Take note of acks and fails of bolts."""
        self._ledger.ack(control.acks)
        for root, failure in control.fails:
            self._ledger.fail(root, failure)

    def settle(self, left: Mapping[int, int]) -> Sequence[Input]:
        """Take the outcomes so far; return the inputs that are to be executed again. ``left`` has the edges of what
        has been emitted to other stages, by root: to the trees here that is done."""
        self._ledger.ack(left)
        acked, failed = self._ledger.take_verdicts()
        for tree in acked:
            self._ack(cast("int", tree.message_id))
        again = [self._fail(cast("int", tree.message_id), tree.failure) for tree in failed]
        return [each for each in again if each is not None]

    def fail_held(self, holders: Mapping[int, tuple[str, ...]]) -> None:
        """Fail what is still open, though bolts were flushed and have finished: nothing would ever settle it.
        ``holders`` are the components that hold tuples, by root."""
        for root in list(self._open):
            self._ledger.fail(
                root,
                Failure(
                    FailureKind.TIMEOUT,
                    reason="it was still held when its bolt had finished",
                    holders=holders.get(root, ()),
                    permanent=True,
                ),
            )

    @property
    def any_open(self) -> bool:
        """True if some have no outcome yet."""
        return bool(self._open)

    def forget(self) -> None:
        """Forget what is settled: no output waits for it any more."""
        self._acked.clear()
        if not self._open:
            self._failed.clear()

    def messages_of(self, tup: AnyTuple) -> tuple[int, ...] | None:
        """Return the roots of the messages that an output belongs to; None while trees of it are open. Raise
        :class:`Dropped` if it comes from failed attempts alone."""
        if tup.root in self._acked:
            return self._acked[tup.root]
        if tup.root:
            if tup.root in self._failed:
                raise Dropped
            return None
        roots = tup.roots if isinstance(tup, JoinedTuple) else ()
        if any(root in self._open for root in roots):
            return None
        acked = [self._acked[root] for root in roots if root in self._acked]
        if roots and not acked:
            raise Dropped
        return tuple(dict.fromkeys(message for messages in acked for message in messages))

    def _ack(self, root: int) -> None:
        each = self._open.pop(root)
        self._acked[root] = each.messages
        self._done(each)
        if each.attempt > 1:
            for message in each.messages:
                self.replayed[message] = max(each.attempt, self.replayed.get(message, 1))

    def _fail(self, root: int, failure: Failure | None) -> Input | None:
        assert failure is not None, "a failed tree says why"
        each = self._open.pop(root)
        self._failed[root] = None
        each.history = each.history.and_also(failure)
        if self._gives_up(each, failure):
            self._done(each)
            self.given_up.append(GivenUp(each.messages, each.attempts, each.history.without_frames()))
            return None
        each.attempt += 1
        return each

    def _gives_up(self, each: Input, failure: Failure) -> bool:
        # Nobody waits for what belongs to no message, so that it is not tried again (law L10).
        if not each.messages:
            return True
        policy = self._policy_of(each.messages[0])
        each.attempts += policy.counts(failure)
        return policy.gives_up(failure, each.attempts)

    def _done(self, each: Input) -> None:
        if each.word != NO_WORD:
            self._account.settled(each.word)
