"""The driver: the one spout and the one bolt that run any connector.

::

    options    options that all sources, or all sinks, have
    context    what a connector is given when it connects
    status     states and counts of one connection, and the log of their changes
    ending     the end of tasks that may lose a cancellation
    connecting connecting again, for ever, with pauses
    held       a message that a task has and that is not settled
    buffer     those that are not emitted yet, in their order
    settling   what the broker is to be told, and the task that tells it
    holding    all that are held: their emits, and what becomes of them
    partitions the partitions of a task: paused, given away, lost
    renewing   leases that are renewed while their messages are held
    overdue    what is given back before the broker closes the connection for it
    burying    dead letters of what cannot be decoded
    traced     messages that belong to a trace
    arrivals   what has come is named, numbered and decoded
    reading    the reader: asks for messages, and takes in what comes
    serving    the sessions of a task, one after another
    spout      the spout: its life, and when it emits
    resumable  the same, where messages have positions that a state keeps
    sink       the bolt
"""
