"""``run_on_spark``: a topology as one batch.

::

    outcomes    the outcomes of all messages, and the dead letters, as DataFrames
    passes      one passage, or several with replays from the source
    result      the result of a run
    batch       ``run_on_spark``, and the steps of a run
"""
