"""Explains the tables: mixed-effects models, measures, figures and the report."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.tables import Tables, load

__all__ = ["Tables", "load"]


def __getattr__(name: str) -> Any:
    """Import the tables, and pandas with them, only when they are used: reading a plan does not need them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from analysis import tables

    return getattr(tables, name)
