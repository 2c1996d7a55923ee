"""Messages that a broker gives again (law X8); more in ``tests/law/test_X8_redeliveries.py``."""

from __future__ import annotations

import pytest

from stormlet.core.state.redeliveries import Given, Redeliveries
from stormlet.errors import InvalidEmit


def durable(*message_ids: int, giver: int = 0) -> Redeliveries:
    """Messages that a task has given and told the outcome of, and that nobody has acked."""
    made = Redeliveries("orders")
    for each in message_ids:
        made.give(giver, each, "value")
    made.seal(message_ids)
    made.state.seal()
    for each in message_ids:
        made.tell(giver, each)
    return made


def test_a_message_is_given_first_and_again() -> None:
    """It is under way until its outcome is told, and durable until its ack is."""
    made = Redeliveries("orders")
    assert [made.give(0, 1, "value"), made.give(0, 1, "value")] == [Given.FIRST, Given.UNDER_WAY]
    made.seal([1])
    made.state.seal()
    assert made.give(0, 1, "value") is Given.UNDER_WAY
    assert made.tell(0, 1)
    assert made.give(0, 1, "value") is Given.DURABLE
    made.acked(1)
    assert (made.acks, made.give(0, 1, "value")) == (1, Given.UNDER_WAY)
    made.tell_again(0, 1)
    made.seal([])
    made.state.seal()
    assert (made.acks, made.give(0, 1, "value")) == (0, Given.FIRST)


def test_an_instance_that_has_died_is_told_nothing() -> None:
    """Neither of what it has given first, nor of what it has given again."""
    made = durable(1)
    made.give(0, 1, "value")
    made.give(0, 2, "value")
    made.lose(0)
    assert (made.tell_again(0, 1), made.tell(0, 2)) == (False, False)
    assert made.give(0, 1, "value") is Given.DURABLE


def test_a_death_leaves_alone_what_others_have_given() -> None:
    """Each task has an instance of its own."""
    made = durable(1)
    made.give(1, 1, "value")
    made.give(1, 2, "value")
    made.lose(0)
    assert (made.tell_again(1, 1), made.tell(1, 2)) == (True, True)


def test_all_tasks_that_have_given_a_message_ack_it() -> None:
    """The first one tells its outcome; the others are asked."""
    made, asked = Redeliveries("orders"), list[tuple[int, object, object]]()
    for task in range(3):
        made.join(task, lambda message_id, value, task=task: asked.append((task, message_id, value)))  # type: ignore[misc]
        made.give(task, 1, f"from {task}")
    assert made.tell(0, 1)
    assert asked == [(1, 1, "from 1"), (2, 1, "from 2")]
    assert (made.tell_again(1, 1), made.tell_again(2, 1)) == (True, True)


def test_an_id_that_cannot_be_kept_is_refused() -> None:
    """It would not be known when it is given again."""
    with pytest.raises(
        InvalidEmit, match=r"'orders' redelivers, and emits the message id \[1\], which cannot be kept"
    ):
        Redeliveries("orders").give(0, [1], "value")


def test_a_message_that_could_not_be_emitted_is_given_first_again() -> None:
    """Nobody has it."""
    made = Redeliveries("orders")
    made.give(0, 1, "value")
    made.take_back(1)
    assert made.give(0, 1, "value") is Given.FIRST
