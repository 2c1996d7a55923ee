"""``python -m benchmarks``, from a checkout."""

from __future__ import annotations

import sys

from benchmarks.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
