"""``check``, ``graph`` and ``describe``: a topology that is read and not run, from the ground up::

    inspection    the topology that was loaded, with its effective settings
    anchoring     the source code of components: their emits, anchors and acks
    checks/       the rules of ``check``, a function for each
    drawing       components and subscriptions in words, whatever the format
    formats       a drawing as text, as a Mermaid flowchart, and in the language of Graphviz
    layout, svg   a drawing in columns, and as SVG
    stages        the stages in which Spark would run the topology

The code of spouts and bolts is read, never run.
"""

from __future__ import annotations
