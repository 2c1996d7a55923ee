"""``stormlet run``: one run of a topology, from the ground up::

    signals       handlers of Ctrl-C, SIGTERM and SIGHUP; imports next to nothing, as it comes first
    screen        a frame at the bottom of a terminal, and the lines above it
    streams       standard output and error with a guard before them, and the log
    loops         the event loop, user code that tries to end it, and threads that do not end
    outcome       the result of a run, for people and for scripts
    endings       the end on request: by a signal, ``--duration`` or a closed output
    letters       the file of dead letters, and what the run has appended to it
    meter         rates, latencies and queues, from the counts of a run
    observation   the figures of a run while it lasts
    table, live   the figures as a table, and the view that draws them four times a second
    presenter     standard error: the live view on a terminal, plain lines elsewhere
    replaying                dead letters of an earlier run as messages of this one
    page          the page of a run, in a browser
    session       the run as a whole

The loop that they share belongs to the topology: what is shown may take two hundredths of its time.
"""

from __future__ import annotations
