"""``DataFrameSpout``: the rows of a DataFrame as tracked tuples.

From the ground up::

    plans            Spark's query plans: whether a DataFrame can be read again, its fingerprint and its extent
    reading          chunks of values, partition by partition; and the code that runs on Spark's executors
    ordering         the same in the order of a unique key, from any row on
    checkpoint       the file that keeps how far a source has come, and what it is made of
    positions        the position that a topology with state= keeps with each epoch, instead of a checkpoint
    progress         reports of rows or partitions read
    puller           the thread that pulls chunks from Spark, and the bounded queue to the loop
    reader           the spouts: row by row, without a checkpoint and with one, and in epochs
    dataframe_spout  the class that users name; it checks its arguments and chooses a read and a reader

Rows are counted within their partition, from 0. The pair of both is the message id of a row, its ``origin`` and its
place in the checkpoint. A read with ``order_by=`` counts all rows as partition 0.
"""
