"""Local language models: checkpoints of transformers, with nothing computed twice."""

from experiment.models.local.engine import LocalEngine

__all__ = ["LocalEngine"]
