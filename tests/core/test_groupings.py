from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import FrozenInstanceError, dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from random import Random
from typing import NamedTuple

import msgspec
import pytest

from stormlet.core import groupings
from stormlet.core.groupings import (
    All,
    Custom,
    CustomGrouping,
    Direct,
    Fields,
    Global,
    Grouping,
    LocalOrShuffle,
    Many,
    NoGrouping,
    One,
    PartialKey,
    Shuffle,
)
from stormlet.core.keys import stable_hash
from stormlet.errors import InvalidEmit, KeyFunctionFailed, UnroutableKey


class First:
    """Sends every value to the first ``count`` of its targets; Storm's NGrouping."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.prepared: list[Sequence[int]] = []

    def prepare(self, targets: Sequence[int]) -> None:
        self.prepared.append(targets)

    def choose(self, value: object) -> Sequence[int]:
        return self.prepared[-1][: self.count]


class Answering(First):
    """Answers with whatever it was made with."""

    def __init__(self, answer: object) -> None:
        super().__init__(0)
        self.answer = answer

    def choose(self, value: object) -> Sequence[int]:
        return self.answer  # type: ignore[return-value]  # the mistake is the point


class Mutable(msgspec.Struct):
    word: str


class Frozen(msgspec.Struct, frozen=True):
    word: str


@dataclass
class Data:
    word: str


class Pair(NamedTuple):
    word: str
    number: int


def word(value: object) -> object:
    assert isinstance(value, Mutable | Frozen | Data | Pair)
    return value.word


def one(spec: Grouping, tasks: int, seed: int = 0, label: str = "") -> One:
    chooser = spec.chooser(range(1, tasks + 1), Random(seed), label)
    assert isinstance(chooser, One)
    return chooser


def many(spec: Grouping, tasks: int, label: str = "") -> Many:
    chooser = spec.chooser(range(1, tasks + 1), Random(0), label)
    assert isinstance(chooser, Many)
    return chooser


def picks(chooser: One, values: Iterable[object]) -> list[int]:
    return [chooser.pick(value) for value in values]


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (Shuffle(), "shuffle"),
        (Fields(), "fields"),
        (PartialKey(), "partial_key"),
        (All(), "all"),
        (Global(), "global"),
        (Direct(), "direct"),
        (LocalOrShuffle(), "local_or_shuffle"),
        (NoGrouping(), "none"),
        (Custom(First(1)), "custom"),
    ],
)
def test_specs_have_the_names_of_storm(spec: Grouping, name: str) -> None:
    """Each spec knows its name, and no spec can be changed after it was made."""
    assert spec.name == type(spec).name == name
    assert spec.title("'a' -> 'b'") == f"{name} grouping of 'a' -> 'b'"
    assert spec.title("") == f"{name} grouping"
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        spec.key = len  # type: ignore[attr-defined]


def test_specs_compare_by_what_they_say() -> None:
    """Two declarations that say the same are equal; a shuffle by another name is another grouping."""
    assert Shuffle() == Shuffle()
    assert Fields(word) == Fields(word) != Fields()
    shuffles: list[Grouping] = [Shuffle(), NoGrouping(), LocalOrShuffle()]
    assert len(set(shuffles)) == 3


@pytest.mark.parametrize("spec", [Shuffle(), LocalOrShuffle(), NoGrouping()])
def test_shuffle_is_exactly_even(spec: Grouping) -> None:
    """G1: 30,000 tuples for 6 tasks are exactly 5,000 for each; and 10 producers of 30,000 make 50,000 for each."""
    assert Counter(picks(one(spec, 6), range(30_000))) == dict.fromkeys(range(6), 5_000)
    total = Counter[int]()
    for producer in range(10):
        total.update(picks(one(spec, 6, seed=producer), range(30_000)))
    assert total == dict.fromkeys(range(6), 50_000)


def test_shuffle_is_even_after_every_round() -> None:
    """After n·k tuples each of n tasks got k, for every k on the way."""
    chooser = one(Shuffle(), 7)
    counts = Counter[int]()
    for k in range(1, 20):
        counts.update(picks(chooser, range(7)))
        assert counts == dict.fromkeys(range(7), k)


def test_shuffle_takes_its_order_from_the_random_it_is_given() -> None:
    """L16: one seed gives one order, and producers with other seeds do not all start with the same task."""
    assert picks(one(Shuffle(), 9, seed=3), range(18)) == picks(one(Shuffle(), 9, seed=3), range(18))
    assert len({one(Shuffle(), 9, seed=seed).pick("x") for seed in range(40)}) > 4


def test_global_always_takes_the_first_task() -> None:
    """Whatever the value, the task with the lowest id gets it."""
    assert picks(one(Global(), 5), ["a", 1, None, []]) == [0, 0, 0, 0]


def test_all_takes_every_task() -> None:
    """Each value goes to each task once, in ascending order, and the answer is not built anew each time."""
    chooser = many(All(), 3)
    assert list(chooser.choose("a")) == [0, 1, 2]
    assert chooser.choose("a") is chooser.choose("b")


def test_direct_has_nothing_to_choose() -> None:
    """An emit without a task cannot reach a direct consumer, and the message says what is missing."""
    with pytest.raises(InvalidEmit, match=r"^direct grouping of 'a' -> 'b': the emit needs task=$"):
        Direct().chooser([1, 2], Random(0), "'a' -> 'b'")


def test_fields_routes_bytes_by_content() -> None:
    """G5: 24 times the bytes a and b from 4 producers to 6 tasks; one task each counts a, and b, from 1 to 24."""
    producers = [one(Fields(), 6, seed=seed) for seed in range(4)]
    seen = Counter[tuple[int, bytes]]()
    counted = list[tuple[bytes, int]]()
    for number in range(24):
        for text in ("a", "b"):
            key = text.encode()
            task = producers[number % 4].pick(key)
            seen[task, key] += 1
            counted.append((key, seen[task, key]))
    assert Counter(counted) == Counter((key, i) for key in (b"a", b"b") for i in range(1, 25))


@pytest.mark.parametrize(
    "keys",
    [
        [0, 1, 2, 3, 4],
        [None],
        [(), (1, "a"), (1, ("a", None))],
        [[], [1, "a"], [[1], {"a": [2]}]],
        [Mutable("a"), Frozen("a"), Data("a"), Pair("a", 1)],
        [float("nan"), Decimal("sNaN")],
    ],
    ids=["integers", "none", "tuples", "lists", "records", "missing numbers"],
)
def test_fields_routes_a_key_to_one_task(keys: list[object]) -> None:
    """FS-G2: two streams with the same keys, 4 tasks: each key goes to one task, by its hash, on both, always."""
    streams = [one(Fields(), 4, seed=seed) for seed in (1, 2)]
    for key in keys:
        assert {chooser.pick(key) for chooser in streams for _ in range(5)} == {stable_hash(key) % 4}


def test_fields_gives_equal_keys_one_task() -> None:
    """Keys that Python calls equal meet in one task, whichever came first and filled the cache."""
    ones = [1, 1.0, True, Decimal(1)]
    for first in ones:
        chooser = one(Fields(), 1000)
        assert {chooser.pick(key) for key in (first, *ones)} == {stable_hash(1) % 1000}


def test_fields_uses_the_key_function() -> None:
    """Only what the key function extracts decides, and it is asked for every value."""
    asked = list[object]()

    def key(value: object) -> object:
        asked.append(value)
        return word(value)

    chooser = one(Fields(key), 1000)
    values = [Pair("a", 1), Mutable("a"), Pair("a", 2), Data("a")]
    assert set(picks(chooser, values)) == {stable_hash("a") % 1000}
    assert asked == values


def test_a_key_may_be_unhashable_in_python() -> None:
    """A key function may give a list, which Python cannot hash."""
    chooser = one(Fields(lambda value: [value]), 1000)
    assert picks(chooser, ["a", "a", "b"]) == [stable_hash(["a"]) % 1000] * 2 + [stable_hash(["b"]) % 1000]


def test_an_error_of_the_key_function_is_not_hidden() -> None:
    """A TypeError raised in user code is not mistaken for an unhashable key."""

    def broken(value: object) -> object:
        raise TypeError("mine")

    for spec in (Fields(broken), PartialKey(broken)):
        with pytest.raises(TypeError, match=r"^mine$"):
            one(spec, 4).pick("a")


@pytest.mark.parametrize("tasks", [1, 4])
@pytest.mark.parametrize(
    "key", [1j, frozenset({1}), {1}, [object()]], ids=["complex", "frozenset", "set", "nested"]
)
@pytest.mark.parametrize(
    "spec", [Fields(), Fields(lambda value: value), PartialKey()], ids=["value", "key", "partial"]
)
def test_an_unroutable_key_is_refused(spec: Grouping, key: object, tasks: int) -> None:
    """The error names type and grouping, every time, and even where there is but one task."""
    chooser = one(spec, tasks, label="'split' -> 'count'")
    message = f"^{spec.name} grouping of 'split' -> 'count': a key of type "
    for _ in range(2):
        with pytest.raises(UnroutableKey, match=message) as caught:
            chooser.pick(key)
        assert caught.value.__suppress_context__


def by(*names: str, partial: bool = False) -> Grouping:
    """The grouping by these fields of a mapping."""
    read = (
        (lambda value: value[names[0]]) if len(names) == 1 else lambda value: tuple(value[n] for n in names)
    )
    return PartialKey(read, names) if partial else Fields(read, names)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("names", [("tags",), ("word", "tags")])
def test_the_field_of_an_unroutable_key_is_named(names: tuple[str, ...], partial: bool) -> None:
    """With both ends of the stream, the type, and the way out."""
    chooser = one(by(*names, partial=partial), 4, label="'split' -> 'count'")
    with pytest.raises(UnroutableKey) as caught:
        chooser.pick({"word": "cow", "tags": {1}})
    title, error = str(caught.value).split(": ", 1)
    assert title.endswith("grouping of 'split' -> 'count', field 'tags'")
    assert error.startswith("a key of type set has no stable hash; keys are None, bool, ")
    assert error.endswith("; group by a function of the value that returns one of these")


@pytest.mark.parametrize("tasks", [1, 4])
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize(
    ("names", "fields"), [(("day",), "field 'day'"), (("word", "day"), "fields 'word', 'day'")]
)
def test_a_value_without_the_field_is_refused(
    names: tuple[str, ...], fields: str, partial: bool, tasks: int
) -> None:
    """Which no schema has found, as it may trust annotations."""
    chooser = one(by(*names, partial=partial), tasks, label="'split' -> 'count'")
    with pytest.raises(InvalidEmit) as caught:
        chooser.pick({"word": "cow"})
    assert str(caught.value).split(": ", 1)[1] == (
        f"{{'word': 'cow'}}, of type dict, cannot be asked for its {fields} (KeyError: 'day'); emit values that have "
        f"it, or group by a function of the value"
    )


@pytest.mark.parametrize("partial", [False, True])
def test_what_a_key_function_raises_has_words_of_its_own(partial: bool) -> None:
    """They name the stream and the value already."""

    def fails(value: object) -> object:
        raise KeyFunctionFailed("the key function on words raised") from ZeroDivisionError()

    chooser = one(PartialKey(fails) if partial else Fields(fails), 4)
    with pytest.raises(KeyFunctionFailed, match=r"^the key function on words raised$") as caught:
        chooser.pick("cow")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def nested(depth: int, kind: type[list[object]] | type[tuple[object, ...]]) -> object:
    """A list or a tuple that deep."""
    found: object = "cow"
    for _ in range(depth):
        found = kind([found])
    return found


@pytest.mark.parametrize("spec", [Fields(), Fields(lambda value: value), PartialKey()])
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_key_that_is_nested_too_deeply_is_refused(
    spec: Grouping, kind: type[list[object]] | type[tuple[object, ...]]
) -> None:
    """With a sentence, and not a hundred lines of the engine's."""
    message = f"a key of type {kind.__name__} has no stable hash .it is nested too deeply, or has itself inside.; keys"
    with pytest.raises(UnroutableKey, match=message):
        one(spec, 4).pick(nested(100_000, kind))


