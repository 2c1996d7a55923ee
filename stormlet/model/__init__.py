"""DECLARES. The user's description of a topology, checked before anything runs: no clock, no event loop, no logging.

Reading order::

    components          the interfaces of spouts and bolts, and of their collectors
    configuration       every option: type, default, Storm's name
    storm_names         Storm's configuration keys, and their names here
    setting_layers      the origin of each option's value: file, environment, command line, code
    state               state that bolts declare for each key: a room with its own map
    signatures, logic   the kind of spout or bolt that a callable is
    traits              declarations of spouts and bolts that are read before an instance exists
    streams             streams of components, and the subscriptions of bolts to them
    description         the frozen declaration that ``Topology`` builds: components, their order and cycles
    builder_types       types for the methods of ``Topology``, for type checkers
    checks              rules for what users declare: a room with its own map
    plan                the plan of one task
    planning            the plan of a run: tasks, their numbers, and the links between them
"""
