"""Partitions with keyed state.

::

    tables     the keyed state of one partition, and the rows that bring it from run to run
    attempts   the inputs of such a partition: what of them is undone, and tried again
    carried    keyed state that goes from one run into another
    partition  the partition, which ends an attempt when nothing of it is under way
"""
