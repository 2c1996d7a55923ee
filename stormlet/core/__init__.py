"""DECIDES. The law as plain Python: no clock, no event loop, no logging, no randomness without a seed.

An hour is enough to read it, in this order::

    ids         random 64-bit ids, and the acker that owns a root
    rotating    the map of buckets in which timeouts live
    outcomes    tuples that keep a tree open, failures, dead letters, the history of attempts
    tuples      values on their way, with the edges and roots that make them part of trees
    ledger      one acker's account: XOR checksums, and the verdict on each tree
    keys        equality and hashes of grouping keys
    records     record types of users: their fields and annotations
    schema      the fields of a stream's values
    groupings   the choice of a consumer task for each tuple
    retries     the pauses before a failed message is emitted and a dead task started again, and the end of both
    codecs      types of keyed state: what can be kept, and the bytes of its values
    tables      keyed state in one task: what is committed, and the overlay of the open attempt
    states      keyed state in all tasks, and the log of blobs in which a store keeps it
    timers      timers of keys, kept as state is
    stored_values  values in stores that others keep, changed once by each epoch
    commits     the record of an epoch that becomes durable as a whole, and the interface of stores
    epochs      the account of an epoch: what spoils an attempt, and what the next one is made of
    progress    the steps by which a run comes to rest: flush, resume, finish, done

The other modules help these: ``shortened`` puts values into words; ``tracebacks`` names the calls of a stack, and makes
exceptions fit to be kept; ``life`` has the states of tasks and outboxes; ``directives`` stands for Cython where it is
not at work.
"""
