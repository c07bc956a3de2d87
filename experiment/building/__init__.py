"""From a study to its items: reads the materials that the study names and calls the recipe of their kind."""

from experiment.building.build import Built, build_items, build_study, check_tables, make_items

__all__ = ["Built", "build_items", "build_study", "check_tables", "make_items"]
