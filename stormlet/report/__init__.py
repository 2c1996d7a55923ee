"""SAYS. Records about a run: no clock, no event loop, no logging.

::

    statistics      counts of each task and component
    figures         rates, shares of time and latencies of a window, from two statistics
    snapshots       statistics that are kept, made small
    series          points of charts
    windows         the last minute, ten minutes and hour
    limits          what is used up
    bottleneck      the component that limits a topology, in one sentence
    health          the state of a run in one line
    failures        distinct failures with their counts, and the fields of log records
    explanation     the reasons why a tree is open: its outstanding tuples, and their places
    letter_records  dead letters as JSON lines
    rebuilding      the value of a dead letter, made again from its JSON

The runtime fills these records; the command line, hosts and tests read them.
"""
