"""Checks that need both a study and what is known of models and papers; commands load studies from here.

The study itself (:mod:`experiment.study`) knows nothing of models. What its settings mean for them is checked one level above,
whenever a study is loaded, so that every command tells the same faults.
"""

from experiment.checking.settings import load_study

__all__ = ["load_study"]
