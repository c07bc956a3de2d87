"""Loads extensions of installed packages: entry points that name one or several objects, or a function that returns them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Protocol, TypeVar

from stimuli.errors import UserError

T = TypeVar("T")


class Named(Protocol):
    """An object with a name."""

    @property
    def name(self) -> str:
        """Return the name."""
        ...


N = TypeVar("N", bound=Named)


def added(group: str, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield the objects of the entry points in a group, each with a description of its entry point for errors."""
    for entry in metadata.entry_points(group=group):
        where = f"entry point {entry.name!r} ({entry.value})"
        loaded = entry.load()
        if callable(loaded) and not isinstance(loaded, kind):
            loaded = loaded()
        given = list(loaded) if isinstance(loaded, Iterable) and not isinstance(loaded, kind) else [loaded]
        if not given or not all(isinstance(thing, kind) for thing in given):
            raise UserError(
                f"{where} of {group} gives no {kind.__module__}.{kind.__name__}",
                mend=f"It must name a {kind.__name__}, or a function that returns one or several, and the package must import it "
                f"with: from {kind.__module__} import {kind.__name__}.",
            )
        yield from ((where, thing) for thing in given)


def registry(built_in: Iterable[N], group: str, kind: type[N]) -> dict[str, N]:
    """Return built-in objects and those of installed packages by name; raise an error for a duplicate name."""
    known = {thing.name: thing for thing in built_in}
    for where, thing in added(group, kind):
        if thing.name in known:
            raise UserError(
                f"{where} adds {thing.name!r} to {group}, which exists already",
                mend=f"Give the added {kind.__name__.lower()} another name.",
            )
        known[thing.name] = thing
    return known
