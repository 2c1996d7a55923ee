from __future__ import annotations

from array import array
from itertools import chain, islice, permutations
from random import Random

import pytest

from stormlet.core.ids import BLOCK, IdSource, Twister, _blocks, shard_of


class Scripted(Random):
    """Gives the ids it is told to, padded to whole blocks with ones."""

    def __init__(self, *ids: int) -> None:
        super().__init__(0)
        self.ids = list(ids)
        self.blocks = 0

    def randbytes(self, n: int) -> bytes:
        self.blocks += 1
        count = n // 8
        block, self.ids = self.ids[:count], self.ids[count:]
        return array("Q", block + [1] * (count - len(block))).tobytes()


def draw(random: Random, count: int) -> list[int]:
    return list(islice(IdSource(random), count))


def test_fs_l13_zero_is_never_drawn() -> None:
    """The generator yields 0 first, in the middle and last: x ^ 0 == x, so no id is 0 (FS-L13)."""
    assert draw(Scripted(0, 7, 0, 0, 8, 0), 3) == [7, 8, 1]


def test_a_block_of_nothing_but_zeros_is_skipped() -> None:
    """Even a whole block of zeros gives no id 0 and does not end the stream."""
    assert draw(Scripted(*[0] * (2 * BLOCK), 5), 2) == [5, 1]


def test_fs_l13_the_streams_of_two_tasks_differ() -> None:
    """Two tasks with generators of their own share no id (FS-L13)."""
    assert not set(draw(Random("a"), 2000)) & set(draw(Random("b"), 2000))


def test_one_seed_gives_one_stream() -> None:
    """Ids come from the generator alone, so that runs with one seed are the same (law L16)."""
    assert draw(Random(7), 3 * BLOCK + 1) == draw(Random(7), 3 * BLOCK + 1)


def test_ids_are_the_generators_words_in_order() -> None:
    """Nothing is lost or doubled where one block ends and the next begins."""
    random = Random(3)
    words = array("Q", random.randbytes(8 * BLOCK) + random.randbytes(8 * BLOCK)).tolist()
    assert draw(Random(3), 2 * BLOCK) == words


def test_ids_fill_64_bits_and_do_not_repeat() -> None:
    """Every bit is used, the highest included, and none of many ids occurs twice (law L1)."""
    ids = draw(Random(1), 20_000)
    ones = [sum(id >> bit & 1 for id in ids) / len(ids) for bit in range(64)]
    assert len(set(ids)) == len(ids)
    assert 0 < min(ids) < max(ids) < 2**64
    assert all(abs(share - 0.5) < 0.03 for share in ones)


def test_nothing_is_drawn_before_it_is_needed() -> None:
    """A source that is never asked leaves its generator alone, and a block lasts for its length."""
    random = Scripted()
    ids = iter(IdSource(random))
    assert random.blocks == 0
    list(islice(ids, BLOCK))
    assert random.blocks == 1
    next(ids)
    assert random.blocks == 2


def test_no_few_ids_cancel_out() -> None:
    """The XOR of up to three different ids is never 0: no tree of that size can look complete by accident."""
    ids = draw(Random(5), 60)
    assert all(a ^ b and a ^ b ^ c for a, b, c in permutations(ids, 3))


@pytest.mark.parametrize(("root", "shard"), [(root, root % 4) for root in range(8)])
def test_fs_l12_the_shard_is_the_root_modulo_the_ackers(root: int, shard: int) -> None:
    """``root % ackers``, the same one every time (FS-L12, law L6)."""
    assert [shard_of(root, 4)] * 3 == [shard] * 3


def test_the_highest_root_has_a_shard() -> None:
    """Roots are unsigned: the largest is no negative number, whose modulo languages disagree on (FS-L12)."""
    assert shard_of(2**64 - 1, 4) == 3
    assert shard_of(2**64 - 1, 1) == 0


def test_every_shard_gets_its_share() -> None:
    """Random roots are spread evenly over the ackers."""
    shards = [shard_of(root, 3) for root in draw(Random(9), 9000)]
    assert all(abs(shards.count(shard) - 3000) < 200 for shard in range(3))


@pytest.mark.parametrize("seed", [0, 1, "task", 2**70])
def test_the_twister_goes_on_where_the_generator_is(seed: int | str) -> None:
    """What runs compiled gives the ids that the interpreted one gives, from any state (law L16)."""
    random, same = Random(seed), Random(seed)
    random.random(), same.random()
    assert list(islice(Twister(random.getstate()[1]), 5000)) == list(
        islice(chain.from_iterable(_blocks(same)), 5000)
    )


def test_the_twister_gives_no_zero() -> None:
    """A state of zeros would give nothing else: what follows the first word that is not zero is an id."""
    state = [*[0] * 10, 1, *[0] * 613, 0]
    assert 0 not in islice(Twister(state), 1000)
