"""The key groups that the epochs of a stream have written, and those of them that count.

Theory of operation
-------------------
An epoch writes the groups that have changed in it, in files of its own. Its record names every group that there is,
with the epoch that has written it last, so that nothing is read but what a record names.

The files of an epoch stay as long as a group in them counts. So that there are not too many of them, and not too much
in them that does not count, an epoch also writes groups of earlier ones again, unread: those of epochs more than half
of whose groups were written since, and, where there are :data:`MOST`, those of the half that has the fewest. For that a
group is written about twice as often as it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Final

import msgspec

from stormlet.spark.engine.partition.keyed.groups import GroupId

MOST: Final = 16
"""Epochs whose files are kept for their groups."""


class Written(msgspec.Struct, frozen=True):
    """The groups that one epoch has written."""

    epoch: int
    files: Mapping[str, int]
    """The names of the files that they are in, with their bytes."""
    groups: Sequence[tuple[GroupId, int]]
    """Those that count, with the XOR of the hashes of their rows."""
    count: int
    """The number of all."""


def written_by(epoch: int, files: Mapping[str, int], groups: Mapping[GroupId, int]) -> Written:
    """Return the groups that an epoch has just written."""
    return Written(epoch, files, [*groups.items()], len(groups))


def after(before: Sequence[Written], written: Written) -> Sequence[Written]:
    """Return the groups that count when an epoch has written these."""
    new = {id for id, _ in written.groups}
    kept = [
        msgspec.structs.replace(each, groups=[group for group in each.groups if group[0] not in new])
        for each in before
    ]
    return [each for each in (*kept, written) if each.groups]


def to_write_again(kept: Sequence[Written]) -> frozenset[int]:
    """Return the epochs whose groups are to be written again."""
    worn = {each.epoch for each in kept if 2 * len(each.groups) < each.count}
    fewest = sorted(kept, key=lambda each: len(each.groups))[: len(kept) // 2] if len(kept) >= MOST else ()
    return frozenset(worn | {each.epoch for each in fewest})


def hashes_of(kept: Sequence[Written]) -> int:
    """Return the XOR of the hashes of all rows that count."""
    return reduce(int.__xor__, (hashes for each in kept for _, hashes in each.groups), 0)


def ids_of(kept: Sequence[Written]) -> Collection[tuple[GroupId, int]]:
    """Return the groups that count, each with its epoch."""
    return {(id, each.epoch) for each in kept for id, _ in each.groups}