class Moody:
    """Fails where Python asks for its hash."""

    def __hash__(self) -> int:
        raise ValueError("not today")


@pytest.mark.parametrize("spec", [Fields(), Fields(lambda value: value), PartialKey()])
def test_a_key_whose_own_hash_raises_is_refused_by_its_type(spec: Grouping) -> None:
    """Its own hash says nothing here."""
    with pytest.raises(UnroutableKey, match=r"a key of type .*Moody has no stable hash; keys are"):
        one(spec, 4).pick(Moody())


class Broken(tzinfo):
    """A zone without offsets."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        raise ValueError("no zone today")


def test_what_a_key_raises_while_it_is_hashed_is_told() -> None:
    """As the reason why it has no hash."""
    with pytest.raises(
        UnroutableKey,
        match=r"type datetime.datetime has no stable hash \(ValueError\('no zone today'\)\); keys",
    ):
        one(Fields(), 4).pick(datetime(2026, 1, 1, tzinfo=Broken()))


@pytest.mark.parametrize("spec", [Fields(), PartialKey()])
def test_tasks_of_a_producer_share_the_routes_they_know(
    spec: Grouping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one task has hashed none of them hashes again, and it goes where it goes without sharing."""
    hashed = list[object]()

    def counting(key: object) -> int:
        hashed.append(key)
        return stable_hash(key)

    monkeypatch.setattr(groupings, "stable_hash", counting)
    routes = spec.routes(5)
    sharing = [spec.chooser(range(5), Random(0), routes=routes) for _ in range(3)]
    alone = one(spec, 5)
    expected = picks(alone, "abcab")
    hashed.clear()
    for chooser in sharing:
        assert isinstance(chooser, One)
        assert picks(chooser, "abcab") == expected
    assert hashed == list("abc")


