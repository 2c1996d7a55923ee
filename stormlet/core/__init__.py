"""DECIDES. The law as plain Python: no clock, no event loop, no logging, no randomness without a seed.

An hour is enough to read it, in this order::

    ids         random 64-bit ids, and the acker that owns a root
    rotating    the map of buckets in which timeouts live
    outcomes    failures, dead letters, the history of attempts
    tuples      values on their way, with the edges and roots that make them part of trees
    ledger      one acker's account: XOR checksums, and when a tree is settled
    keys        equality and hashes of grouping keys
    schema      the fields of a stream's values
    groupings   the choice of a consumer task for each tuple
    replay      when a failed message is emitted again, and when it is given up
    restarts    when a task that has died is started again
    progress    the steps by which a run comes to rest: flush, finish, end

The other modules help these: ``calls``, ``outstanding``, ``shortened`` and ``frameless`` put code, tuples, values and
exceptions into words; ``directives`` stands for Cython where nothing is compiled.
"""
