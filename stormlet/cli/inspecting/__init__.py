"""What ``check``, ``graph`` and ``describe`` are made of: they look at a topology and do not run it."""

from __future__ import annotations
