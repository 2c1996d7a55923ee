"""What ``stormlet run`` is made of: the session, its endings, and what it shows."""

from __future__ import annotations
