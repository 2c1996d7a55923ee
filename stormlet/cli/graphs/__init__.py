"""The drawings of ``graph``, one file for each format, all of one :class:`~stormlet.cli.graphs.drawing.Drawing`."""
