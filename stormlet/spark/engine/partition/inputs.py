"""The inputs of one partition, each with a tree of its own there, and the outcomes of these trees.

A tree has a root that counts up, and spans what becomes of one attempt at one input within the partition. An input that
fails is executed again under another root, so that outputs of a failed attempt are known by their root (law S6).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, Final, cast

import msgspec

from stormlet.core.acks import Acks
from stormlet.core.ledger import Ledger
from stormlet.core.outcomes import Failure, FailureKind, History
from stormlet.core.retries import ReplayPolicy
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Source
from stormlet.runtime.wire.outbox import Control
from stormlet.spark.engine.partition.account import Account
from stormlet.spark.engine.partition.lanes import Dropped
from stormlet.spark.engine.partition.rows import unpacked

NO_WORD: Final = 0
"""The word of a message, which its spout emits in this partition."""


class Batch(msgspec.Struct):
    """Inputs for one task that are executed together, in parallel sequences."""

    target: int
    """The id of the task that they are for."""
    values: Sequence[Any]
    sources: Iterable[Source]
    """The source of each."""
    messages: Sequence[int]
    """The roots of the messages that they belong to, one after another."""
    counts: Sequence[int] = ()
    """The number of messages of each; empty if each has one."""
    attempts: Sequence[int] = ()
    """The attempt of each; empty if each is the first."""
    words: bytes = b""
    """The word of each; empty for messages, which their spout emits in this partition."""
    first: int = 0
    """The root here of the first; those of the others follow."""
    edges: dict[int, int] = msgspec.field(default_factory=dict[int, int])
    """The XOR of the edges that each was delivered with, by root; without those that have none."""
    to_settle: Collection[int] | None = None
    """The places of those that have no outcome yet; None for all. The outputs of the others have left."""

    def messages_of_each(self) -> Sequence[tuple[int, ...]]:
        """Return the messages of each."""
        if not self.counts:
            return [(message,) for message in self.messages]
        left = iter(self.messages)
        return [tuple(islice(left, count)) for count in self.counts]


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
    place: int = 0
    """Its place in the batch that it came with."""


class GivenUp(msgspec.Struct, frozen=True):
    """An input that was given up, and with it its messages."""

    messages: tuple[int, ...]
    attempts: int
    history: History


class Inputs:
    """Those that are not settled, and as much of the others as their outputs need."""

    def __init__(
        self, account: Account, policy_of: Callable[[Sequence[int]], ReplayPolicy], *, replays: bool = True
    ) -> None:
        """``policy_of`` gives the policy for an input, by its messages. With ``replays=False`` one that fails
        is given up at once."""
        self._replays = replays
        self.given_up: list[GivenUp] = []
        self.replayed: dict[int, int] = {}
        """By root, the attempts of messages that were acked here after more than one."""
        self.whole: Batch | None = None
        """A batch, all of which was acked at once while nothing else was open; its outputs may leave as a whole."""
        self._account = account
        self._policy_of = policy_of
        self._ledger = Ledger()
        self._next_root = 1
        self._batch: Batch | None = None
        self._acks: dict[int, int] = {}
        self._fails: list[tuple[int, Failure]] = []
        self._open: dict[int, Input] = {}
        self._acked: dict[int, tuple[int, ...]] = {}

    def new_roots(self, count: int) -> int:
        """Return the first of so many new roots, one for each attempt at one input."""
        first = self._next_root
        self._next_root += count
        return first

    def begin(self, attempts: Iterable[tuple[int, int, Input]]) -> None:
        """Begin attempts: each is the root, the XOR of the edges that it was delivered with, and the input."""
        trees: list[OpenTree] = []
        for root, checksum, each in attempts:
            self._open[root] = each
            trees.append(OpenTree(root=root, message_id=root, checksum=checksum))
        self._ledger.init(trees)

    def begin_batch(self, batch: Batch) -> None:
        """Begin the first attempts here at all inputs of a batch."""
        self._batch = batch

    def post(self, control: Control) -> None:
        """Take note of acks and fails of bolts."""
        self._fails += control.fails
        acks = self._acks
        for root, value in control.acks:
            acks[root] = acks.get(root, 0) ^ value

    def settle(self) -> Sequence[Input]:
        """Take the outcomes so far; return the inputs that are to be executed again."""
        acks, self._acks = self._acks, {}
        fails, self._fails = self._fails, []
        batch, self._batch = self._batch, None
        if batch is not None:
            # Nearly always all is acked, and then one comparison of two dicts says so.
            if not fails and not self._open and acks == batch.edges:
                self._ack_all(batch)
                return ()
            self._take_up(batch)
        self._ledger.ack(Acks(acks.items()))
        for root, failure in fails:
            self._ledger.fail(root, failure)
        return self._verdicts()

    def fail_held(self, holders: Mapping[int, tuple[str, ...]], end: str) -> Sequence[Input]:
        """Fail what is still open, though bolts were flushed, and have finished if they do: nothing would ever settle
        it. ``holders`` are the components that hold tuples, by root; ``end`` is what has come, in words."""
        for root in list(self._open):
            self._ledger.fail(
                root,
                Failure(
                    FailureKind.TIMEOUT,
                    reason=f"it was still held when {end}",
                    holders=holders.get(root, ()),
                    permanent=True,
                ),
            )
        return self._verdicts()

    @property
    def any_open(self) -> bool:
        """True if some have no outcome yet."""
        return bool(self._open)

    def forget(self) -> None:
        """Forget what is settled: no output waits for it any more."""
        self.whole = None
        if self._acked:
            self._acked.clear()
        if not self._open and self._ledger.settled:
            self._ledger = Ledger()  # without the acks of trees that had failed before

    def messages_of(self, roots: Sequence[int]) -> tuple[int, ...] | None:
        """Return the roots of the messages that an output with these roots belongs to; None while trees of it are
        open. Raise :class:`Dropped` if it comes from failed attempts alone."""
        if any(root in self._open for root in roots):
            return None
        acked = [self._acked[root] for root in roots if root in self._acked]
        if roots and not acked:
            raise Dropped
        return tuple(dict.fromkeys(message for messages in acked for message in messages))

    def _ack_all(self, batch: Batch) -> None:
        self.whole = batch
        if batch.words:
            self._account.settled(batch.words, batch.messages, batch.counts)

    def know_all(self, batch: Batch) -> None:
        """Note the messages of each root of a batch that was acked as a whole: some output needs them."""
        if batch.first not in self._acked:
            self._acked.update(enumerate(batch.messages_of_each(), batch.first))

    def _take_up(self, batch: Batch) -> None:
        """Part a batch into its inputs."""
        count = len(batch.values)
        attempts = batch.attempts or repeat(1, count)
        words = unpacked(batch.words) or repeat(NO_WORD, count)
        fields = zip(batch.values, batch.sources, batch.messages_of_each(), words, attempts, strict=True)
        begun: list[tuple[int, int, Input]] = []
        for root, (value, source, messages, word, attempt) in enumerate(fields, batch.first):
            if batch.to_settle is not None and root - batch.first not in batch.to_settle:
                self._settled(word, messages)
                continue
            each = Input(batch.target, value, source, messages, word, attempt, attempt - 1)
            each.place = root - batch.first
            begun.append((root, batch.edges.get(root, 0), each))
        self.begin(begun)

    def _verdicts(self) -> Sequence[Input]:
        acked, failed = self._ledger.take_verdicts()
        for tree in acked:
            self._ack(cast("int", tree.message_id))
        # In the order of the inputs, as concurrent calls fail in another order each time.
        failed.sort(key=lambda tree: cast("int", tree.message_id))
        again = [self._fail(cast("int", tree.message_id), tree.failure) for tree in failed]
        return [each for each in again if each is not None]

    def _ack(self, root: int) -> None:
        each = self._open.pop(root)
        self._acked[root] = each.messages
        self._note_acked(each)

    def _note_acked(self, each: Input) -> None:
        self._settled(each.word, each.messages)
        # Earlier attempts were noted where they were made: of messages that were joined, only some have had them.
        if each.history:
            for message in each.messages:
                self.replayed[message] = max(each.attempt, self.replayed.get(message, 1))

    def _fail(self, root: int, failure: Failure | None) -> Input | None:
        assert failure is not None, "a failed tree says why"
        each = self._open.pop(root)
        each.history = each.history.and_also(failure)
        if self._gives_up(each, failure):
            self._note_given_up(each)
            return None
        each.attempt += 1
        return each

    def _note_given_up(self, each: Input) -> None:
        self._settled(each.word, each.messages)
        self.given_up.append(GivenUp(each.messages, each.attempts, each.history.without_frames()))

    def _gives_up(self, each: Input, failure: Failure) -> bool:
        policy = self._policy_of(each.messages)
        each.attempts += policy.counts(failure)
        return not self._replays or policy.gives_up(failure, each.attempts)

    def _settled(self, word: int, messages: Sequence[int]) -> None:
        if word != NO_WORD:
            self._account.settled_one(word, messages)
