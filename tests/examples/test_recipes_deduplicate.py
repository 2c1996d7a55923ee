"""The recipe of a deduplication."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from examples.recipes import deduplicate as recipe
from examples.recipes.deduplicate import Payment, deduplicated
from tests.examples.runs import RunExample
from tests.helpers import run_to_end


def test_three_payments_are_charged_and_eight_receipts_given(run_example: RunExample) -> None:
    """Every message gets the receipt of its payment, and every payment is charged once."""
    outcome = run_example("recipes/deduplicate.py")
    charges = [line for line in outcome.lines if line.startswith("charging")]
    assert sorted(charges) == ["charging a: 35.00", "charging b: 149.00", "charging c: 80.00"]
    receipts = Counter(line for line in outcome.lines if line.startswith("receipt"))
    assert receipts == {"receipt of a": 4, "receipt of b": 2, "receipt of c": 2}
    assert outcome.code == 0


class Bank:
    """Charges slowly, and does not answer the first so many calls for each payment."""

    def __init__(self, failures: int = 0) -> None:
        self.calls = Counter[str]()
        self.charged = Counter[str]()
        self.under_way = Counter[str]()
        self.failures = failures

    async def charge(self, payment: Payment) -> str:
        """Charge for one payment."""
        self.calls[payment.id] += 1
        self.under_way[payment.id] += 1
        assert self.under_way[payment.id] == 1, "two charges of one payment at a time"
        await asyncio.sleep(1)
        self.under_way[payment.id] -= 1
        if self.calls[payment.id] <= self.failures:
            raise ConnectionError("the bank does not answer")
        self.charged[payment.id] += 1
        return f"receipt of {payment.id}"


@pytest.mark.simulated_time
async def test_a_duplicate_of_a_charge_that_fails_charges_by_itself() -> None:
    """Duplicates wait for the one under way; it fails twice, and in the end each payment is charged once."""
    bank = Bank(failures=2)
    running = await run_to_end(deduplicated(bank.charge), seed=1)
    assert bank.charged == {"a": 1, "b": 1, "c": 1}
    assert bank.calls == {"a": 3, "b": 3, "c": 3}
    assert running.statistics().components["payments"].acked == len(recipe.PAYMENTS)


@pytest.mark.simulated_time
async def test_a_replay_charges_nothing_and_gives_the_receipt_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """When what comes after the charge fails, the replay brings the same receipt without another charge."""
    bank, receipts = Bank(), list[object]()

    def fail_first(receipt: object) -> None:
        receipts.append(receipt)
        if len(receipts) <= len(recipe.PAYMENTS):
            raise OSError("the printer is out of paper")

    monkeypatch.setattr(recipe, "print", fail_first, raising=False)
    running = await run_to_end(deduplicated(bank.charge), seed=1)
    assert bank.charged == {"a": 1, "b": 1, "c": 1}
    assert Counter(receipts) == {"receipt of a": 8, "receipt of b": 4, "receipt of c": 4}
    assert running.statistics().components["payments"].replayed == len(recipe.PAYMENTS)


@pytest.mark.simulated_time
async def test_the_memory_is_bounded_by_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that comes again beyond the window of its task is charged again; one within it is not."""
    bank = Bank()
    ids = ["a", "a", *map(str, range(50)), "a"]
    monkeypatch.setattr(recipe, "PAYMENTS", [Payment(id, 100) for id in ids])
    await run_to_end(deduplicated(bank.charge, window=5), seed=1, max_spout_pending=1)
    assert bank.charged["a"] == 2
    assert sum(bank.charged.values()) == 52
