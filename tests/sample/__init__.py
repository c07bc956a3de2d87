"""The sample report: people's lexical decisions and a small model trained for it, from the table to the pages in ``docs/``."""
