from __future__ import annotations

from stormlet.core.restarts import RestartPolicy, Restarts


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
