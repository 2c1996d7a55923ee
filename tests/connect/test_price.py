"""The price of the driver, in the time of the thread: other work on the machine does not count."""

from __future__ import annotations

import time

import pytest

from stormlet.connect.session import Delivery
from tests.connect.price import KINDS, Listed, generated, measured

COUNT = 10_000


@pytest.mark.parametrize("kind", KINDS)
def test_the_driver_adds_about_what_an_acked_spout_pays_twice(kind: str) -> None:
    """At most; with half as much again, as machines differ."""
    plain = min(measured(generated(COUNT), COUNT)[0] for _ in range(3))
    driven = min(measured(Listed(kind, COUNT), COUNT)[0] for _ in range(3))
    assert driven - plain < 3 * plain


@pytest.mark.parametrize("kind", KINDS)
def test_the_loop_is_held_for_about_a_slice(kind: str) -> None:
    """Which is 2 ms, and for what some hundred acked messages take on this machine; in one round of ten, as the garbage
    collector and a busy machine hold it, too."""
    plain = min(measured(generated(COUNT), COUNT)[0] for _ in range(3))
    most = 2 + 500 * plain / 1000
    assert any(measured(Listed(kind, COUNT), COUNT, watch=True)[1] < most for _ in range(10))


def test_bodies_that_take_long_to_decode_hold_nobody_up() -> None:
    """Five of them at the most; a hundred take 100 ms. In one round of three, as above."""

    def decode(delivery: Delivery) -> bytes:
        ends = time.thread_time() + 0.001
        while time.thread_time() < ends:
            pass
        return delivery.body

    def held() -> float:
        source = Listed("each", 200)
        source.decode = decode
        return measured(source, 200, watch=True)[1]

    assert any(held() < 20 for _ in range(3))
