"""``python -m stormlet bench``: what a tuple costs, beside the same work without a framework, in one run.

Theory of operation
-------------------
A workload is a function that does so much, checks that the result is right, and returns figures
(:mod:`~stormlet.bench.workload`); they are listed in :mod:`~stormlet.bench.catalogue`. Each runs once a round, in a
process of its own (:mod:`~stormlet.bench.child`), and all of them take turns (:mod:`~stormlet.bench.rounds`): machines
drift, so only what ran side by side compares, and every ratio is one of figures of the same round.
"""
