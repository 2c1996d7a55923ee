"""Explanations of open trees: the outstanding tuples, their places, and what is done with them.

::

    explainer    from a root or a message to an explanation
    whereabouts  finds the tuples of a tree: queued, in hand, held
    occupations  what a task does now, as a line of code or a reason to wait
    recorder     records the edges of a share of the trees: since when, by which way, and when they are executed
    timelines    the executions of a recorded tree
    stuck        logs explanations of trees that are open for long

Nothing here is called by the engine on its own ways. Explanations are made when somebody asks, by looking at what the
tasks hold; only the recorder must be switched on beforehand.
"""
