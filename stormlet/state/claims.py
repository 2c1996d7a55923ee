"""The claim that a run has to its state: one run at a time."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from stormlet.errors import StateUnusable
from stormlet.files import DISK_IS_FULL, Claimed, FileClaim, NotLockable
from stormlet.state.refusals import DISK_FULL


@contextmanager
def claimed(path: Path) -> Generator[None]:
    """Keep a file from runs meanwhile. Raises :class:`~stormlet.errors.StateUnusable` if one has it."""
    claim = FileClaim(path)
    take(claim, path, "")
    try:
        yield
    finally:
        claim.release()


def take(claim: FileClaim, path: Path, otherwise: str) -> None:
    """Take the claim of a run. Raises :class:`~stormlet.errors.StateUnusable`, with ``otherwise`` as another way out,
    if there is a run that has it."""
    try:
        claim.take()
    except Claimed as error:
        by = "another run of this process" if error.is_ours else error.by
        raise StateUnusable(f"{path} is in use by {by}; wait for its end{otherwise}") from error
    except NotLockable as error:
        raise StateUnusable(f"{error}; keep {path} on a disk of this machine") from error
    except OSError as error:
        if error.errno in DISK_IS_FULL:
            raise StateUnusable(f"{path} {DISK_FULL}") from error
        raise StateUnusable(
            f"{path} cannot be kept: {error}; give this user the right to write in {path.parent}, or another path"
        ) from error
