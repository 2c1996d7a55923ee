"""The REST, in Storm's names and shapes, from the ground up::

    words        numbers and names as Storm writes them
    shapes       the answers
    rows         the rows of tables: a component, a task, a stream, an error
    summaries    the process, its topologies, one topology
    components   one component
    flows        what runs between components: visualization, metrics, lag

Hosts, ports, workers and memory of a cluster do not exist in one process: they are left out, or are constants where
tools read them. A task is an executor of its own.
"""

from __future__ import annotations
