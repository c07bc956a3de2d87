"""What the command line says about a study's recruitment: the link to enter on the platform, and codes that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiment.people.recruitment.codes import Recruitment, lines_to_add


def link_for_platform(recruitment: Recruitment, address: str) -> str | None:
    """Return what is entered on the platform as the study's address, None where there is no platform."""
    return None if recruitment.platform is None else address + recruitment.platform.link


def missing_lines(recruitment: Recruitment, config: Path) -> Iterator[str]:
    """Yield the lines that say which codes are missing, what happens without them, and what to add where."""
    if recruitment.platform is None:
        return
    lacking = lines_to_add(recruitment)
    if not lacking:
        return
    names = ", ".join(recruitment.missing)
    yield f"{recruitment.study}: for {recruitment.platform.name}, your config lacks {names}."
    yield from (f"  {consequence}" for consequence in _consequences(recruitment))
    yield f"  Add to {config}:"
    yield from (f"    {line}" for line in lacking)


def _consequences(recruitment: Recruitment) -> Iterator[str]:
    platform, missing = recruitment.platform, recruitment.missing
    assert platform is not None
    if "complete" in missing:
        instead = platform.code_when_missing.get("complete")
        yield (
            f"Without it, participants who finish return with {instead} and must be reviewed manually."
            if instead
            else "Without it, each participant who finishes gets a different code, which `wrods reconcile` compares."
        )
    if "credit_url" in missing:
        yield "Without it, credit must be granted manually."
    early = [name for name in missing if name in ("no_consent", "screened_out")]
    if early:
        yield "Without a code, participants who end early are asked to return their place."
    if "failed_checks" in missing:
        yield "Without failed_checks, participants who failed attention checks return with the code for complete."
