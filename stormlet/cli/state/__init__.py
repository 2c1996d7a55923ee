"""The ``state`` commands: what is in a state file, and changes of it by hand.

::

    files        the file and the states that a command line names
    listing      ``list``
    entries      ``show``, ``get`` and ``export``
    comparing    ``diff``
    programs     ``check`` and ``import``, which need the topology
    rerunning    ``rerun``, likewise
    changing     ``rename``, ``forget``, ``save`` and ``rewind``
"""

from __future__ import annotations

from importlib import import_module

from cyclopts import App, Group

from stormlet.cli.help import epilogue

EXAMPLES = """\
stormlet state list counts.state
stormlet state get counts.state count moon
stormlet state check topology.py counts.state"""

COMMANDS = {
    "list": ("listing:list_", "List states, sources and epochs of a state file."),
    "show": ("entries:show", "Show the entries of a state."),
    "get": ("entries:get", "Print the value of one key."),
    "diff": ("comparing:diff", "Compare two epochs of a file, or two files."),
    "export": ("entries:export", "Write entries as JSON lines."),
    "import": ("programs:import_", "Put exported entries into a file."),
    "check": ("programs:check", "See if a topology would start with a file."),
    "rerun": ("rerunning:rerun", "Run one epoch again, at your desk."),
    "rename": ("changing:rename", "Give a component another id, in the file."),
    "forget": ("changing:forget", "Remove what is kept of a component."),
    "save": ("changing:save", "Copy a file, also while a run writes it."),
    "rewind": ("changing:rewind", "Go back to an earlier epoch."),
}
"""Each with its function, which is loaded only when it is called, and with what it does."""


def group(called: str | None) -> App:
    """The commands, of which this one is called."""
    app = App(
        name="state",
        help="Look into a state file, and change it by hand.",
        help_epilogue=epilogue(EXAMPLES),
        group_parameters=Group("Options"),
    )
    for place, (name, (where, summary)) in enumerate(COMMANDS.items()):
        module, function = where.split(":")
        if name == called:
            found = import_module(f"{__name__}.{module}")
            app.command(getattr(found, function), name=name, help_epilogue=epilogue(found.EXAMPLES[name]))
        else:
            app.command(f"{__name__}.{module}:{function}", name=name, help=summary, sort_key=place)
    return app
