"""Values on their way from Spark to Python, and back.

Out of Spark, for the sources::

    records     record types of users: their fields, and the columns that they stand for
    refiners    the table of types: which Python value a value of Spark becomes, and which annotations accept it
    conversion  record batches or plain rows into the values that a source emits

Into Spark, for the sinks::

    columns     single values made fit for their columns; a value that Arrow would change is refused
    tables      record batches made fit in the same way, and values of either kind as one table, without the misfits

Nothing here has a thread, a task or a session of Spark. pyarrow and pyspark are imported within functions, so that
``import stormlet.spark`` loads neither.
"""
