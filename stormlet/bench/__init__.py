"""``python -m stormlet bench``: the word count with acking, beside the same work without a framework.

Theory of operation
-------------------
A workload is a function that does so much, checks that the result is right, and returns figures. Each runs once a
round, in a process of its own, and all of them take turns: machines drift, so only what ran side by side compares, and
every ratio is one of figures of the same round. From the ground up::

    workload      a workload, its event loop, the check of its result
    word_count    the sentences, the loops that are the limit, and the workloads of the command
    state         the word count with epochs and keyed state
    catalogue     the workloads, and the names of several
    rounds        processes that take turns, with the pauses of the garbage collector
    report        the figures as a table
    __main__      one workload in this process: the command that ``rounds`` runs

The peers, and everything else that is measured, are in ``benchmarks/`` of a checkout, which builds on this room.
"""
