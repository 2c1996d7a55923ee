"""What Cython is told by decorators, for when the modules run interpreted: nothing.

It reads ``@cython.freelist(1024)``, so whoever needs one imports its ``cython`` when compiled, and this module under
that name when not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)

compiled: bool = False
"""Cython knows it as True, and leaves out what is for the other case."""


def is_extension(file: str) -> bool:
    """Whether a module with this ``__file__`` is compiled; a frozen application may have a .pyc instead of a .py."""
    return file.endswith((".so", ".pyd"))


def cclass(kind: C) -> C:
    """Its attributes are declared beside the module."""
    return kind


def no_gc(kind: C) -> C:
    """The garbage collector does not look into its instances."""
    return kind


def trashcan(yes: bool) -> Callable[[C], C]:
    """A long chain of instances that hold each other is dropped link by link, not in one recursion."""
    return cclass


def freelist(count: int) -> Callable[[C], C]:
    """The memory of so many instances is kept for the next ones."""
    return cclass
