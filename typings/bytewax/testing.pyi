from __future__ import annotations

from datetime import timedelta

from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig

def run_main(
    flow: Dataflow,
    *,
    epoch_interval: timedelta | None = None,
    recovery_config: RecoveryConfig | None = None,
) -> None: ...
