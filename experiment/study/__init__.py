"""The study: a folder with ``study.yaml``, texts, materials and built items."""

from experiment.study.semantic_checks import read_study
from experiment.study.study import Study

__all__ = ["Study", "read_study"]