@pytest.mark.parametrize("spec", [Fields(), Fields(lambda value: value)], ids=["value", "key"])
def test_a_task_that_is_the_only_one_needs_no_hash(spec: Grouping, monkeypatch: pytest.MonkeyPatch) -> None:
    """But a key that would have no task among several is refused, so that a test with one task finds it."""
    chooser = one(spec, 1)
    with pytest.raises(UnroutableKey, match="set"):
        chooser.pick({1})
    monkeypatch.setattr(groupings, "stable_hash", None)
    assert picks(chooser, ["text", 7]) == [0, 0]


@pytest.mark.parametrize("spec", [Fields(), PartialKey()])
def test_the_key_cache_is_bounded(spec: Grouping, monkeypatch: pytest.MonkeyPatch) -> None:
    """A known key is not hashed again, and after the bound the cache starts afresh; the routes stay the same."""
    hashed = list[object]()

    def counting(key: object) -> int:
        hashed.append(key)
        return stable_hash(key)

    monkeypatch.setattr(groupings, "stable_hash", counting)
    monkeypatch.setattr(groupings, "CACHED_KEYS", 3)
    chooser = one(spec, 2)
    picks(chooser, "abcabc")
    assert hashed == list("abc")
    picks(chooser, "dda")
    assert hashed == list("abcda")


