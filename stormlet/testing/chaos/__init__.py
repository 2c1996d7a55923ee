"""Deterministic simulation: the real engine, disturbed in ways that a seed decides, and judged by a witness.

From the ground up::

    faults        the kinds of faults, and the injector, which decides by the seed which ones happen
    journal       the events of a run, for people to read
    outcomes      acks, fails and dead letters that the user gets, held against the verdicts
    oracle        tuple trees stored whole, and the outcomes that the law allows them; tests of the engine use it, too
    witness       the judge of a run: what the oracle says of its trees, and the rules around them
    committing    the epochs that committers get, watched over all lives of a run
    lives         the lives of a run with ``state=``: killed, and begun again with what its store has
    disturbances  kills at any step, and user code that raises where no input answers for it
    disturbed_run the faults of one run, its witness, and the books that are looked at
    deliveries    tuples, outcomes and messages to the ackers on their ways: seen and disturbed
    calls, data   calls of ``execute`` seen from inside; the data that the code of a bolt can reach
    evidence      the results of a run, and the part that is compared with other runs of the same input
    worker        workers that die, raise and take their time; calls that come one at a time
    kit           the kit that makes these parts
    loop          the loop on which the seed chooses the next task
    simulator     one run, under a seed and its faults
    comparing     runs of the same input: what must be the same, and is not
    simulating    ``simulate``: a run for each seed, and the fewest faults under which a seed fails

The oracle shares no code with the engine that it judges.
"""
