"""Faults of a plan as data, which each package reports with its own places: ``args`` are problem, remedy, given, known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

Key = str | int


@dataclass(eq=False)
class Fault(Exception):
    """A setting of a plan that cannot be carried out."""

    problem: str
    remedy: str
    at: tuple[Key, ...] = ()  # the keys from the analysis to the setting
    given: str = ""
    known: Iterable[str] = ()

    def __post_init__(self) -> None:
        super().__init__(self.problem, self.remedy, self.given, tuple(self.known))

    @property
    def path(self) -> str:
        """The keys from the analysis to the setting, as they follow its name: ``.contrasts[1]``."""
        return "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in self.at)

    def below(self, *keys: Key) -> Fault:
        """Return the same fault of a setting under these keys."""
        return replace(self, at=(*keys, *self.at))


def unknown(kind: str, name: str, known: Iterable[str], *at: Key) -> Fault:
    """Return the fault of a name that is not among the known ones."""
    names = sorted(known)
    return Fault(f": {kind} {name!r} is not known", f"Known: {', '.join(names) or 'none'}.", at, name, names)
