"""Receipts: each settles once, for the connection that it came by."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.settlement.receipts import Receipts


def connected(*, survive: bool = False) -> Receipts:
    receipts = Receipts(survive=survive)
    receipts.connected()
    return receipts


def test_a_receipt_settles_once() -> None:
    """The second time it is stale."""
    receipts = connected()
    receipts.add("a", "tag 1")
    assert (receipts.take("a"), receipts.take("a"), receipts.stale) == ("tag 1", None, 1)


def test_a_receipt_of_an_earlier_connection_is_stale() -> None:
    """The broker delivers that message again, and another one may have the same tag."""
    receipts = connected()
    receipts.add("a", "tag 1")
    assert receipts.connected() == 2
    assert (receipts.get("a"), receipts.take("a"), receipts.stale) == (None, None, 1)


def test_receipts_of_some_brokers_survive() -> None:
    """JetStream takes acks by any connection."""
    receipts = connected(survive=True)
    receipts.add("a", "reply 1")
    receipts.connected()
    assert (receipts.get("a"), receipts.take("a"), receipts.stale) == ("reply 1", "reply 1", 0)


def test_a_message_under_way_adopts_the_receipt_of_its_redelivery() -> None:
    """It is not processed twice, and settles the delivery that counts."""
    receipts = connected()
    assert receipts.add("a", "tag 1")
    receipts.connected()
    assert not receipts.add("a", "tag 7")
    assert receipts.take("a") == "tag 7"


def test_what_is_withdrawn_does_not_settle_what_comes_again() -> None:
    """The same name has another id after a withdrawal."""
    receipts = connected()
    receipts.add(receipts.id_of("a"), "tag 1")
    assert receipts.withdraw(["a", "b"]) == {"a": "tag 1"}
    assert receipts.withdraw(["c"]) == {}
    assert receipts.add(receipts.id_of("a"), "tag 2")
    assert receipts.take("a") is None
    assert (receipts.take("a~1"), len(receipts), list(receipts), "a~1" in receipts) == ("tag 2", 0, [], False)


def test_each_instance_of_a_spout_has_ids_of_its_own() -> None:
    """Those of one that is dead are still under way."""
    suffixes = count()
    dead = Receipts(suffixes=suffixes)
    dead.add("a", "tag 1")
    dead.withdraw(["a"])
    assert [Receipts(suffixes=suffixes).id_of("a") for _ in range(2)] == ["a~2", "a~3"]


def test_no_name_is_taken_for_the_id_of_another_message() -> None:
    """Nor does the other adopt its receipt, and is never begun."""
    receipts = connected()
    assert receipts.add(receipts.id_of("a~1"), "tag 1")
    receipts.add(receipts.id_of("b"), "tag 2")
    receipts.withdraw(["b"])
    assert receipts.add(receipts.id_of("a"), "tag 3")


@given(st.lists(st.sampled_from(["deliver", "settle", "reconnect", "withdraw"]), max_size=60), st.booleans())
def test_a_broker_with_equal_tags_never_hears_of_the_wrong_message(steps: list[str], survive: bool) -> None:
    """Whatever happens, a tag is told to the broker only if this connection, or any if they survive, has given it, and
    once."""
    receipts = connected(survive=survive)
    told = list[str]()
    for number, step in enumerate(steps):
        id = receipts.id_of(f"m{number % 3}")
        if step == "deliver":
            receipts.add(id, f"{receipts.connection}/{number}")
        elif step == "settle" and (receipt := receipts.take(id)) is not None:
            assert survive or receipt.split("/")[0] == str(receipts.connection)
            told.append(receipt)
        elif step == "withdraw":
            receipts.withdraw(iter([id]))
        elif step == "reconnect":
            receipts.connected()
    assert len(told) == len(set(told))


def test_what_was_settled_meanwhile_is_known_at_the_next_connection() -> None:
    """It may be delivered once more by then, until nothing that is delivered is known; and is not begun again."""
    receipts = connected(survive=True)
    for id in "abcd":
        receipts.add(id, f"receipt of {id}")
    assert receipts.give_back("d") == "receipt of d"
    receipts.lost()
    assert (receipts.take("a"), receipts.give_back("b")) == ("receipt of a", "receipt of b")
    receipts.connected()
    assert [receipts.add(id, f"receipt of {id}") for id in "abc"] == [False, True, False]
    assert "a" not in receipts
    receipts.taken_in()
    receipts.take("c")
    assert not receipts.add("c", "receipt of c")
    assert receipts.add("c", "a second one, as its ack is forgotten")
    receipts.take("c")
    receipts.taken_in()
    assert receipts.add("d", "receipt of d")
    receipts.taken_in()
    assert receipts.add("a", "receipt of another a")


def test_what_does_not_survive_is_begun_again() -> None:
    """The broker knows nothing of what was settled meanwhile."""
    receipts = connected()
    receipts.add("a", "tag 1")
    receipts.lost()
    receipts.take("a")
    receipts.connected()
    assert receipts.add("a", "tag 1")


def test_what_is_under_way_keeps_its_id_when_others_are_withdrawn() -> None:
    """It is known by it when it comes again, settled or not; names may look like such ids."""
    receipts = connected(survive=True)
    names = ["a", "b~7", "c~" + 5000 * "1", "d"]
    ids = [receipts.id_of(name) for name in names]
    for id in ids:
        receipts.add(id, f"receipt of {id}")
    receipts.withdraw(["d"])
    receipts.add(receipts.id_of("d"), "receipt of another d")
    receipts.lost()
    receipts.take("a")
    receipts.withdraw([receipts.id_of("d")])
    receipts.connected()
    assert [receipts.id_of(name) for name in names] == [*ids[:3], "d~2"]
    assert [receipts.add(receipts.id_of(name), "receipt") for name in names] == [False, False, False, True]
