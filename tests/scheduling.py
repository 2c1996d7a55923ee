"""Which tests a worker of pytest-xdist takes together."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

TOGETHER = "tests/spark/"


class FileByFile(LoadScopeScheduling):
    """A file, as its tests share fixtures; and all files that share the session of Spark, as each worker would start a
    JVM of its own. (The marker ``xdist_group`` has no effect with pytest 9.2.)"""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER if nodeid.startswith(TOGETHER) else nodeid.partition("::")[0]
