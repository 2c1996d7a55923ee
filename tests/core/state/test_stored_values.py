"""Trident's cases of values in stores that others keep (law X13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stormlet.core.state.stored_values import Opaque, Transactional, opaque, transactional, value_before


class Batch:
    """One batch of Trident: it adds to a counter, and sees what it has added."""

    def __init__(self, rule: Callable[..., Any], stored: Any, epoch: int) -> None:
        self.rule, self.before, self.epoch = rule, stored, epoch
        self.added = 0
        self.stored = stored

    def add(self, number: int) -> int:
        self.added += number
        self.stored = self.rule(self.before, self.epoch, lambda value: (value or 0) + self.added)
        return self.stored.value


def test_an_opaque_value_begins_from_the_one_before() -> None:
    """Trident's OpaqueValue (T1): the same epoch begins from the previous value, an older one raises."""
    stored = Opaque(8, "v1", "v0")
    assert [value_before(stored, epoch) for epoch in (100, 9, 8)] == ["v1", "v1", "v0"]
    with pytest.raises(
        ValueError, match=r"^epoch 7 comes after epoch 8 has changed the value: another run writes"
    ):
        value_before(stored, 7)
    assert opaque(stored, 8, lambda _: "v2") == Opaque(8, "v2", "v0")
    assert opaque(stored, 9, lambda _: "v2") == Opaque(9, "v2", "v1")
    assert value_before(None, 1) is None


def test_an_opaque_counter_counts_each_batch_once() -> None:
    """Trident's OpaqueMap (T2): batch 1 comes again with something else, then batch 2."""
    first = Batch(opaque, None, 1)
    assert (first.add(1), first.add(2)) == (1, 3)
    again = Batch(opaque, first.stored, 1)
    assert value_before(again.before, 1) is None
    assert again.add(2) == 2
    second = Batch(opaque, again.stored, 2)
    assert value_before(second.before, 2) == 2
    assert (second.add(3), second.add(1)) == (5, 6)


def test_a_transactional_counter_counts_each_batch_once() -> None:
    """Trident's TransactionalMap (T3): batch 1 comes again, as it was, then batch 2."""
    first = Batch(transactional, None, 1)
    assert (first.add(1), first.add(2)) == (1, 3)
    again = Batch(transactional, first.stored, 1)
    assert (again.before.value, again.add(1), again.add(2)) == (3, 3, 3)
    second = Batch(transactional, again.stored, 2)
    assert (second.before.value, second.add(3), second.add(1)) == (3, 6, 7)


def test_an_older_epoch_is_refused() -> None:
    """It would be counted twice (law X13)."""
    with pytest.raises(ValueError, match=r"^epoch 1 comes after epoch 2 .* take the value back to epoch 1$"):
        transactional(Transactional(2, 5), 1, lambda value: 0)


def test_the_example_of_trident_s_documents() -> None:
    """{value 4, previous 1, txid 2}: 2 more from batch 3, and then other 2 from batch 2."""
    assert opaque(Opaque(2, 4, 1), 3, lambda value: (value or 0) + 2) == Opaque(3, 6, 4)
    assert opaque(Opaque(2, 4, 1), 2, lambda value: (value or 0) + 2) == Opaque(2, 3, 1)
