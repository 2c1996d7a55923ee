"""Messages that belong to epochs, and what becomes durable with these.

From the ground up::

    letters   dead letters as they are kept, and back again for a sink that lacks them
    slow      the log of an epoch that does not end
    states    the durable state of a topology in one run: what bolts and committers bring to an epoch
    merging   states that are folded into others of the same topology
    wave      the end of an epoch: timers, then ``end_epoch``, upstream first
    attempts  what is done with a spoilt attempt
    writer    the store and its thread: one epoch is written at a time
    keeper    closes the open epoch, has it tried again or made durable, and tells of it; begins with the theory
"""
