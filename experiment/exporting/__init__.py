"""Exports of a study's data: CSV, Parquet, jsPsych's JSON, and a Psych-DS folder."""

from experiment.exporting.export import Exported, export_study
from experiment.exporting.tables import ExportChoice

__all__ = ["ExportChoice", "Exported", "export_study"]
