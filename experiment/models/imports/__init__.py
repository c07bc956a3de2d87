"""Import of responses collected elsewhere as sessions: released model outputs, and any table of responses."""

from experiment.models.imports.responses import Columns, ResponseFile, read_mapping, read_responses
from experiment.models.imports.writing import Import, Imported, write_import

__all__ = [
    "Columns",
    "Import",
    "Imported",
    "ResponseFile",
    "read_mapping",
    "read_responses",
    "write_import",
]
