"""Blobs of entries."""

from __future__ import annotations

import pytest

from stormlet.core.state.blobs import bytes_of_entries
from stormlet.core.state.codecs import encoded


@pytest.mark.parametrize("count", [1, 15, 16, 65_535, 65_536])
def test_the_bytes_of_entries_are_the_same_in_whatever_blobs(count: int) -> None:
    """What says how many a blob has is not among them."""
    assert bytes_of_entries(encoded({f"{number:06}": 1 for number in range(count)})) == 8 * count
