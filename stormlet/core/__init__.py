"""DECIDES. The law as plain Python: no clock, no event loop, no logging, no randomness without a seed.

An hour is enough to read it, in this order::

    ids         random 64-bit ids, and the acker that owns a root
    rotating    the map of buckets in which timeouts live
    outcomes    failures, dead letters, the history of attempts
    tuples      values on their way, with the edges and roots that make them part of trees
    ledger      one acker's account: XOR checksums, and the verdict on each tree
    keys        equality and hashes of grouping keys
    records     record types of users: their fields and annotations
    schema      the fields of a stream's values
    groupings   the choice of a consumer task for each tuple
    replay      the pause before a failed message is emitted again, and the end of its attempts
    restarts    the pause before a dead task is started again, and the end of its restarts
    progress    the steps by which a run comes to rest: flush, resume, finish, done

The other modules help these: ``calls``, ``outstanding`` and ``shortened`` put code, tuples and values into words;
``tracebacks`` makes exceptions fit to be kept; ``directives`` stands for Cython where nothing is compiled.
"""
