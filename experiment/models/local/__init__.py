"""Local language models: transformers checkpoints, computed without repetition."""

from experiment.models.local.engine import LocalEngine, VisionEngine

__all__ = ["LocalEngine", "VisionEngine"]
