"""Planned work of a run: a study's model sessions, generated lazily, and their requests as they become possible."""
