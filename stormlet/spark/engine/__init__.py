"""A topology that Spark runs, instead of this process.

From the ground up::

    layout      the stages that components run in
    shipping    the classes that are not found on other machines
    refusals    the topologies that Spark cannot run
    notes       options that have no effect on Spark
    numbering   tasks, and the stage and partition of each
    rows        the rows that stages hand on: chunks of tuples, and others
    account     the ledger of the whole run: one XOR over all partitions
    lanes       what one task has emitted for one task in another stage
    exits       the way out of a partition: all lanes, and the chunks that they give
    outlets     outlets that lead into lanes
    inputs      the inputs of a partition, each with a tree of its own there
    deliveries  the tuples that are made of them
    equipment   the engine's parts in a partition: bolt tasks, outboxes, outlets
    partition   one partition at work
    arrow_rows  rows as Spark moves them
    stage       a stage as Spark runs it: the function for mapInArrow
    chain       exchange, sort, stage, exchange, sort, stage: one lazy DataFrame
    sources     the messages that the driver reads
    batch       ``run_on_spark``
"""
