"""``DataFrameSink``: a bolt that has Spark write the values of a stream.

From the ground up::

    writer          the destination, the sink's columns, and the writes of batches and of epochs; all of it blocks
    bolts           the bolt that writes each row at least once, and that of ``exactly_once=True``
    dataframe_sink  the class that users name: it checks its arguments and makes one of the two bolts

Both bolts gather values into batches (:class:`stormlet.model.components.BatchBolt`) and call their writer in a thread
of their task, so that a write never holds the loop. Values that do not fit their columns are rejected one by one; an
error of Spark's fails the whole batch, which is replayed.

With ``exactly_once=True`` the bolt keeps its rows in memory, and the source of the run has them written when an epoch
is complete: see :mod:`stormlet.spark.epochs`.
"""
