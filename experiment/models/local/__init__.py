"""Local language models: checkpoints of transformers, with nothing computed twice."""

from experiment.models.local.engine import LocalEngine
from experiment.models.local.vision_engine import VisionEngine

__all__ = ["LocalEngine", "VisionEngine"]
