"""The passage of messages through all stages, which batches and the epochs of streams have in common.

::

    arrow_rows  rows as Spark moves them
    messages    the messages of the first stage, and those that are read again to become dead letters
    outputs     streams that leave as DataFrames: for sinks, and for the result
    reports     what all partitions say at their end
    ledger      the lines of all partitions, checked, and by root the messages that are open
    stage       a stage as Spark runs it: the function for mapInArrow
    chain       exchange, sort, stage, exchange, sort, stage: one lazy DataFrame
    driver      the bolts that run in the driver
    sources     the messages of all spouts as DataFrames; most are read by the driver
    passage     one passage, from the spouts to the bolts of the driver
    code        the user's modules, sent to the executors
    executors   the executors' packages, compared with the driver's
    connect     Spark Connect, whose client has no JVM: what only a job can say there
    staging     a folder of this process's own
    conduct     settings of the session, cancellation, errors, dead letters
"""
