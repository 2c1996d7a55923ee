"""A run as a whole.

::

    entry         ``Run``, the block that the host enters
    handle        ``Running``, what it holds inside
    block         the task that has entered the block, and the first crash, which cancels it
    assembly      makes all tasks from a plan and wires them
    instances     makes the instances of user code: workers of bolts, and spouts
    wiring        the outlets of tasks, which deliver into the inboxes of their consumers
    kit           the parts that simulations replace
    host_streams  where the host emits, and what it collects
    host_states   the states of bolts, as the host sees them
    conductor     notices when nothing moves, and takes the next step: flush, finish, end
    counting      statistics of the run, put together from those of its tasks
    loop_probe    a timer that sees the lag of the loop
    background    coroutines beside the tasks: rotation, ticks, the conductor, reports of what is stuck
    monitor       samples of the statistics, for figures of windows
    sliced        work that lets others run in between
    lifecycle     start, drain, cancel, crash, end (law C1 to C5)
    observers     those who look on, such as the command line and tests

Assembly alone knows the types of all parts.
"""
