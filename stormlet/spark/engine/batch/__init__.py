"""``run_on_spark``: a topology as one batch.

::

    arrow_rows  rows as Spark moves them
    messages    the messages of the first stage, and those that are read again to become dead letters
    outputs     streams that leave as DataFrames: for sinks, and for the result
    reports     what all partitions say at their end
    stage       a stage as Spark runs it: the function for mapInArrow
    chain       exchange, sort, stage, exchange, sort, stage: one lazy DataFrame
    sources     the messages that the driver reads
    code        the user's modules, sent to the executors
    executors   the executors' packages, compared with the driver's
    staging     the folder of what is not checked yet
    result      the result of a run
    batch       ``run_on_spark``, and the steps of a run
"""
