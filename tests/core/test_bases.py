"""What the kinds of schemas and groupings must define; msgspec's records cannot be abstract classes."""

from __future__ import annotations

from random import Random

import pytest

from stormlet.core.groupings import Grouping
from stormlet.core.schema import Schema


def test_a_kind_of_grouping_has_a_chooser() -> None:
    """One that forgets to define it is told so at its first use, and chooses nothing."""
    with pytest.raises(NotImplementedError):
        Grouping().chooser([1], Random(1))


def test_a_kind_of_schema_reads_and_judges_values() -> None:
    """Each of the three methods that make a kind is missing until it is defined."""
    schema = Schema(name="nothing", fields=("a",), enforced=False)
    with pytest.raises(NotImplementedError):
        schema.get("value", "a")
    with pytest.raises(NotImplementedError):
        schema.misfit("value")
    with pytest.raises(NotImplementedError):
        schema.reader(["a"])
