from __future__ import annotations

from random import Random

import pytest

from stormlet import is_compiled
from stormlet.core.trees import OpenTree, TreeTable, tree_table

HIGHEST = 2**64 - 1


def table_of(*roots: int) -> TreeTable:
    table = TreeTable()
    for root in roots:
        table.put(OpenTree(root=root, message_id=f"m{root}"))
    return table


def test_a_ledger_uses_it_where_it_is_compiled() -> None:
    """Interpreted, a dict is faster."""
    assert type(tree_table()) is (TreeTable if is_compiled() else dict)


def test_it_says_what_a_dict_says() -> None:
    """Of whom it has, in the order in which they came, and whom it has not."""
    table = table_of(3, HIGHEST, 1)
    assert (
        [*table]
        == [root for root, _ in table.items()]
        == [tree.root for tree in table.values()]
        == [3, HIGHEST, 1]
    )
    assert (table[HIGHEST].message_id, len(table), 1 in table, 2 in table) == (f"m{HIGHEST}", 3, True, False)
    assert (table.get(2), table.pop(2, None), table.pop(3).root, len(table)) == (None, None, 3, 2)
    with pytest.raises(KeyError):
        table[3]
    with pytest.raises(KeyError):
        table.pop(3)


def test_a_root_that_comes_again_has_the_newer_tree() -> None:
    """It stands where the newer one was put."""
    table = table_of(1, 2)
    table[1] = again = OpenTree(root=1)
    assert ([*table], table[1]) == ([2, 1], again)


def test_none_is_left_after_it_is_cleared() -> None:
    """And it can be used again."""
    table = table_of(*range(1, 1000))
    table.clear()
    table.put(OpenTree(root=5))
    assert ([*table], 6 in table) == ([5], False)


@pytest.mark.parametrize("common", [1, 64, 2**20, 2**63])
def test_roots_of_one_slot_are_told_apart(common: int) -> None:
    """Whatever bits they share, also when those between them were taken out."""
    roots = [common * (number + 1) % 2**64 for number in range(2 if common == 2**63 else 40)]
    table = table_of(*roots)
    for root in roots[::2]:
        assert table.pop(root).root == root
    assert [root for root in roots if root in table] == [*table] == roots[1::2]


@pytest.mark.parametrize("seed", range(40))
def test_it_is_a_dict(seed: int) -> None:
    """Ten thousand random steps on a table and on a dict: the same answers, the same order."""
    random, table, expected = Random(seed), TreeTable(), dict[int, OpenTree]()
    roots = [random.getrandbits(64) for _ in range(random.choice([3, 40, 400, 4000]))]
    for _ in range(10_000):
        root, step = random.choice(roots), random.random()
        if step < 0.45:
            tree = OpenTree(root=root)
            expected.pop(root, None)
            expected[root] = tree
            table[root] = tree
        elif step < 0.85:
            assert table.pop(root, None) is expected.pop(root, None)
        elif step < 0.999:
            assert table.get(root) is expected.get(root)
            assert (root in table, len(table)) == (root in expected, len(expected))
        else:
            assert [*table.items()] == [*expected.items()]
    assert [*table.items()] == [*expected.items()]


def test_it_takes_out_while_it_is_gone_through() -> None:
    """As an expiry does: what is there is seen, and what was taken out is not."""
    table = table_of(*range(1, 200))
    seen = []
    for root in table:
        seen.append(root)
        table.pop(root + 1, None)
    assert seen == [*range(1, 200, 2)]
