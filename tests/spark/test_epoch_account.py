"""The account of one epoch: what an attempt at it must emit, and whether it counts."""

from __future__ import annotations

from stormlet import Failure, FailureKind
from stormlet.core.retries import ReplayPolicy
from stormlet.spark.epoch_account import EpochAccount
from stormlet.spark.frames import Origin

FAILED = Failure(FailureKind.FAILED, reason="flaky")
REJECTED = Failure(FailureKind.FAILED, reason="no price", permanent=True)


def account(rows: int = 3, max_attempts: int = 5) -> EpochAccount:
    made = EpochAccount(7, ReplayPolicy(max_attempts))
    made.begin(1)
    for row in range(rows):
        made.add(origin(row), f"row {row}")
    made.whole = True
    return made


def origin(row: int) -> Origin:
    return Origin(0, row, 7)


def emit_all(epoch: EpochAccount) -> list[object]:
    """All that wait, in order."""
    values: list[object] = []
    while epoch.has_waiting:
        values += epoch.next(2)[1]
    return values


def attempt(epoch: EpochAccount, failures: dict[int, Failure]) -> list[object]:
    """An attempt in which these rows fail, and the others are done."""
    values = emit_all(epoch)
    for row in failures:
        epoch.failed(origin(row), failures[row])
    for _ in range(len(values) - len(failures)):
        epoch.acked()
    return values


def test_an_attempt_without_failures_is_done() -> None:
    """When every row was emitted and acked, and no more can come."""
    epoch = account()
    epoch.whole = False
    emit_all(epoch)
    assert not epoch.emitted
    epoch.whole = True
    assert epoch.emitted
    for _ in range(3):
        assert not epoch.done
        epoch.acked()
    assert epoch.done


def test_a_failure_spoils_the_whole_attempt() -> None:
    """The next one has all rows again, in their order."""
    epoch = account()
    attempt(epoch, {1: FAILED})
    assert epoch.emitted
    assert not epoch.done
    epoch.begin(2)
    assert attempt(epoch, {}) == ["row 0", "row 1", "row 2"]
    assert epoch.done
    assert list(epoch.given_up()) == []


def test_a_rejected_row_is_left_out() -> None:
    """It is given up after one attempt, with the reason, and the others are emitted again without it."""
    epoch = account()
    attempt(epoch, {1: REJECTED})
    epoch.begin(2)
    assert attempt(epoch, {}) == ["row 0", "row 2"]
    assert epoch.done
    (letter,) = epoch.given_up()
    assert (letter.origin, letter.value, letter.attempts) == (origin(1), "row 1", 1)
    assert letter.history == (REJECTED,)


def test_a_row_that_keeps_failing_is_given_up() -> None:
    """After as many attempts as the configuration says; timeouts are attempts, and what others fail is not its."""
    epoch = account(max_attempts=3)
    timeout = Failure(FailureKind.TIMEOUT)
    for number, failures in enumerate(({0: FAILED, 1: FAILED}, {0: timeout}, {0: FAILED}), 2):
        attempt(epoch, failures)
        epoch.begin(number)
    (letter,) = epoch.given_up()
    assert (letter.origin, letter.attempts) == (origin(0), 3)
    assert letter.history == (FAILED, timeout, FAILED)


def test_what_reached_no_task_is_emitted_again() -> None:
    """An OVERFLOW is no attempt (law S6), and fails nothing: the row waits within the same attempt."""
    epoch = account()
    emit_all(epoch)
    epoch.failed(origin(2), Failure(FailureKind.OVERFLOW))
    assert not epoch.emitted
    assert emit_all(epoch) == ["row 2"]
    for _ in range(3):
        epoch.acked()
    assert epoch.done


def test_what_is_left_over_is_not_done() -> None:
    """A SHUTDOWN is no attempt, nobody gives the row up, and the epoch is not done."""
    epoch = account(max_attempts=1)
    attempt(epoch, {0: Failure(FailureKind.SHUTDOWN)})
    assert not epoch.done
    assert list(epoch.given_up()) == []


def test_attempts_in_vain_are_counted() -> None:
    """As long as no row is given up; that begins anew when one is."""
    epoch = account(max_attempts=3)
    counts = list[int]()
    for number, failures in enumerate(({0: FAILED}, {1: FAILED}, {2: REJECTED}, {0: FAILED}), 2):
        attempt(epoch, failures)
        epoch.begin(number)
        counts.append(epoch.fruitless)
    assert counts == [1, 2, 0, 1]


def raised() -> Failure:
    try:
        raise OSError("away")
    except OSError as error:
        return Failure(FailureKind.FAILED, "bolt", 3, exception=error)


def test_what_is_kept_of_failures_is_bounded() -> None:
    """However often a row fails: of a hundred attempts why, and of the last one, if that gives it up, the traceback."""
    epoch = account(max_attempts=150)
    for number in range(150):
        attempt(epoch, {0: raised()})
        epoch.begin(number + 2)
    (letter,) = epoch.given_up()
    assert (letter.attempts, len(letter.history), letter.history.left_out) == (150, 100, 50)
    kept = [each.exception.__traceback__ for each in letter.history if each.exception is not None]
    assert [each is not None for each in kept] == [*[False] * 99, True]
