"""``DataFrameSink``: a bolt that has Spark write the values of a stream.

From the ground up::

    arrow_frames    DataFrames of Arrow tables whose batches go to the tasks as they are
    trial           the check of format, options and columns before there is any row
    writer          the destination, the sink's columns, and the writes of tables and of epochs; all of it blocks
    portions        rows on their way to one write: converted a portion at a time, beside the write before, and bounded
    bolts           the bolt that writes each row at least once
    committed       the bolt of ``exactly_once=True``: a committer, which writes epochs that are durable
    dataframe_sink  the class that users name: it checks its arguments and makes one of the two bolts

The bolts gather values into batches (:class:`stormlet.model.components.BatchBolt`) and call their writer in threads of
their task, so that a write never holds the loop. The batches of the first are portions of a write, as many as have come
while Spark was busy with the one before. Values that do not fit their columns are rejected one by one; an error of
Spark's fails all rows of the write, which are replayed.

With ``exactly_once=True`` the bolt keeps its rows with the epoch, and writes them when it is durable (law X9).
"""
