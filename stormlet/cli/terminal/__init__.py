"""The terminal view of ``stormlet top``, from the ground up::

    address     where the page is, and its token
    asking      questions of its REST, and what is said when they fail
    picture     the last values that were told
    columns     what tables show, and how
    wiring      components in the order of the streams between them
    table       a table that keeps its cursor while its rows change
    component   the screen of one component
    app         the whole

It knows of a run what the REST tells, so that it needs nothing of the page's packages.
"""

from __future__ import annotations
