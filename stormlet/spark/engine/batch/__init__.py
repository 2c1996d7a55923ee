"""``run_on_spark``: a topology as one batch.

::

    arrow_rows  rows as Spark moves them
    messages    the messages of the first stage, and those that are read again to become dead letters
    outputs     streams that leave as DataFrames: for sinks, and for the result
    reports     what all partitions say at their end
    stage       a stage as Spark runs it: the function for mapInArrow
    chain       exchange, sort, stage, exchange, sort, stage: one lazy DataFrame
    sources     the messages of all spouts as DataFrames; most are read by the driver
    code        the user's modules, sent to the executors
    executors   the executors' packages, compared with the driver's
    staging     the folder of what is not checked yet
    ledger      the lines of all partitions, checked, and by root the messages that are open
    driver      the bolts that run in the driver
    outcomes    the outcomes of all messages, and the dead letters, as DataFrames
    result      the result of a run
    batch       ``run_on_spark``, and the steps of a run
"""
