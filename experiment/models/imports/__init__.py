"""Answers given elsewhere become sessions: released model outputs, any table of responses, people's too."""

from experiment.models.imports.mapping import Columns, Source, read_mapping
from experiment.models.imports.responses import Imported, import_responses, make_items
from experiment.models.imports.scrambled_bench import build_items, import_scrambled_bench, study_text

__all__ = [
    "Columns",
    "Imported",
    "Source",
    "build_items",
    "import_responses",
    "import_scrambled_bench",
    "make_items",
    "read_mapping",
    "study_text",
]
