"""Reads explanations."""

from __future__ import annotations

import re

from stormlet import Explanation


def lines(explanation: Explanation) -> list[str]:
    """Its text line by line, without line numbers of files and without roots."""
    text = re.sub(r"(\.py):\d+", r"\1", str(explanation))
    return [line.strip() for line in re.sub(r"root \d+", "root", text).splitlines()]
