from __future__ import annotations

from bytewax.dataflow import Dataflow

def run_main(flow: Dataflow) -> None: ...
