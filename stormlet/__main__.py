"""``python -m stormlet``."""

from __future__ import annotations

import sys

from stormlet.cli import main

if __name__ == "__main__":
    sys.exit(main())
