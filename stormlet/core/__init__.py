"""DECIDES. The law as plain Python: no clock, no event loop, no logging, no randomness without a seed.

An hour is enough to read it, in this order::

    ids         random 64-bit ids, and the acker that owns a root
    rotating    the map of buckets in which timeouts live
    timeline    the executions of an attempt, as a recorder has seen them
    outcomes    tuples that keep a tree open, failures, dead letters, the history of attempts
    tuples      values on their way, with the edges and roots that make them part of trees
    trees       open trees, and the table of them
    acks        ack values on their way to an acker
    ledger      one acker's account: XOR checksums, and the verdict on each tree
    keys        equality and hashes of grouping keys
    records     record types of users: their fields and annotations
    schema      the fields of a stream's values
    groupings   the choice of a consumer task for each tuple
    retries     the pauses before a failed message is emitted and a dead task started again, and the end of both
    state       epochs of messages, and keyed state: a room with its own map
    settlement  what a source may tell its broker, and when: a room with its own map
    progress    the steps by which a run comes to rest: flush, resume, finish, done

The other modules help these: ``shortened`` puts values into words; ``tracebacks`` names the calls of a stack, and makes
exceptions fit to be kept; ``life`` has the states of tasks and outboxes; ``directives`` stands for Cython where it is
not at work; ``histogram`` counts times by their size.
"""
