"""The command line in this process, on streams like those of a terminal or a pipe."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from stormlet.cli.app import carry_out

DONE, FAILED, WRONG_USAGE = 0, 1, 2


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def is_in_our_words(self) -> bool:
        """Done; or there is a message, and no traceback."""
        said = self.code == DONE or bool(self.err.strip() or self.out.strip())
        return self.code in (DONE, FAILED, WRONG_USAGE) and said and "Traceback" not in self.err


def run_cli(arguments: Sequence[str]) -> Ended:
    """Standard output refuses what UTF-8 cannot say, and standard error escapes it, as in every process."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)
    loaded = set(sys.modules)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = carry_out(arguments)
        finally:
            for name in set(sys.modules) - loaded:
                if "flow" in name:
                    del sys.modules[name]
    return Ended(code, *(text.buffer.getvalue().decode() for text in (out, err)))  # type: ignore[attr-defined]
