"""``stream``: a Structured Streaming query that feeds a spout, batch by batch.

From the ground up::

    query         one run of a query: Spark's threads, and the micro-batches that wait for their verdict
    keeper        the description of a query, and its runs one after another, restarted by a policy
    reader        the rows of the batch in hand, and the reader that emits each at least once
    epoch_reader  the reader that takes each batch as an epoch, for committers and state
    spout         the spout, which has one of the two readers
    stream        the function that users call, and the source that makes the spout

Spark calls ``foreachBatch`` in a thread of its own, and that call returns only after the topology has settled every row
of the batch. Spark then commits the batch's offsets; if the call raises, the query ends, and the same batch comes
again. The rows of a batch are pulled as those of a DataFrame are (:mod:`stormlet.spark.source.puller`).
"""
