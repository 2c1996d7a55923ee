"""Secrets that do not show: a type for them, and a brush for the texts of others (law R9)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote, quote_plus

HIDDEN: Final = "***"
TELLING: Final = 16
"""Letters of a line of a secret that is a secret by itself."""


class Secret:
    """A password or a token. Its text comes out by :meth:`reveal` alone: not in ``repr``, ``str``, formats or logs."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Raise :class:`ValueError` for a text that UTF-8 cannot express, as each client would do with a text of it."""
        if text.encode("utf-8", "replace").decode() != text:
            raise ValueError("a secret must be a text in UTF-8")
        self._text = text

    @classmethod
    def from_file(cls, path: str | Path) -> Secret:
        """Read it from a file, without the line end. Raises :class:`OSError`, and :class:`ValueError` for one that is
        no text in UTF-8."""
        # Python's own error for such bytes would have all of them.
        return cls(Path(path).read_text("utf-8", "surrogateescape").rstrip("\r\n"))

    @classmethod
    def from_environment(cls, name: str) -> Secret:
        """Read it from an environment variable. Raises :class:`KeyError`, and :class:`ValueError` for one that is no
        text in UTF-8."""
        return cls(os.environ[name])

    def reveal(self) -> str:
        """Return the text, to be given to a client."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({HIDDEN!r})"

    def __str__(self) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a Secret is not pickled; read it where it is needed, from a file or the environment")


def scrubbed(text: str, secrets: Iterable[Secret]) -> str:
    """Return the text without these secrets, in any of the forms that URLs give them."""
    for secret in secrets:
        for form in _forms(secret.reveal()):
            text = text.replace(form, HIDDEN)
    return text


def _forms(text: str) -> list[str]:
    # The longest first: a quoted form may have the plain one in it.
    forms = {text, quote(text), quote(text, safe=""), quote_plus(text), repr(text)[1:-1]}
    forms |= {line for line in text.splitlines() if len(line) >= TELLING}  # of a file with keys
    return sorted((form for form in forms if form), key=len, reverse=True)
