"""Where tuples come from that a DataFrame's rows became."""

from __future__ import annotations

import msgspec


class Origin(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Where a tuple comes from: ``tup.origin`` of all that comes of a row."""

    partition: int
    """The partition of the DataFrame, from 0."""
    row: int
    """The row within its partition, from 0; of a batch, its first row."""
    epoch: int | None = None
    """The epoch that the row belongs to, where the source gives epochs."""
