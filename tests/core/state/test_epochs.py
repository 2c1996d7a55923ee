"""The account of an epoch: what spoils an attempt, and what the next one is made of (law X2, X6, X7)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.state.epochs import Attempt, EpochAccount


def account_of(*messages: str, most: int = 10) -> EpochAccount[str]:
    """An open epoch with these messages."""
    account = EpochAccount[str](most)
    for each in messages:
        account.messages.append(each)
    return account


def test_an_epoch_without_failures_is_closed_with_all_of_its_messages() -> None:
    """What was emitted is committed, in the order of its emission."""
    closed = account_of("a", "b").close()
    assert (closed.number, closed.messages, closed.given_up) == (1, ["a", "b"], [])


def test_epochs_are_numbered_without_gaps_whatever_attempts_they_take() -> None:
    """An attempt changes the number of the attempt alone (law X2)."""
    account = account_of("a", "b")
    account.spoil("b")
    account.repeat()
    assert (account.number, account.attempt) == (1, 2)
    account.close()
    assert (account.number, account.attempt) == (2, 1)


def test_the_next_attempt_has_the_messages_before_the_first_that_has_spoilt_this_one() -> None:
    """Of several that have failed the first one in the order of emission counts (law X7)."""
    account = account_of("a", "b", "c", "d")
    account.spoil("d")
    account.spoil("b")
    account.spoil("c")
    assert account.repeat() == ["a"]
    assert account.close().messages == ["a"]
    assert account.resume() == ["b"]


def test_what_is_emitted_while_an_attempt_is_spoilt_belongs_to_later_epochs() -> None:
    """A source may give something before it hears of it."""
    account = account_of("a", "b", most=2)
    account.spoil("b")
    account.messages.append("c")
    assert account.repeat() == ["a"]
    assert account.later == 2


def test_the_very_first_message_is_tried_alone() -> None:
    """There is nothing before it that could be committed (law X7)."""
    account = account_of("a", "b", "c")
    account.spoil("a")
    assert account.repeat() == ["a"]
    assert account.is_lone


def test_a_message_that_was_given_up_keeps_its_place_and_is_not_emitted() -> None:
    """Its source goes on after it, so it must be part of a commit."""
    account = account_of("a", "b", "c")
    account.spoil("a")
    account.give_up("a")
    assert account.repeat() == []
    closed = account.close()
    assert (closed.messages, closed.given_up) == (["a"], ["a"])


def test_a_message_given_up_on_its_own_spoils_nothing_and_is_left_out_of_the_next_attempt() -> None:
    """It has not reached state, and its dead letter is part of the epoch (law X6)."""
    account = account_of("a", "b", "c")
    account.give_up("a")
    assert not account.spoilt
    account.spoil("c")
    assert account.repeat() == ["b"]
    assert account.close().given_up == ["a"]


def test_what_is_given_up_after_it_has_reached_state_cuts_nothing() -> None:
    """The attempt goes on, and the next one is made of all the others (law X7)."""
    account = account_of("a", "b", "c", most=3)
    account.give_up("b")
    account.spoil_by_given_up()
    assert (account.spoilt, account.is_broken_off) == (True, False)
    assert account.repeat() == ["a", "c"]
    assert (account.spoilt, account.fruitless, account.later) == (False, 0, 0)
    closed = account.close()
    assert (closed.messages, closed.given_up) == (["a", "b", "c"], ["b"])
    assert account.room == 3


def test_messages_that_come_to_the_end_of_an_epoch_without_any_are_its_own() -> None:
    """Nothing is cut, no message is to blame, and none waits as a replay (law X7)."""
    account = EpochAccount[str](10)
    account.messages += ["a", "b"]
    account.spoil_by_newcomers()
    assert account.spoilt
    assert account.repeat() == ["a", "b"]
    assert (account.is_lone, account.fruitless, account.later, account.room) == (False, 0, 0, 8)


def test_what_is_given_up_beside_a_failure_is_left_out_of_the_part_that_is_repeated() -> None:
    """The failure cuts the attempt, wherever the other one stands."""
    account = account_of("a", "b", "c", "d")
    for each in ("a", "d"):
        account.give_up(each)
        account.spoil_by_given_up()
    account.spoil("c")
    assert account.repeat() == ["b"]
    assert account.close().given_up == ["a"]
    assert account.resume() == ["c"]


def test_what_belongs_to_no_message_has_the_whole_attempt_repeated() -> None:
    """There is nothing to cut; such attempts are counted in a row."""
    account = account_of("a", "b")
    account.spoil_by_itself()
    assert account.repeat() == ["a", "b"]
    account.spoil_by_itself()
    account.repeat()
    assert account.fruitless == 2
    account.spoil("b")
    account.repeat()
    assert account.fruitless == 0


def test_later_epochs_are_as_long_as_what_was_committed_and_grow_by_a_quarter() -> None:
    """A failure is likely to have company, and the run comes back to full epochs (law X7)."""
    account = account_of(*"abcdefghijklmnopqrstuvwxyz", most=26)
    account.spoil("i")
    sizes = [len(account.repeat())]
    while account.close() and account.later:
        sizes.append(len(account.resume()))
    assert sizes == [8, 8, 10]
    assert account.room == 12


def test_a_full_epoch_takes_no_more_from_the_sources() -> None:
    """``epoch_messages`` is its bound."""
    account = account_of("a", "b", most=2)
    assert account.room == 0
    account.close()
    assert account.room == 2


def test_all_messages_that_are_not_sealed_are_there_in_their_order() -> None:
    """Those of the open epoch, and those of later ones."""
    account = account_of("a", "b", "c")
    account.spoil("b")
    account.repeat()
    assert list(account) == ["a", "b", "c"]


def test_where_a_call_has_emitted_without_anchors_every_tree_may_have_reached_state() -> None:
    """Until another attempt begins (law X6)."""
    attempt = Attempt()
    attempt.is_entangled = True
    assert attempt.has_reached(7)
    attempt.begin()
    assert not attempt.has_reached(7)


def test_an_attempt_knows_the_trees_that_have_reached_state_and_those_that_have_failed() -> None:
    """Both are forgotten when another attempt begins."""
    attempt = Attempt()
    attempt.reach((1, 2))
    attempt.bury(3)
    assert (attempt.has_reached(2), attempt.has_reached(3)) == (True, False)
    assert attempt.has_dead
    assert (attempt.is_dead((2, 3)), attempt.is_dead((1,))) == (True, False)
    attempt.begin()
    assert (attempt.has_reached(1), attempt.has_dead) == (False, False)


# --- whole runs ---


class Run:
    """A source whose messages fail after they have reached state, each so many times."""

    def __init__(
        self, failures: Sequence[int], most: int, seen_after: int = 0, max_attempts: int = 5
    ) -> None:
        """A failure is seen after so many further messages were emitted."""
        self.executions = 0
        self.committed: list[int] = []
        self.given_up: list[int] = []
        self._failures = failures
        self._failed = Counter[int]()
        self._unread = deque(range(len(failures)))
        self._seen_after = seen_after
        self._max_attempts = max_attempts
        account = EpochAccount[int](most)
        again: Sequence[int] = ()
        while self._unread or again or len(account):
            self._attempt(account, again)
            if account.spoilt:
                again = account.repeat()
                continue
            closed = account.close()
            self.committed += closed.messages
            self.given_up += closed.given_up
            again = account.resume()

    def _attempt(self, account: EpochAccount[int], again: Sequence[int]) -> None:
        to_emit, left = deque(again), self._seen_after
        while left >= 0 and (to_emit or (self._unread and account.room > 0)):
            if not to_emit:
                account.messages.append(self._unread[0])
            self._execute(account, to_emit.popleft() if to_emit else self._unread.popleft())
            left -= account.spoilt

    def _execute(self, account: EpochAccount[int], message: int) -> None:
        self.executions += 1
        if self._failed[message] < self._failures[message]:
            self._failed[message] += 1
            account.spoil(message)
            if self._failed[message] == self._max_attempts:
                account.give_up(message)


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(1, 20), st.integers(0, 5))
def test_whatever_fails_each_message_is_committed_once_and_in_order(
    failures: list[int], most: int, seen_after: int
) -> None:
    """The run comes to its end, no message is in two epochs, and those that never succeed are given up (law X1, X7)."""
    run = Run(failures, most, seen_after)
    assert run.committed == list(range(len(failures)))
    assert run.given_up == [place for place, count in enumerate(failures) if count >= 5]


@pytest.mark.parametrize(("rate", "executions"), [(1e-5, 1.1), (1e-4, 1.3), (1e-3, 1.6), (1e-2, 2.0)])
def test_a_run_gets_on_at_any_rate_of_failures(rate: float, executions: float) -> None:
    """Executions a message stay below 2 in epochs of 10,000, where whole repetitions would never end from a failure in
    a thousand on."""
    random = Random(7)
    failures = [int(random.random() < rate) for _ in range(200_000)]
    assert Run(failures, 10_000, seen_after=20).executions / len(failures) < executions


def test_what_comes_late_has_those_before_it_with_it() -> None:
    """A source that was asked before the cut emits after it: an epoch has no gap, by which a position would pass."""
    account = account_of("a", "b", "c", "d")
    account.spoil("b")
    assert account.repeat() == ["a"]
    assert account.rejoin() == ()
    account.give_up("c")
    account.messages.append("e")
    assert account.rejoin() == ["b", "d"]
    assert account.close().messages == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("spoilt", ["a", "e", None])
def test_what_comes_late_is_later_than_all_where_the_attempt_is_repeated(spoilt: str | None) -> None:
    """It keeps its place behind those that were cut off before."""
    account = account_of("a", "b", "c", "d")
    account.spoil("b")
    account.repeat()
    account.messages.append("e")
    if spoilt is None:
        account.spoil_by_itself()
    else:
        account.spoil(spoilt)
    assert account.repeat() == ["a"]
    assert list(account) == ["a", "b", "c", "d", "e"]
