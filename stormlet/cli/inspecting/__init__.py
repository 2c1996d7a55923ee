"""``check``, ``graph`` and ``describe``: a topology that is read and not run, from the ground up::

    inspection    the topology that was loaded, with its effective settings
    checks/       the rules of ``check``, a function for each
    formats       a drawing of :mod:`stormlet.drawing` as text, as a Mermaid flowchart, and in the language of Graphviz
    stages        the stages in which Spark would run the topology

The code of spouts and bolts is read, never run.
"""

from __future__ import annotations
