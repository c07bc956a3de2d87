"""What commands offer to choose from, named where nothing heavy is loaded: ``wrods --help`` should come at once."""

from __future__ import annotations

from typing import Literal, get_args

Form = Literal["csv", "parquet", "jspsych", "psych-ds"]
FORMS: tuple[Form, ...] = get_args(Form)
"""Forms of ``wrods export``."""

Role = Literal["owner", "assistant", "rater"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Roles of those who may sign in to the dashboard."""