def candidates(key: object, tasks: int) -> tuple[int, int]:
    """The two tasks of a key: a fresh chooser takes the first, then the second, which has got less."""
    chooser = one(PartialKey(), tasks)
    return chooser.pick(key), chooser.pick(key)


@pytest.mark.parametrize("targets", [[0, 1, 2, 3, 4, 5], [9, 8, 7, 1, 2, 3]])
@pytest.mark.parametrize("spec", [PartialKey(), PartialKey(word)])
def test_partial_key_alternates_between_two_tasks(targets: list[int], spec: Grouping) -> None:
    """G7: the second choice for a key differs from the first, the third is the first again; with a key function too."""
    chooser = spec.chooser(targets, Random(0))
    assert isinstance(chooser, One)
    values: list[object] = (
        ["key1"] * 3 if spec == PartialKey() else [Pair("key1", 1), Mutable("key1"), Pair("key1", 2)]
    )
    first, second, third = picks(chooser, values)
    assert first != second
    assert first == third
    assert {first, second} <= set(range(6))


def test_partial_key_has_two_tasks_for_a_key_forever() -> None:
    """G8: the candidates of a key are two, the same for every producer; those of another key are others."""
    assert candidates("some_key_one", 97) == candidates("some_key_one", 97)
    assert len(set(candidates("some_key_one", 97))) == 2
    assert set(candidates("some_key_one", 97)) != set(candidates("some_key_two", 97))
    chooser = one(PartialKey(), 97)
    assert set(picks(chooser, ["some_key_one"] * 50)) == set(candidates("some_key_one", 97))


def test_partial_key_takes_the_task_that_got_less() -> None:
    """G8: with one tuple on each of three tasks, a key that has the fourth as its second candidate goes there."""
    keys = [f"key{number}" for number in range(400)]
    pairs = {candidates(key, 4): key for key in keys}
    chooser = one(PartialKey(), 4)
    assert picks(chooser, [pairs[0, 1], pairs[1, 2], pairs[2, 3]]) == [0, 1, 2]
    assert chooser.pick(pairs[0, 3]) == 3
    assert chooser.pick(pairs[3, 0]) == 3  # all even: the first of the two
    assert chooser.pick(pairs[3, 0]) == 0


