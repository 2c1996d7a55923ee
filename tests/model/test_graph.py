from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from stormlet.model.description import components_in_order

Graph = dict[str, list[str]]


def reachable(graph: Graph, start: str) -> set[str]:
    """Every node that a path of at least one edge leads to."""
    found: set[str] = set()
    work = [start]
    while work:
        for following in graph[work.pop()]:
            if following not in found:
                found.add(following)
                work.append(following)
    return found


def test_no_nodes() -> None:
    """An empty graph has no components."""
    assert components_in_order({}) == []


def test_a_chain_in_any_declaration_order() -> None:
    """Upstream first, however the nodes were declared."""
    edges = {"a": ["b"], "b": ["c"], "c": ["d"], "d": []}
    for names in permutations(edges):
        assert components_in_order({name: edges[name] for name in names}) == [["a"], ["b"], ["c"], ["d"]]


def test_a_diamond() -> None:
    """The fork comes first, the join last."""
    order = components_in_order({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []})
    assert order[0] == ["a"]
    assert order[-1] == ["d"]
    assert sorted(order[1:-1]) == [["b"], ["c"]]


def test_a_shortcut_does_not_bring_a_node_forward() -> None:
    """A node that is reached directly and by a detour comes after the detour."""
    assert components_in_order({"a": ["c", "b"], "b": ["c"], "c": []}) == [["a"], ["b"], ["c"]]


def test_the_nodes_of_a_cycle_stand_together() -> None:
    """What leads into it comes before, what it leads to after (law C2)."""
    order = components_in_order({"a": ["b"], "b": ["c"], "c": ["d"], "d": ["b", "e"], "e": []})
    assert [sorted(group) for group in order] == [["a"], ["b", "c", "d"], ["e"]]


def test_two_cycles_that_share_a_node_are_one() -> None:
    """Whatever can reach each other stands together."""
    order = components_in_order({"a": ["b", "c"], "b": ["a"], "c": ["a"]})
    assert [sorted(group) for group in order] == [["a", "b", "c"]]


def test_a_node_that_feeds_itself() -> None:
    """It is a component of its own, once."""
    assert components_in_order({"a": ["a", "b"], "b": []}) == [["a"], ["b"]]


def test_several_edges_to_one_node() -> None:
    """A bolt may subscribe to a component more than once."""
    assert components_in_order({"a": ["b", "b"], "b": []}) == [["a"], ["b"]]


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    """Three thousand components in a row, and as many in a ring."""
    count = 3_000
    chain = {str(n): [str(n + 1)] for n in range(count)} | {str(count): []}
    assert components_in_order(chain) == [[str(n)] for n in range(count + 1)]
    ring = {str(n): [str((n + 1) % count)] for n in range(count)}
    assert len(components_in_order(ring)) == 1


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = draw(st.permutations("abcdefg"[: draw(st.integers(1, 7))]))
    return {name: draw(st.lists(st.sampled_from(names), max_size=3)) for name in names}


@given(graphs())
def test_the_order_of_any_graph(graph: Graph) -> None:
    """Every node once; together exactly if each reaches the other; and no edge leads back to an earlier
    component."""
    order = components_in_order(graph)
    place = {node: number for number, group in enumerate(order) for node in group}
    paths = {node: reachable(graph, node) for node in graph}
    assert sorted(node for group in order for node in group) == sorted(graph)
    for a in graph:
        assert all(place[a] <= place[b] for b in graph[a])
        for b in graph:
            together = a == b or (b in paths[a] and a in paths[b])
            assert (place[a] == place[b]) == together
