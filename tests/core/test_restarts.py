from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.retries import KEPT_EXACTLY, RestartPolicy, Restarts


def test_pauses_double_up_to_the_longest() -> None:
    """A task that dies again and again waits longer each time, so that no crash loop spins."""
    restarts = Restarts(RestartPolicy(most=6, first_pause=1.0, longest_pause=8.0))
    assert [restarts.pause(0.0) for _ in range(6)] == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


def test_there_is_a_last_restart() -> None:
    """More deaths than the policy allows end it."""
    restarts = Restarts(RestartPolicy(most=2, within=60.0))
    assert [restarts.pause(now) is None for now in (0.0, 10.0, 20.0)] == [False, False, True]
    assert restarts.count == 2


def test_the_window_slides() -> None:
    """Restarts that are long past do not count, neither for the limit nor for the pause."""
    restarts = Restarts(RestartPolicy(most=2, within=60.0, first_pause=1.0))
    assert [restarts.pause(now) for now in (0.0, 50.0, 62.0, 70.0)] == [1.0, 2.0, 2.0, None]
    assert restarts.pause(1000.0) == 1.0


def test_none_may_be_allowed() -> None:
    """With ``most=0`` the first death is the end."""
    assert Restarts(RestartPolicy(most=0)).pause(0.0) is None


def test_what_the_limit_is_compared_with() -> None:
    """Restarts within the window, those after kills left out."""
    restarts = Restarts(RestartPolicy(most=2, within=60.0, first_pause=1.0))
    restarts.pause(0.0)
    restarts.pause_after_kill()
    restarts.pause(50.0)
    assert [restarts.within_window(now) for now in (50.0, 60.9, 61.0, 112.0)] == [2, 2, 1, 0]
    assert restarts.count == 3


def test_kills_are_not_counted() -> None:
    """Whoever kills a task knows why: that is not the crash loop that a limit is for."""
    restarts = Restarts(RestartPolicy(most=1, first_pause=2.0))
    assert [restarts.pause_after_kill() for _ in range(3)] == [2.0, 2.0, 2.0]
    assert restarts.pause(0.0) == 2.0
    assert restarts.count == 4


def test_a_policy_reads_as_a_limit() -> None:
    """Messages say what the limit is."""
    assert str(RestartPolicy()) == "3 restarts within 60 s"
    assert str(RestartPolicy(most=1, within=0.5)) == "1 restart within 0.5 s"


def test_a_thousand_restarts_and_more_are_as_far_apart_as_any() -> None:
    """A float holds no power of two beyond the 1023rd, and a service may be restarted more often than that."""
    restarts = Restarts(RestartPolicy(most=1_000_000, within=7 * 86400.0))
    pauses = [restarts.pause(10.0 * count) for count in range(3000)]
    assert set(pauses[7:]) == {10.0}


SECONDS = st.floats(0.0, sys.float_info.max)


@given(
    within=st.floats(0.0, sys.float_info.max, exclude_min=True),
    first=SECONDS,
    longest=SECONDS,
    deaths=st.lists(SECONDS, min_size=1).map(sorted),
    before=st.integers(0, 3000),
)
def test_no_pause_is_longer_than_the_longest(
    within: float, first: float, longest: float, deaths: list[float], before: int
) -> None:
    """Whatever the settings are, and however often it has died: a number of seconds from 0 to the longest."""
    restarts = Restarts(RestartPolicy(1_000_000, within, first, longest))
    pauses = [restarts.pause(0.0) for _ in range(before)]
    pauses += [restarts.pause(now) for now in deaths]
    pauses.append(restarts.pause_after_kill())
    assert all(pause is not None and 0.0 <= pause <= longest for pause in pauses)


def test_very_many_restarts_take_the_room_of_two_thousand() -> None:
    """The limit holds at the last of them, and the window is exact to a thousandth of itself."""
    restarts = Restarts(RestartPolicy(100_000, within=1000.0, first_pause=0.0))
    assert all(restarts.pause(count / 100) == 0.0 for count in range(100_000))
    assert restarts.pause(999.995) is None
    assert len(restarts._recent) <= 2 * KEPT_EXACTLY + 1  # pyright: ignore[reportPrivateUsage] - its size is the subject
    assert 50_000 <= restarts.within_window(1500.0) <= 50_100
    assert restarts.within_window(2001.0) == 0


def test_up_to_a_thousand_restarts_are_counted_to_the_moment() -> None:
    """However close together they are."""
    restarts = Restarts(RestartPolicy(KEPT_EXACTLY, within=60.0, first_pause=0.0))
    for count in range(KEPT_EXACTLY):
        restarts.pause(count / 1000)
    assert [restarts.within_window(60.0 + count / 1000) for count in (0, 1, 500, 999)] == [999, 998, 499, 0]
