"""The runner of mutants: it applies one at a time to a copy of the repository, and runs its tests there.

The working tree is never changed. A copy has no compiled modules, so that the mutant is what runs. Tests run in a
process of their own each time, with the copy in front of the module path.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path

import msgspec

from tests.mutants.mutants import ROOT, Mutant, Stale

TEST_LIMIT = 60
"""Seconds that one test may take."""
LIMIT = 600
"""Seconds that all tests of one run may take."""

OPTIONS = (
    *("-q", "-x", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist"),
    "--hypothesis-seed=0",  # the same examples every time
    # By the thread, as a broken engine may swallow what the signal raises.
    *(f"--timeout={TEST_LIMIT}", "--timeout-method=thread"),
)
LEFT_OUT = shutil.ignore_patterns(
    ".*", "build", "dist", "node_modules", "__pycache__", "*.egg-info", "*.so", "*.pyd"
)


class Result(Enum):
    """What became of a mutant."""

    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    STALE = "PATTERN MISSING"
    SKIPPED = "skipped"
    """Its tests need what is not installed here."""
    BROKEN = "BROKEN"
    """Its tests could not run at all."""


class Run(msgspec.Struct, frozen=True):
    """The end of one run of tests."""

    code: int
    """The exit code of pytest; -1 if the time was up."""
    output: str

    @property
    def result(self) -> Result:
        """Tests that fail or hang have caught a mutant; an error before the first test has not."""
        if self.code in (1, -1):
            return Result.CAUGHT
        if self.code:
            return Result.BROKEN
        return Result.SURVIVED if " passed" in self.output else Result.SKIPPED


class Copy:
    """A copy of the repository, whose files may be changed."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder = folder / "stormlet"
        shutil.copytree(root, self.folder, ignore=LEFT_OUT)
        self._applied = 0
        self._check_import()

    def result(self, mutant: Mutant) -> tuple[Result, str]:
        """Apply a mutant, run its tests and take it back; return the result and the output of the tests."""
        file = self.folder / mutant.file
        try:
            mutant.check(self.folder)
            text = file.read_text(encoding="utf-8")
            changed = mutant.applied(text)
        except Stale as stale:
            return Result.STALE, str(stale)
        before = file.stat().st_mtime
        self._applied += 1
        # Python takes bytecode for that of a file by the second of its last change. Each mutant has one of its own.
        _write(file, changed, before + self._applied)
        try:
            run = self.run(mutant.tests)
        finally:
            _write(file, text, before)
        return run.result, run.output

    def baseline(self, mutants: Iterable[Mutant]) -> Run:
        """Run the tests of these mutants without any of them."""
        return self.run(list(dict.fromkeys(test for each in mutants for test in each.tests)))

    def run(self, tests: Sequence[str]) -> Run:
        """Run these tests up to the first failure."""
        command = [sys.executable, "-m", "pytest", *OPTIONS]
        return _run([*command, *tests], self.folder, self._environment())

    def _check_import(self) -> None:
        """Raise :class:`RuntimeError` unless Python finds stormlet in this copy."""
        command = [sys.executable, "-c", "import stormlet; print(stormlet.__file__)"]
        run = _run(command, self.folder, self._environment())
        if str(self.folder) not in run.output:
            raise RuntimeError(f"not the copy in {self.folder} is imported: {run.output.strip()}")

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder), "NO_COLOR": "1"}


def _write(file: Path, text: str, changed: float) -> None:
    file.write_text(text, encoding="utf-8")
    os.utime(file, (changed, changed))


def _run(command: Sequence[str], folder: Path, environment: dict[str, str]) -> Run:
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that its children can be killed with it
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=LIMIT)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return Run(-1, output)
    return Run(process.returncode, output)
