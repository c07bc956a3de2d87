"""Builds a study's items from its materials with the recipe of their kind."""

from experiment.building.build import Built, build_study, check_language, check_tables, make_items

__all__ = ["Built", "build_study", "check_language", "check_tables", "make_items"]
