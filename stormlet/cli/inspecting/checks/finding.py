"""What ``check`` finds."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """Something that is allowed, and probably not meant."""

    rule: str
    """What kind it is, such as ``"cycle"``: always the same words for the same rule."""
    component: str | None
    """The component that it is about; None for the topology as a whole."""
    problem: str
    """What is so, and what comes of it."""
    advice: str
    """What to do about it."""
