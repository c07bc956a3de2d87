"""Choices of command options, in a module that imports nothing heavy, so that ``wrods --help`` is fast."""

from __future__ import annotations

from typing import Literal, get_args

Form = Literal["csv", "parquet", "jspsych", "psych-ds"]
FORMS: tuple[Form, ...] = get_args(Form)
"""Formats of ``wrods export``."""

Role = Literal["owner", "assistant", "rater"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Roles of dashboard accounts."""
