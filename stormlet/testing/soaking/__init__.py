"""Soaks: a topology at full load in real time, disturbed for as long as one likes, judged by a witness, and weighed.

From the ground up::

    witness   the witness of a simulation, with a memory that is bounded
    kit       the kit of a simulation, whose faults come at their time
    report    the counts of a soak, the memory of the process, and its growth
    soak      ``soak``: bursts, rests, faults at random times, and the end

Time is real here: unlike a simulation, a soak cannot be repeated by its seed.
"""
