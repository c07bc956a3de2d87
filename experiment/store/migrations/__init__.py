"""Alembic migrations of the store: append-only, one file per change, run on open."""
