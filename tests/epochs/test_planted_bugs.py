"""Lives that are cut short bring planted bugs to light; with more seeds: ``python -m tests.epochs.planted_bugs``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.epochs.planted_bugs import BUGS, SHORT_FORM_BEGINS_AT, found_by
from tests.helpers import interpreted_only


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a loop that is dropped
@interpreted_only
@pytest.mark.untraced
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: Callable[[pytest.MonkeyPatch], None]) -> None:
    """Within a few seeds."""
    assert found_by(bug, 100, SHORT_FORM_BEGINS_AT.get(bug, 0)) is not None
