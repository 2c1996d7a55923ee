"""Epochs and keyed state, as rules without a store, a clock or a loop.

Reading order::

    epochs         the account of an epoch: what spoils an attempt, and what the next one is made of
    lengths        the length of an epoch in time, by what the end of the last one has taken
    commits        the record of an epoch that becomes durable as a whole, and the interface of stores
    codecs         types of keyed state: what can be kept, and the bytes of its values
    blobs          maps of entries in bytes: cut, gone through, and the bytes by which a key is found
    tables         keyed state in one task: what is committed, and the overlay of the open attempt
    value_table    one value for each key
    map_table      a map or a list for each key
    entry_reader   the way from blobs back to entries
    rounds         the time for another round over the log of a state
    states         keyed state in all tasks, and the log of blobs in which a store keeps it
    lazy/          the same tables and states, whose entries are in the store and not in memory
    committed      a view of what is durable, for those outside
    timers         timers of keys, kept as state is
    redeliveries   messages that a broker gives again until it has their ack
    stored_values  values in stores that others keep, changed once by each epoch
"""
