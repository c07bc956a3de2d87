"""From a study to its items: reads the materials that the study names and calls the recipe of their kind."""

from experiment.building.build import Built, build_study, check_tables, make_items
from experiment.building.language import check_language

__all__ = ["Built", "build_study", "check_language", "check_tables", "make_items"]
