"""Cycles and order of a directed graph given as successors by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def components_in_order(successors: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The strongly connected components, upstream first; a node without a cycle is a component of its own.

    Tarjan's algorithm, without recursion, so that a long chain of bolts cannot exhaust the stack.
    """
    found: list[list[str]] = []
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    on_path: dict[str, None] = {}
    for start in successors:
        if start in index:
            continue
        work = [(start, iter(successors[start]))]
        _enter(start, index, lowest, path, on_path)
        while work:
            node, following = work[-1]
            child = next((each for each in following if each not in index or each in on_path), None)
            if child is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == index[node]:
                    found.append(_leave(node, path, on_path))
            elif child in index:
                lowest[node] = min(lowest[node], index[child])
            else:
                _enter(child, index, lowest, path, on_path)
                work.append((child, iter(successors[child])))
    found.reverse()
    return found


def _enter(
    node: str, index: dict[str, int], lowest: dict[str, int], path: list[str], on_path: dict[str, None]
) -> None:
    index[node] = lowest[node] = len(index)
    path.append(node)
    on_path[node] = None


def _leave(node: str, path: list[str], on_path: dict[str, None]) -> list[str]:
    start = path.index(node)
    component = path[start:]
    del path[start:]
    for each in component:
        del on_path[each]
    return component
