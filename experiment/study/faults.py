"""Collects the errors of a study, so that all are reported at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from analysis.plan import PlanFault
from experiment.study.yaml_source import KeyPath
from stimuli.errors import UserError, error_at, together
from stimuli.papers import own_factors

PLACE = re.compile(r"(.+?), line ([0-9]+)")
CONSEQUENCES = (PlanFault, LookupError, TypeError, ValueError, AttributeError, AssertionError, StopIteration)
"""Errors of a check that meets a setting which another check has found wrong."""


def factor_settings() -> tuple[KeyPath, ...]:
    """Return the settings that determine the factors and their levels."""
    return (("design", "factors"), ("design", "between"), *(("materials", name) for name in own_factors()))


@dataclass
class Faults:
    """The errors found so far.

    ``broken``: settings that violate the schema; checks that read them are skipped.
    """

    found: list[UserError] = field(default_factory=list)
    broken: list[KeyPath] = field(default_factory=list)

    def check(self, check: Callable[..., object], *given: object, reads: Iterable[KeyPath] = ()) -> bool:
        """Run a check and store the error that it raises; return whether it ran and found none."""
        if not self.is_sound(*reads):
            return False
        before = len(self.found)
        try:
            check(*given)
        except UserError as fault:
            self.found.append(fault)
        except CONSEQUENCES:
            if not self.found:
                raise
            return False
        return len(self.found) == before

    def is_sound(self, *paths: KeyPath) -> bool:
        """Return whether settings conform to the schema."""
        return not any(_overlap(broken_path, path) for broken_path in self.broken for path in paths)

    def add(self, place: Callable[..., str], path: KeyPath, plan_faults: Iterable[PlanFault]) -> None:
        """Add errors of a plan, or of exclusion rules, at a path of the study."""
        self.found.extend(error_at(place(*path, *fault.at), *fault.args) for fault in plan_faults)

    def report(self) -> None:
        """Raise one UserError that lists every error once, in the order of files and lines, if there are any."""
        faults = list({str(fault): fault for fault in sorted(self.found, key=_place)}.values())
        if faults:
            raise together(faults, most=len(faults))


def _overlap(path: KeyPath, other: KeyPath) -> bool:
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]


def _place(fault: UserError) -> tuple[bool, str, int]:
    """Return the sort key of an error: study.yaml first, then other files by name."""
    match = PLACE.match(fault.message)
    if match is None:
        return True, "", 0
    return match[1] != "study.yaml", match[1], int(match[2])
