"""DECLARES. What users describe, checked before anything runs: no clock, no event loop, no logging.

Reading order::

    components          the interfaces of spouts and bolts, and of their collectors
    configuration       every option: type, default, Storm's name
    storm_names         Storm's configuration keys, and what they are called here
    setting_layers      where the value of each option comes from: file, environment, command line, code
    signatures, logic   what kind of spout or bolt a callable is
    key_types           warnings about keys that would not group as expected
    description         the frozen declaration that ``Topology`` builds: components, streams, subscriptions
    builder_types       types that a type checker needs for ``Topology``
    component_checks    rules for single components
    one_shot_sources    sources that cannot be read twice
    graph               cycles and order of components
    plan                tasks, their numbers, and the links between them
    number_checks       arguments that must be numbers
"""
