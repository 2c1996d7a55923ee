"""Task hooks: they hear of what a task does (:class:`~stormlet.model.hooks.TaskHook`).

::

    calls     the hooks of one task: called, and removed when they raise
    bolts     wrappers of a bolt's worker and of its collector
    outlets   wrapper of an outlet, for what is emitted
    messages  observer of messages, for the outcomes that spouts get
    run       all hooks of a run, and what is wrapped for them

Nothing asks for hooks on the way of a tuple. What they want to hear of is wrapped when the tasks are made, and only
that.
"""
