"""Local language models: checkpoints of transformers, with nothing computed twice."""

from experiment.models.local.engine import LocalEngine
from experiment.models.local.seeing import SeeingEngine

__all__ = ["LocalEngine", "SeeingEngine"]
