"""The values that the page shows, by name, from the ground up::

    numbers     one component, one task, one subscription: what changes every second
    rows        these numbers, from the figures of a run
    lines       charts
    moods       the state of a component in one word
    graph       the places of components and subscriptions, which never change
    detail      the page of a component: tasks, streams, errors, connections
    trees       messages that are pending, with their attempts
    letters     messages that were given up
    settings    options, and where each value comes from
    view        the choice of a page, and all values of it

What changes every second is an array, whose columns are sent once.
"""

from __future__ import annotations
