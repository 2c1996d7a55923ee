"""The page of running topologies, and a REST in Storm's shapes, from the ground up::

    access, guard          who may ask: the rules, and the gate in front of everything
    answers                answers in JSON
    compression            answers for those who take them compressed
    assets, static/        the page's own files
    windows                spans of time
    watched, registry      one topology as it is seen, and all of them
    changes                revisions: what is new since a page has asked last
    views/                 the values that the page shows
    storm/                 the answers of Storm's REST
    loops                  what is done on the event loop of a topology
    controls               what may be changed
    snapshot               all that the page shows, in a file
    page_api, storm_api    handlers of requests
    openapi                the description of all of that
    app                    the application
    server                 a server of its own, beside a run of the command line

It reads a run by its handle alone, and nothing of it is done while nobody looks.
"""

from __future__ import annotations

from stormlet.ui.app import App, app

__all__ = ["App", "app"]
