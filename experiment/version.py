"""The version of the running wrods, as named in data and reports."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the installed version of wrods."""
    try:
        return version("wrods")
    except PackageNotFoundError:
        return "not installed"
