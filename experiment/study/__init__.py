"""The study: a folder with ``study.yaml``, texts, materials and built items."""

from experiment.study.study import Study, read_study

__all__ = ["Study", "read_study"]
