"""A Postgres server for tests, with a cluster of its own that is gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

INSTALLED = Path("/usr/lib/postgresql")
"""Where Debian has a folder for each version."""
USER = "postgres"
"""Who runs the server where this process is root's, as Postgres refuses that."""


def binaries() -> Path | None:
    """The folder of ``initdb`` and its kind; None where Postgres is not installed."""
    found = shutil.which("pg_ctl")
    debian = sorted(INSTALLED.glob("*/bin/pg_ctl"), key=lambda each: each.parts)
    return debian[-1].parent if debian else Path(found).resolve().parent if found else None


class Server:
    """A server that is reached by a socket in its folder."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._as = {"user": USER, "group": USER, "extra_groups": []}
            shutil.chown(folder, USER, USER)
        made_as = ["-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        self._run("initdb", "-D", str(self._data), *made_as)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", str(self._data), "-l", log, "-w", "-t", "120", "-o", self.options, "start")

    @property
    def options(self) -> str:
        """Options of the server."""
        # Processes are killed here, and no machine: what the system has been given is not lost.
        return f"-k {self._folder} -c listen_addresses='' -c fsync=off"

    def stop(self) -> None:
        """Stop it as if it had failed."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "120", "-m", "immediate", "stop")

    def database(self, name: str) -> str:
        """Make an empty database, and return its URL."""
        self._run("createdb", "-h", str(self._folder), "-U", USER, name)
        return f"postgresql://{USER}@/{name}?host={self._folder}"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            cwd=self._folder,
            # The server inherits what it is started with: a pipe would stay open as long as it lives.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=150,
            check=False,
            **self._as,
        )
        assert done.returncode == 0, f"{program} {' '.join(arguments)}: exit code {done.returncode}"
