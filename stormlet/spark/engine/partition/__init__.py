"""One partition of one stage at work, with the tasks of a run in process. It knows no Spark.

::

    rows        the rows that stages hand on: chunks of tuples, and others
    account     the ledger of the whole run: one XOR over all partitions
    roots       the same by root, on request: it names the messages that are open
    lanes       what one task has emitted for one task in another stage
    merging     values with equal keys, of which one leaves on its lane
    exits       the way out of a partition: all lanes, and the chunks that they give
    outlets     outlets that lead into lanes
    inputs      the inputs of a partition, each with a tree of its own there
    deliveries  the tuples that are made of them
    states      the state of bolts, from one epoch of a stream to the next
    equipment   the engine's parts in a partition: bolt tasks, outboxes, outlets
    columns     columns of values that pass through a partition together
    shortcut    the direct way through a partition whose bolts are plain functions
    rest        the moments in which nothing in a partition moves, and the crashes instead of one
    partition   one partition, from its first input to its report
"""
