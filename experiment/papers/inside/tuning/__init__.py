"""Training: models learn scrambled text or an H-TEST task, here or at a provider, and read the same study afterwards."""

from experiment.papers.inside.tuning.settings import Training, check_trainings, trainings

__all__ = ["Training", "check_trainings", "trainings"]
