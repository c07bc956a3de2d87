"""What tests of exports may ask for beside what every test may."""

from __future__ import annotations

from tests.experiment.postgres import postgres_cluster, postgres_url

__all__ = ["postgres_cluster", "postgres_url"]
