"""Checks that need both a study and knowledge of models and papers; commands load studies from here.

The study itself (:mod:`experiment.study`) is independent of models. The meaning of its settings for models is checked one level
above, whenever a study is loaded, so that every command reports the same errors.
"""

from experiment.checking.settings import load_study

__all__ = ["load_study"]
