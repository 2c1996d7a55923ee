"""Components below what they take from."""

from __future__ import annotations

from itertools import pairwise

from stormlet.cli.terminal.wiring import branches


def drawn(components: str, *edges: str) -> list[str]:
    """A line for each; an edge is two letters."""
    found = branches(
        [*components], [{"id": edge, "source": edge[0], "target": edge[1], "label": ""} for edge in edges]
    )
    return [f"{each.lines}{each.component}{' …' if each.again else ''}" for each in found]


def test_a_bolt_stands_below_what_it_takes_from() -> None:
    """With lines that lead to it."""
    assert drawn("abcd", "ab", "ac", "bd") == ["a", "├─ b", "│  └─ d", "└─ c"]


def test_a_bolt_of_two_streams_has_its_branches_once() -> None:
    """The second time they are referred to."""
    assert drawn("abcd", "ac", "bc", "cd") == ["a", "└─ c", "   └─ d", "b", "└─ c …"]


def test_a_circle_is_drawn() -> None:
    """From the first of its components on, also where no spout leads to it."""
    assert drawn("ab", "aa", "ab", "ba") == ["a", "├─ a …", "└─ b", "   └─ a …"]


def test_a_long_chain_is_drawn() -> None:
    """A thousand bolts, each below the one before, are no recursion."""
    names = [str(number) for number in range(1000)]
    edges = [
        {"id": f"{name}-", "source": name, "target": after, "label": ""} for name, after in pairwise(names)
    ]
    assert [each.component for each in branches(names, edges)] == names
