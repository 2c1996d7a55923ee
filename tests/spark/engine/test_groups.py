"""Key groups: an epoch writes those that it has changed, and reads all that count."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormlet import Collector, KeyedBolt, Tuple, Value
from stormlet.core.keys import stable_hash
from stormlet.spark.engine.partition.keyed import groups
from stormlet.spark.engine.partition.keyed.groups import GROUPS, GroupId, blob_in, group_of
from stormlet.spark.engine.partition.rows import Row
from stormlet.spark.engine.stream import written
from stormlet.spark.engine.stream.written import after, to_write_again, written_by
from tests.spark.engine.group_epochs import PAUSE, TTL, Epochs, Model
from tests.spark.engine.keyed_flows import Item, States
from tests.spark.engine.twin import Twin

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LETTERS = "abcdefghijkl"


def items(text: str) -> list[Item]:
    """A letter each, whose places are not divisible by 3."""
    return [Item(letter, 1) for letter in text]


def groups_of(text: str) -> set[int]:
    return {*map(group_of, text)}


class Count(KeyedBolt[str, Item, str]):
    """Counts, and deletes the count of what comes with a place that is divisible by 3."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
        if tup.value.place % 3 == 0:
            del self.total
        elif tup.value.place != 2:
            self.total += 1


_epochs = st.lists(
    st.tuples(
        st.lists(st.builds(Item, st.sampled_from(LETTERS), st.integers(0, 5)), max_size=12),
        st.sampled_from([0.0, 1.0, 30.0, 70.0, 300.0]),
        st.sampled_from([2, 2, 2, 1, 3, 5]),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@FEW
@given(_epochs, st.sampled_from([2, 3, 16]))
def test_any_epochs_leave_the_state_of_the_model(
    epochs: list[tuple[list[Item], float, int, bool]], most: int
) -> None:
    """However the inputs are split, with other numbers of tasks from epoch to epoch, and few or many kept files."""
    run, model, now = Epochs(), Model(), 0.0
    with patch.object(written, "MOST", most):
        for inputs, pause, tasks, opens_all in epochs:
            now += pause
            run.epoch(inputs, now, tasks, opens_all=opens_all)
            model.epoch(_as_executed(inputs), now)
            assert _sorted(run.states()) == _sorted(model.states(now))
            assert len(run.kept) <= most


def _as_executed(inputs: Sequence[Item]) -> Sequence[Item]:
    """In the order of the two partitions of the source."""
    return [*inputs[::2], *inputs[1::2]]


def _sorted(states: States) -> States:
    return {name: dict(sorted(each.items())) for name, each in states.items()}


def test_an_epoch_writes_the_groups_that_it_has_changed() -> None:
    """Others are referred to; a key that is only read changes none."""
    run = Epochs(Count)
    assert {id.group for id in run.epoch(items("abcde"))} == groups_of("abcde")
    assert {id.group for id in run.epoch([*items("bb"), Item("c", 2)])} == groups_of("b")
    assert run.epoch([]) == set()
    assert run.states() == {"count.total": {"a": 1, "b": 3, "c": 1, "d": 1, "e": 1}}
    assert [each.epoch for each in run.kept] == [0, 1]


def test_a_group_without_entries_is_written_as_such() -> None:
    """Else what was in it would come back."""
    run = Epochs(Count)
    run.epoch(items("ab"))
    assert {id.group for id in run.epoch([Item("a", 0)])} == groups_of("a")
    run.epoch(items("c"))
    assert run.states() == {"count.total": {"b": 1, "c": 1}}


def test_a_group_stays_closed_until_a_key_of_it_is_asked_for() -> None:
    """Its bytes are never looked at, and the state is there all the same."""
    run, opened = Epochs(Count), list[str]()

    def noting(self: groups.Groups, number: int) -> None:
        opened.append(self._groups[number].blobs[0].component)  # pyright: ignore[reportPrivateUsage]
        opens(self, number)

    opens = groups.Groups._open  # pyright: ignore[reportPrivateUsage]
    run.epoch(items("abcdefgh"))
    with patch.object(groups.Groups, "_open", noting):
        run.epoch(items("aa"))
        assert len(opened) == 1
        run.epoch([], opens_all=True)
    assert len(opened) == 1 + len(groups_of("abcdefgh"))


def test_a_timer_that_is_due_opens_its_group() -> None:
    """Without any input, and only then."""
    run = Epochs()
    run.epoch(items("a"), 0.0)
    assert run.epoch([], PAUSE - 1) == set()
    assert {id.group for id in run.epoch([], PAUSE)} == groups_of("a")
    assert run.states()["count.calls"] == {"a": 1}


def test_what_is_too_old_does_not_stay_for_ever() -> None:
    """Its group is written once more, without it, though nobody asks (law K6)."""
    run = Epochs()
    run.epoch([Item("a", 0)], 0.0)
    run.epoch([], PAUSE)
    assert run.epoch([], 2 * TTL - 1) == set()
    assert {id.group for id in run.epoch([], 2 * TTL)} == groups_of("a")
    assert [blob_in(row).state for row in run.living if blob_in(row).state == "brief"] == []


def test_timers_are_called_in_the_order_they_were_set() -> None:
    """Also where one was set in an epoch that the other one's group was closed in (law K7)."""
    Calls.keys = []
    run = Epochs(Calls)
    for word in "dcab":
        run.epoch(items(word), tasks=1)
    run.epoch([], 60.0, tasks=1)
    assert Calls.keys == [*"dcab"]


class Calls(KeyedBolt[str, Item, str]):
    """Sets a timer, and notes the calls."""

    keys: list[str] = []  # noqa: RUF012

    def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
        self.set_timer(60.0)

    def on_timer(self, at: float, out: Collector[str]) -> None:
        self.keys.append(self.key)


@pytest.mark.parametrize("tasks", [1, 2, 3, 8])
def test_a_key_is_in_the_group_of_its_hash(tasks: int) -> None:
    """In the task that its grouping names."""
    run = Epochs(Count)
    (id,) = run.epoch(items("sun"[:1]), tasks=tasks)
    assert id == GroupId(1, stable_hash("s") % tasks, stable_hash("s") % GROUPS)


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_group_that_is_missing_or_old_shows_in_the_ledger(epoch: int) -> None:
    """Nobody can say then what was in it."""
    run = Epochs(Count)
    run.epoch(items("abc"))
    run.epoch(items("a"))

    def lose(rows: list[Row]) -> list[Row]:
        return [row for row in rows if row.size != epoch]

    with patch.object(Epochs, "_check", _differs):
        run.epoch(items("b"), spoil=lose)


def _differs(run: Epochs, done: Twin) -> None:
    assert done.differences == ["chunks that were read differ from those that were written"]


def some(epoch: int, *numbers: int) -> written.Written:
    return written_by(epoch, {}, {GroupId(1, 0, number): 1 for number in numbers})


def test_a_later_epoch_takes_groups_from_earlier_ones() -> None:
    """An epoch without a group that counts is forgotten."""
    kept = after(after([some(0, 1, 2)], some(1, 3)), some(2, 1, 3))
    assert [(each.epoch, [id.group for id, _ in each.groups]) for each in kept] == [(0, [2]), (2, [1, 3])]
    assert [each.count for each in kept] == [2, 2]
    assert [each.epoch for each in after(kept, some(3))] == [0, 2]


def test_files_with_little_in_them_are_written_again() -> None:
    """When less than half of their groups count, or there are too many files."""
    half = after([some(0, 1, 2, 3, 4)], some(1, 1, 2))
    assert to_write_again(half) == frozenset()
    assert to_write_again(after(half, some(2, 3))) == {0}
    many = [some(0, *range(100, 200)), *(some(epoch, epoch) for epoch in range(1, 17))]
    assert to_write_again(many[:15]) == frozenset()
    assert len(to_write_again(many)) == 8
    assert 0 not in to_write_again(many)
