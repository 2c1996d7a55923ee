"""Stand-ins for Cython's decorators where the modules run interpreted: each returns the class unchanged.

A module that is decorated by ``@cython.freelist(1024)`` imports the real ``cython`` when compiled, and this module
under that name when not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

C = TypeVar("C", bound=type)

compiled: Final = False
"""False here. Cython takes the name as True and leaves out the branches for the interpreter."""


def is_extension(file: str) -> bool:
    """Return True if a module with this ``__file__`` is compiled."""
    # Not "anything but .py": a frozen application may have .pyc files only.
    return file.endswith((".so", ".pyd"))


def cclass(kind: C) -> C:
    """Make it an extension type; its attributes are declared in the ``.pxd`` file of the module."""
    return kind


def no_gc(kind: C) -> C:
    """Keep the garbage collector from looking into its instances."""
    return kind


def trashcan(yes: bool) -> Callable[[C], C]:
    """Release a long chain of instances link by link, as one recursion would overflow the stack of C."""
    return cclass


def freelist(count: int) -> Callable[[C], C]:
    """Keep the memory of up to ``count`` released instances for the next ones."""
    return cclass
