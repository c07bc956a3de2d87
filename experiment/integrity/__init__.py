"""Data integrity of a study: provenance of items and designs, freezing, verification, maintenance, withdrawal."""
