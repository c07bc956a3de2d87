"""Local language models: checkpoints of transformers, with nothing computed twice."""

from experiment.models.local.engine import LocalEngine, VisionEngine

__all__ = ["LocalEngine", "VisionEngine"]
