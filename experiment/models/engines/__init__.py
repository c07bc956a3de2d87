"""Which engine answers for a model: this machine, a server, a Ray cluster, a baseline."""

from experiment.models.engines.opening import (
    check_use,
    known_kinds,
    open_engine,
    unfinished_training,
    use_remark,
)

__all__ = ["check_use", "known_kinds", "open_engine", "unfinished_training", "use_remark"]
