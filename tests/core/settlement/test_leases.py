"""Leases: renewed after each third, lost when they have run out, given up after ``max_hold``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.settlement.leases import Due, Leases


def test_a_lease_is_renewed_after_a_third() -> None:
    """And again a third later."""
    leases = Leases(30, 600)
    leases.hold("a", 0.0)
    assert leases.next_due() == 10.0
    assert leases.due(9.9) == Due([], [], [])
    assert leases.due(10.0) == Due(["a"], [], [])
    leases.renewed(["a"], 10.0)
    assert (leases.next_due(), leases.due(20.0).renew) == (20.0, ["a"])


def test_what_is_settled_is_not_renewed() -> None:
    """Nor is what was settled while the renewal was under way."""
    leases = Leases(30, 600)
    leases.hold("a", 0.0)
    leases.due(10.0)
    leases.release("a")
    leases.renewed(["a"], 10.0)
    leases.release("a")
    assert (len(leases), leases.next_due(), "a" in leases) == (0, None, False)


def test_a_lease_is_lost_when_two_renewals_have_failed() -> None:
    """It is somebody else's from then on."""
    leases = Leases(30, 600)
    leases.hold("a", 0.0)
    assert [leases.due(10.0), leases.due(20.0)] == [Due(["a"], [], [])] * 2
    assert leases.due(30.0) == Due([], ["a"], [])
    assert len(leases) == 0


def test_a_renewal_that_was_not_asked_for_is_due_again_soon() -> None:
    """A thirtieth of the time later, before all others."""
    leases = Leases(30, 600)
    leases.hold("a", 0.0)
    leases.hold("b", 5.0)
    assert leases.due(10.0).renew == ["a"]
    leases.not_renewed(["a", "settled meanwhile"], 10.0)
    assert (leases.next_due(), leases.due(10.9).renew, leases.due(11.0).renew) == (11.0, [], ["a"])
    leases.renewed(["a"], 11.0)
    assert [leases.due(15.0).renew, leases.due(21.0).renew] == [["b"], ["a"]]


def test_a_lease_is_lost_when_no_renewal_was_asked_for() -> None:
    """At its end, and not before."""
    leases = Leases(30, 600)
    leases.hold("a", 0.0)
    for now in range(10, 30):
        assert leases.due(now) == Due(["a"], [], [])
        leases.not_renewed(["a"], now)
    assert leases.due(30.0) == Due([], ["a"], [])


def test_a_lease_that_could_not_be_renewed_ends_at_its_end() -> None:
    """Also where the last try comes less than a thirtieth before it, and whichever of them ends first."""
    leases = Leases(30, 600)
    leases.hold("late", 0.0)
    leases.hold("early", 0.0)
    leases.due(10.0)
    leases.renewed(["late"], 0.3)
    leases.due(20.0)
    leases.not_renewed(["late", "early"], 29.7)
    assert (leases.next_due(), leases.due(30.0).lost) == (30.0, ["early"])
    leases.not_renewed(["late"], 30.1)
    assert (leases.next_due(), leases.due(30.3).lost) == (30.3, ["late"])


def test_a_lease_counts_from_before_the_renewal_was_asked_for() -> None:
    """An answer that came late does not make it longer."""
    leases = Leases(30, 600)
    leases.hold("a", 0.0)
    leases.due(10.0)
    leases.renewed(["a"], 10.0)  # it was answered at 25
    assert [leases.due(25.0).renew, leases.due(35.0).renew, leases.due(45.0).lost] == [["a"], ["a"], ["a"]]


def test_a_message_is_not_held_for_ever() -> None:
    """After ``max_hold`` it is given up."""
    leases = Leases(30, 45)
    leases.hold("a", 0.0)
    for now in (10.0, 20.0, 30.0, 40.0):
        assert leases.due(now).renew == ["a"]
        leases.renewed(["a"], now)
    assert leases.due(50.0) == Due([], [], ["a"])


def test_a_redelivery_does_not_begin_the_time_anew() -> None:
    """``max_hold`` counts from the first delivery."""
    leases = Leases(30, 45)
    leases.hold("a", 0.0)
    leases.hold("a", 40.0)
    assert leases.due(50.0).held_too_long == ["a"]


@pytest.mark.parametrize(("seconds", "max_hold"), [(0, 10), (-1, 10), (11, 10)])
def test_times_that_make_no_sense_are_refused(seconds: float, max_hold: float) -> None:
    """A lease is positive, and no longer than a message is held."""
    with pytest.raises(ValueError, match=f"a lease of {seconds} s"):
        Leases(seconds, max_hold)


@pytest.mark.parametrize("begins", [2.310341538061796, 0.1, 1_764_000_000.1])
def test_three_thirds_are_the_whole(begins: float) -> None:
    """Also where their sum is a last digit short of it: nobody holds a lease for a third longer."""
    leases = Leases(30, 1000)
    leases.hold("a", begins)
    looks = []
    while (at := leases.next_due()) is not None:
        looks.append(leases.due(at))
    assert [(each.renew, each.lost) for each in looks] == [(["a"], []), (["a"], []), ([], ["a"])]


@given(st.lists(st.floats(0.01, 9.0), min_size=1, max_size=60), st.data())
def test_an_owner_is_always_told_before_another_may_have_it(pauses: list[float], data: st.DataObject) -> None:
    """Looked at whenever it is due, with renewals that fail at random, no lease is held past its end."""
    leases, now, ends, number = Leases(30.0, 1000.0), 0.0, dict[int, float](), 0
    for pause in pauses:
        moment = now + pause
        while (at := leases.next_due()) is not None and at <= moment:
            due = leases.due(at)
            for each in due.lost:
                assert at >= ends.pop(each) - 1e-3
            renewed = [each for each in due.renew if data.draw(st.booleans())]
            leases.renewed(renewed, at)
            ends.update(dict.fromkeys(renewed, at + 30.0))
            assert all(end > at for end in ends.values())
        now, number = moment, number + 1
        leases.hold(number, now)
        ends[number] = now + 30.0
