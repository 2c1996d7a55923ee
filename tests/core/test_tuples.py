from __future__ import annotations

from contextvars import copy_context

import pytest

from stormlet.core.schema import schema_of
from stormlet.core.tuples import (
    ACKED,
    FAILED,
    HELD,
    OPEN,
    PLAIN,
    VERBS,
    JoinedTuple,
    Lineage,
    Source,
    Tuple,
    joined,
    joined_tuple,
)

SOURCE = Source("split", "words", 3, schema_of(["word", "count"]))


def make(root: int = 7, edge: int = 100, lineage: Lineage = PLAIN) -> Tuple[tuple[str, int]]:
    return Tuple(("cow", 2), SOURCE, lineage, root, edge)


def join(edges: dict[int, int], lineage: Lineage = PLAIN) -> JoinedTuple[tuple[str, int]]:
    return joined_tuple(("cow", 2), SOURCE, lineage, edges)


def test_a_tuple_says_where_it_came_from() -> None:
    """Component, stream and task of its producer, and its value."""
    tup = make()
    assert (tup.component, tup.stream, tup.task, tup.value) == ("split", "words", 3, ("cow", 2))


def test_fields_are_read_by_name() -> None:
    """``tup["field"]`` goes by the schema of its stream, and an unknown name is told with those there are."""
    assert make()["word"] == "cow"
    assert make()["count"] == 2
    with pytest.raises(KeyError, match="no field 'wrod' in \\(word, count\\), which has 'word', 'count'"):
        make()["wrod"]


def test_a_tuple_shows_itself() -> None:
    """Error messages name its value and its origin."""
    assert repr(make()) == "<Tuple ('cow', 2) from 'split' (task 3), stream 'words'>"
    assert repr(join({7: 1, 8: 2})) == repr(make())


def test_a_new_tuple_is_open() -> None:
    """It has no outcome, and the verbs of the states are those of the messages (law L15)."""
    assert make().state == join({7: 1, 8: 2}).state == OPEN
    assert [VERBS[state] for state in (OPEN, HELD, ACKED, FAILED)] == [
        "has open",
        "has open",
        "acked",
        "failed",
    ]
    assert OPEN < HELD < min(ACKED, FAILED)


def test_an_untracked_tuple_belongs_to_no_tree() -> None:
    """It has no roots and its ack tells nobody anything (law L8)."""
    assert make(root=0, edge=0).roots == ()
    assert make(root=0, edge=0).edges() == {}


def test_a_tracked_tuple_acks_its_edge() -> None:
    """Its ack tells its root its own edge XOR those of what was anchored to it (law L2)."""
    tup = make(root=7, edge=100)
    assert tup.roots == (7,)
    assert tup.edges() == {7: 100}
    tup.edge ^= 200
    assert tup.edges() == {7: 100 ^ 200}


def test_a_joined_tuple_acks_in_all_its_trees() -> None:
    """It has an edge in each of its trees, and what is anchored to it joins all of them (law L7)."""
    tup = join({7: 100, 8: 200})
    assert tup.roots == (7, 8)
    assert tup.edges() == {7: 100, 8: 200}
    tup.edge ^= 1000
    assert tup.edges() == {7: 100 ^ 1000, 8: 200 ^ 1000}


def test_an_acked_join_leaves_its_edges_alone() -> None:
    """Asking twice gives the same: reading its edges changes nothing."""
    tup = join({7: 100, 8: 200})
    tup.edge ^= 5
    assert tup.edges() == tup.edges()
    tup.edge ^= 5
    assert tup.edges() == {7: 100, 8: 200}


def test_a_first_attempt_is_plain() -> None:
    """Nearly all tuples share one lineage: attempt 1, no origin, the context of the topology."""
    assert make().lineage is PLAIN
    assert (make().attempt, make().origin, PLAIN.context) == (1, None, None)


def test_a_joined_tuple_is_never_plain() -> None:
    """The shortest way through a bolt is for tuples of one tree, so a joined one must not look like one."""
    tup = join({7: 1, 8: 2})
    assert tup.lineage is not PLAIN
    assert (tup.attempt, tup.origin, tup.lineage.context) == (1, None, None)


def test_a_joined_tuple_keeps_another_lineage() -> None:
    """Attempt and origin of what it joins are its own."""
    tup = join({7: 1, 8: 2}, Lineage(3, "file"))
    assert (tup.attempt, tup.origin) == (3, "file")


def test_one_lineage_is_inherited_as_it_is() -> None:
    """Anchors that share a lineage, the same tuple twice included, give just that."""
    lineage = Lineage(2, "file")
    assert joined([lineage, lineage]) is lineage
    assert joined([PLAIN, PLAIN]) is PLAIN


def test_a_join_inherits_the_highest_attempt() -> None:
    """Of several messages that are joined, the most often tried one counts."""
    assert joined([Lineage(2), Lineage(5), PLAIN]).attempt == 5


def test_a_join_inherits_the_first_origin_and_context() -> None:
    """The first anchor that has an origin gives it, and the first that has a context gives that one."""
    first, second = copy_context(), copy_context()
    lineage = joined([PLAIN, Lineage(1, "a"), Lineage(1, "b", first), Lineage(1, None, second)])
    assert lineage.origin == "a"
    assert lineage.context is first


def test_a_join_of_nothing_special_inherits_nothing() -> None:
    """Replays without origin and context stay without."""
    lineage = joined([Lineage(2), PLAIN])
    assert (lineage.attempt, lineage.origin, lineage.context) == (2, None, None)


def test_the_lineage_of_a_replay() -> None:
    """One attempt more, of the same origin and context; the first one's lineage stays as it is."""
    context = copy_context()
    first = Lineage(1, "file", context)
    third = first.of_next_attempt().of_next_attempt()
    assert (third.attempt, third.origin, third.context) == (3, "file", context)
    assert first.attempt == 1
    assert PLAIN.of_next_attempt().attempt == 2
    assert PLAIN.attempt == 1


@pytest.mark.parametrize("falsy", [0, "", False])
def test_an_origin_may_be_falsy(falsy: object) -> None:
    """Only None is no origin."""
    assert joined([PLAIN, Lineage(1, falsy), Lineage(1, "late")]).origin == falsy
