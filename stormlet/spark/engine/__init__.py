"""A topology that Spark runs, instead of this process.

The rooms, from the ground up::

    planning/   what can be said before anything runs: stages, tasks, refusals
    partition/  one partition of one stage at work; it knows no Spark
    passage/    one passage of messages through the chain of stages, as DataFrames
    batch/      ``run_on_spark``: one passage, and its result
    stream/     ``stream_on_spark``: a passage for each epoch, and the states between them

The theory stands at the head of :mod:`~stormlet.spark.engine.planning.layout` (stages),
:mod:`~stormlet.spark.engine.partition.partition` (the work in one) and
:mod:`~stormlet.spark.engine.partition.account` (the ledger over all of them).
"""
