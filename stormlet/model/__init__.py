"""DECLARES. The user's description of a topology, checked before anything runs: no clock, no event loop, no logging.

Reading order::

    components          the interfaces of spouts and bolts, and of their collectors
    configuration       every option: type, default, Storm's name
    storm_names         Storm's configuration keys, and their names here
    setting_layers      the origin of each option's value: file, environment, command line, code
    state_views         maps and lists that a bolt sees of its state
    declared_states     Value, MapOf, ListOf and Cell, by which bolts declare and read state
    keyed               bolts with state for each key
    signatures, logic   the kind of spout or bolt that a callable is
    traits              declarations of spouts and bolts that are read before an instance exists
    key_types           warnings about keys that would not group as expected
    streams             streams of components, and the subscriptions of bolts to them
    description         the frozen declaration that ``Topology`` builds: components, their order and cycles
    builder_types       types for the methods of ``Topology``, for type checkers
    component_checks    rules for single components, and for sources that cannot be read twice
    keyed_checks        rules for bolts with state
    plan                the plan of one task
    planning            the plan of a run: tasks, their numbers, and the links between them
    number_checks       arguments that must be numbers
"""
