"""The plan of a topology on Spark. It is made without Spark, and ``check --engine spark`` shows it.

::

    layout     the stages that components run in
    shipping   the classes that are not found on other machines
    arguments  those of bolts that a stream cannot save
    refusals   the topologies that Spark cannot run
    notes      options that have no effect on Spark, and what is otherwise there
    closures   what functions keep from one call to the next
    combiners  bolts that may get one input in the place of several with equal keys
    numbering  tasks, and the stage and partition of each
"""
