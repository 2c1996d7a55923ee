"""A topology as a picture, for the commands that draw it and for the page that shows it running; from the ground up::

    anchoring     the source code of components: their emits, anchors and acks
    drawing       components and subscriptions in words, whatever the format
    layout        their places, in columns
    svg           the picture

The code of spouts and bolts is read, never run.
"""

from __future__ import annotations
