from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.rotating import RotatingMap

Expired = list[tuple[str, int]]


def contents(entries: RotatingMap[str, int]) -> list[dict[str, int]]:
    return list(entries.buckets)


@pytest.mark.parametrize("buckets", [-1, 0, 1])
def test_storm_a14_fewer_than_two_buckets_are_refused(buckets: int) -> None:
    """One bucket would drop what has just been put (Storm A14: IllegalArgumentException)."""
    with pytest.raises(ValueError, match=f"at least 2 buckets, not {buckets}"):
        RotatingMap[str, int](buckets)


def test_storm_a14_three_buckets_are_the_default() -> None:
    """As in Storm."""
    assert contents(RotatingMap()) == [{}, {}, {}]


@pytest.mark.parametrize("buckets", [2, 3, 4, 7])
def test_storm_a14_an_untouched_key_is_handed_out_by_the_nth_rotation(buckets: int) -> None:
    """It survives n - 1 rotations and is returned by the n-th, once (Storm A14)."""
    entries = RotatingMap[str, int](buckets)
    entries.put("a", 1)
    for _ in range(buckets - 1):
        assert entries.rotate() == {}
        assert entries.get("a") == 1
    assert entries.rotate() == {"a": 1}
    assert "a" not in entries
    assert entries.rotate() == {}


def test_storm_a14_put_relocates_to_the_newest_bucket() -> None:
    """Whatever bucket a key was in, it is now in the newest one alone, with its new value (Storm A14)."""
    entries = RotatingMap[str, int](3)
    for rotations in range(3):
        entries.put("a", rotations)
        for _ in range(rotations):
            entries.rotate()
        entries.put("a", 10 + rotations)
        assert contents(entries) == [{"a": 10 + rotations}, {}, {}]


def test_put_gives_a_key_its_full_time_again() -> None:
    """A key on death row that is put again survives n - 1 more rotations (seed 000)."""
    entries = RotatingMap[str, int](3)
    entries.put("a", 1)
    entries.put("b", 2)
    entries.rotate()
    entries.rotate()
    entries.put("a", 3)
    assert [entries.rotate(), entries.rotate(), entries.rotate()] == [{"b": 2}, {}, {"a": 3}]


def test_reading_does_not_refresh() -> None:
    """``get``, ``in`` and ``len`` leave a key where it is."""
    entries = RotatingMap[str, int](2)
    entries.put("a", 1)
    entries.rotate()
    assert entries.get("a") == 1
    assert "a" in entries
    assert len(entries) == 1
    assert entries.rotate() == {"a": 1}


def test_a_key_that_is_not_there() -> None:
    """It reads as None, is not contained, and popping it changes nothing."""
    entries = RotatingMap[str, int]()
    entries.put("a", 1)
    assert entries.get("b") is None
    assert entries.pop("b") is None
    assert "b" not in entries
    assert len(entries) == 1


@pytest.mark.parametrize("rotations", [0, 1, 2])
def test_pop_finds_a_key_in_any_bucket(rotations: int) -> None:
    """It gives the value and removes the key; nothing of it is handed out later."""
    entries = RotatingMap[str, int](3)
    entries.put("a", 1)
    entries.put("b", 2)
    for _ in range(rotations):
        entries.rotate()
    assert entries.pop("a") == 1
    assert entries.pop("a") is None
    assert [entries.rotate() for _ in range(3 - rotations)][-1] == {"b": 2}


def test_a_value_of_none_is_a_value() -> None:
    """It is contained, relocated and popped as any other; one key is never in two buckets."""
    entries = RotatingMap[str, None](3)
    entries.put("a", None)
    entries.rotate()
    entries.put("a", None)
    assert "a" in entries
    assert len(entries) == 1
    assert [entries.rotate(), entries.rotate(), entries.rotate()] == [{}, {}, {"a": None}]
    entries.put("a", None)
    entries.pop("a")
    assert "a" not in entries


def test_the_callback_hears_of_every_expired_entry() -> None:
    """It is called with key and value of each, in the order of their puts, and of nothing else."""
    expired: Expired = []
    entries = RotatingMap[str, int](2, lambda key, value: expired.append((key, value)))
    entries.put("a", 1)
    entries.put("b", 2)
    entries.rotate()
    entries.put("c", 3)
    assert expired == []
    assert entries.rotate() == {"a": 1, "b": 2}
    assert expired == [("a", 1), ("b", 2)]


def test_the_callback_may_put_an_entry_back() -> None:
    """When it is called the entry is gone already, so that putting it gives it a full life."""
    entries: RotatingMap[str, int]
    entries = RotatingMap(2, lambda key, value: entries.put(key, value + 1))
    entries.put("a", 1)
    entries.rotate()
    entries.rotate()
    assert contents(entries) == [{"a": 2}, {}]


class Aged:
    """The same map, told naively: every key with its value and the rotations since its last put."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self.entries: dict[str, tuple[int, int]] = {}

    def rotate(self) -> dict[str, int]:
        aged = {key: (value, age + 1) for key, (value, age) in self.entries.items()}
        self.entries = {key: entry for key, entry in aged.items() if entry[1] < self.buckets}
        return {key: value for key, (value, age) in aged.items() if age == self.buckets}

    def value(self, key: str) -> int | None:
        return self.entries.get(key, (None, 0))[0]


KEYS = st.sampled_from("abcde")
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("pop"), KEYS),
    st.tuples(st.just("rotate")),
)


@given(st.integers(2, 5), st.lists(STEPS, max_size=40))
def test_it_behaves_as_a_map_of_ages(buckets: int, steps: list[tuple[object, ...]]) -> None:
    """After any history it holds, and hands out, what a map with an age for each key would."""
    entries, aged = RotatingMap[str, int](buckets), Aged(buckets)
    for step in steps:
        match step:
            case ("put", str(key), int(value)):
                entries.put(key, value)
                aged.entries[key] = (value, 0)
            case ("pop", str(key)):
                expected = aged.value(key)
                aged.entries.pop(key, None)
                assert entries.pop(key) == expected
            case _:
                assert entries.rotate() == aged.rotate()
        assert len(entries) == len(aged.entries)
        assert [entries.get(key) for key in "abcde"] == [aged.value(key) for key in "abcde"]
        assert [key in entries for key in "abcde"] == [key in aged.entries for key in "abcde"]
