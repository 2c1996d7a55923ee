"""``--dead-letters FILE``: where messages go that are given up."""

from __future__ import annotations

from pathlib import Path

from stormlet.errors import TargetError
from stormlet.runtime.dead_letters import LetterFile


def letter_file(path: Path) -> LetterFile:
    """The file, made if it is missing. Raises :class:`~stormlet.errors.TargetError` if it cannot be written."""
    try:
        return LetterFile(path)
    except OSError as error:
        raise TargetError(f"--dead-letters {path} cannot be written: {error.strerror}") from None
