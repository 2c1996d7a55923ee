"""Dead letters at the command line: the table of them, and how they are fed again."""

from __future__ import annotations
