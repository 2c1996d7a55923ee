"""Revisions: a page gets what is new, and nothing twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stormlet.ui.changes import MOST_KEPT, Change, Revised, Revisions

pictures = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3))


def apply(known: dict[str, object], change: Change) -> dict[str, object]:
    """As the page does."""
    values = {} if change.whole else {name: value for name, value in known.items() if name not in change.gone}
    return {**values, **change.values}


@given(st.lists(st.tuples(pictures, st.booleans())))
def test_a_page_that_asks_now_and_then_has_all(steps: list[tuple[dict[str, int], bool]]) -> None:
    """Whatever comes, changes and goes, and whenever it asks: afterwards it shows what there is."""
    revised = Revised("life")
    known, revision = dict[str, object](), ""
    for picture, asks in [*steps, ({"a": 1}, True)]:
        revised.update(picture)
        if asks:
            change = revised.since(revision, 1.0)
            known, revision = apply(known, change), change.revision
            assert known == picture


def test_nothing_new_is_an_empty_answer() -> None:
    """However often it asks; then only what has changed."""
    revised = Revised("life")
    revised.update({"a": 1, "b": 2})
    first = revised.since("", 1.0)
    assert (first.whole, first.values) == (True, {"a": 1, "b": 2})
    revised.update({"a": 1, "b": 2})
    again = revised.since(first.revision, 1.0)
    assert (again.revision, again.whole, again.values, again.gone) == (first.revision, False, {}, [])
    revised.update({"b": 3})
    assert revised.since(first.revision, 1.0).values == {"b": 3}
    assert revised.since(first.revision, 1.0).gone == ["a"]


def test_a_revision_of_another_life_gets_all() -> None:
    """After a restart of the server, of the future, and of no kind at all."""
    revised = Revised("life")
    revised.update({"a": 1})
    for revision in ("other-1", "life-99", "nonsense", "life-x", "-", ""):
        assert revised.since(revision, 1.0).whole, revision


def test_what_nobody_looks_at_is_forgotten() -> None:
    """And begins anew, at a revision that no page takes for its own."""
    revisions = Revisions("life")
    revisions.of("first").update({"a": 1})
    revision = revisions.of("first").since("", 1.0).revision
    for number in range(MOST_KEPT):
        revisions.of(number)
    revisions.of("first").update({"a": 2})
    assert revisions.of("first").since(revision, 1.0).values == {"a": 2}
    assert revisions.of("first").since(revision, 1.0).whole
