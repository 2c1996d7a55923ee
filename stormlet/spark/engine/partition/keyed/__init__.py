"""Partitions with keyed state.

::

    groups     key groups, and the rows that bring them from run to run
    tables     the keyed state of one partition
    attempts   the inputs of such a partition: what of them is undone, and tried again
    carried    keyed state that goes from one run into another
    partition  the partition, which ends an attempt when nothing of it is under way
"""
