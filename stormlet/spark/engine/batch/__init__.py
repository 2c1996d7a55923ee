"""``run_on_spark``: a topology as one batch.

::

    outcomes    the outcomes of all messages, and the dead letters, as DataFrames
    result      the result of a run
    batch       ``run_on_spark``, and the steps of a run
"""