def test_partial_key_starts_where_fields_would_send_the_key() -> None:
    """G8: a tie goes to the first candidate, so keys that come once each go where fields sends them."""
    for number in range(50):
        assert one(PartialKey(), 7).pick(number) == one(Fields(), 7).pick(number)


def test_partial_key_uses_every_pair_of_tasks() -> None:
    """Keys of one length spread over all ordered pairs about evenly, so that hot keys do not share both tasks."""
    counts = Counter(candidates(f"key{number:04}", 4) for number in range(1200))
    assert set(counts) == {(a, b) for a in range(4) for b in range(4) if a != b}
    assert max(counts.values()) < 2 * min(counts.values())


def test_partial_key_splits_a_hot_key() -> None:
    """A stream of one key is halved exactly, and a skewed one is more even than fields would have it."""
    assert sorted(Counter(picks(one(PartialKey(), 8), ["hot"] * 1000)).values()) == [500, 500]
    skewed = [f"key{Random(number).randrange(1, 40) ** 2 // 60}" for number in range(5000)]
    partial, fields = (Counter(picks(one(spec, 8), skewed)) for spec in (PartialKey(), Fields()))
    assert max(partial.values()) < max(fields.values())


def test_partial_key_of_unhashable_keys_balances_too() -> None:
    """Lists are counted like any other key."""
    assert sorted(Counter(picks(one(PartialKey(), 8), [["hot"] for _ in range(10)])).values()) == [5, 5]


@pytest.mark.parametrize("spec", [Shuffle(), Fields(), PartialKey(), Global()])
def test_one_task_gets_everything(spec: Grouping) -> None:
    """With a single task there is no choice."""
    assert set(picks(one(spec, 1), ["a", "b", "c", "a"])) == {0}


def test_custom_groupings_choose_as_many_as_they_like() -> None:
    """G6: of a and b, a grouping to 2 of 4 tasks makes a, a, b, b, one to 3 of 6 makes three of each."""
    for count, tasks in ((2, 4), (3, 6)):
        chooser = many(Custom(First(count)), tasks)
        delivered = [(value, index) for value in "ab" for index in chooser.choose(value)]
        assert delivered == [(value, index) for value in "ab" for index in range(count)]


def test_custom_groupings_speak_of_task_ids() -> None:
    """The user sees task ids and the engine indexes; prepare is called once for each producer task."""
    grouping = Answering((31, 12))
    spec = Custom(grouping)
    first, second = (spec.chooser([12, 20, 31], Random(0)) for _ in range(2))
    assert grouping.prepared == [(12, 20, 31), (12, 20, 31)]
    assert isinstance(first, Many)
    assert isinstance(second, Many)
    assert first.choose("a") == second.choose("b") == [2, 0]


def test_a_custom_grouping_may_choose_nobody() -> None:
    """An empty choice is legal."""
    assert list(many(Custom(Answering([])), 2).choose("a")) == []


@pytest.mark.parametrize("answer", [[1, 3], [0], None, 1, "1", [[1]]])
def test_a_custom_grouping_must_choose_among_its_targets(answer: object) -> None:
    """Anything but a sequence of the consumer's task ids is refused, with the answer, the ids and the edge named."""
    chooser = many(Custom(Answering(answer)), 2, "'a' -> 'b'")
    with pytest.raises(InvalidEmit) as caught:
        chooser.choose("x")
    assert str(caught.value) == f"custom grouping of 'a' -> 'b' chose {answer!r}; its tasks are [1, 2]"


def test_an_error_of_a_custom_grouping_is_not_hidden() -> None:
    """A KeyError or TypeError raised by the user's code is not mistaken for a wrong answer: it is the cause."""

    class Broken(First):
        def choose(self, value: object) -> Sequence[int]:
            raise KeyError("mine")

    grouping: CustomGrouping = Broken(1)
    with pytest.raises(InvalidEmit) as caught:
        many(Custom(grouping), 2).choose("x")
    assert str(caught.value) == "custom grouping raised KeyError('mine') for 'x'"
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_chooser_must_choose() -> None:
    """The base knows no task."""
    with pytest.raises(NotImplementedError):
        groupings.One().pick("value")
