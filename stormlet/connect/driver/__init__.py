"""The driver: the one spout and the one bolt that run any connector.

::

    options    options that all sources, or all sinks, have
    context    what a connector is given when it connects
    status     states and counts of one connection, and the log of their changes
    ending     the end of tasks that may lose a cancellation
    connecting connecting again, for ever, with pauses
    intake     messages on their way in: decoded, numbered, buffered
    overdue    what is given back before the broker closes the connection for it
    settling   what the broker is to be told, and the task that tells it
    spout      the spout
    sink       the bolt
"""
