"""``python -m benchmarks``: everything that is measured of stormlet, beside others who do the same work.

Theory of operation
-------------------
It builds on :mod:`stormlet.bench`, the room behind ``python -m stormlet bench``: a workload is a function that does so
much, checks that the result is right, and returns figures; each runs in a process of its own, and all take turns::

    workloads/    of stormlet itself, the limits, and rows from Spark
    peers/        the same word count by others
    catalogue     all of them, in the order of the reports
    child         one workload in this process
    memory, holds    memory of the process, and the times for which the loop is held
    units, targets   the figures in words, and the bounds that stormlet is meant to keep
    machine, report, plain, markdown    the report, for a terminal, the README and scripts
"""
