"""``wrods freeze``: freezes and registers a study, or verifies that nothing changed."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiment.cli.study_store import store_of
from experiment.cli.terminal import PATH, option, print_json
from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.integrity.freezing import VerificationReport
    from experiment.study import Study

SHOWN_BROKEN = 10
PARTS = {"design": "Design", "participants": "Sample", "models": "Models", "analysis": "Plan  "}
"""The frozen parts, as `--verify` names them."""
_EXAMPLE = """\b
Examples:
  wrods freeze my-study
  wrods freeze my-study --verify --heads /media/stick/heads.json
"""


@click.command(epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=PATH)
@option("--verify", "Check that neither the design nor a stored row was changed.", name="is_check")
@option("--amend TEXT", "Replace an earlier freeze, and say why.")
@option(
    "--heads FILE",
    "With --verify: hold the chains against the last links noted in FILE, then note the present ones there.",
    type=PATH,
)
@option("--json", "Print what was locked or found as JSON.", name="as_json")
def freeze(study: Path, is_check: bool, amend: str | None, heads: Path | None, as_json: bool) -> None:
    """Lock a study's design, items and analysis plan under a hash, and write its registration.

    Writes freeze.json and registration.md, which is ready to be pasted into a preregistration. From then on `wrods serve`,
    `run` and `build` refuse a study that differs. --verify reports whether the design is the frozen one and whether
    each session's rows still match its hash chain, even after withdrawals; it exits with 1 if something was changed or the
    study was never frozen, and names the first changed row of a session.
    """
    from experiment.checking import load_study
    from experiment.checking.settings import refuse_placeholders
    from experiment.cli.registering import check_factor_names, check_own_formulas
    from experiment.integrity.build_provenance import require_current_items
    from experiment.integrity.freezing import DOCUMENT, FILE
    from experiment.integrity.freezing import freeze as lock
    from experiment.summaries.registration import registration

    loaded = load_study(study)
    if is_check:
        if amend is not None:
            raise UserError("--verify and --amend are both given", mend="Choose one.")
        _check(loaded, heads, as_json)
        return
    if heads is not None:
        raise UserError("--heads goes with --verify", mend="Add --verify.")
    check_factor_names(loaded)
    check_own_formulas(loaded)
    if loaded.get("participants", "wanted"):
        refuse_placeholders(
            loaded,
            "Complete the texts before you freeze them. If only models take part, remove participants.wanted.",
        )
    require_current_items(loaded)
    before = _sessions_before(loaded)
    document = registration(loaded, sessions_before=before, amended=amend)
    frozen = lock(loaded, document, sessions_before=before, amend=amend)
    if as_json:
        summary = {"hash": frozen.hash, "design_hash": frozen.design_hash, "frozen_at": frozen.frozen_at}
        click.echo(
            json.dumps({**summary, "sessions_before": before, "registration": str(loaded.folder / DOCUMENT)})
        )
        return
    click.echo(f"Frozen {loaded.id} on {frozen.frozen_at}")
    click.echo(f"Hash   {frozen.hash}")
    click.echo(
        f"Wrote  {loaded.folder / FILE} and {loaded.folder / DOCUMENT} (the text for a preregistration)"
    )
    named = shlex.quote(str(study))
    click.echo(
        f"Next:  register the text, then `wrods serve {named} --registered URL`; a change of the plan from now on needs --amend"
    )
    if before:
        click.echo(f"Note: {before} sessions of people had already begun; the registration reports this.")


def _sessions_before(study: Study) -> int:
    from sqlalchemy import func, select

    from experiment.store.tables import sessions

    conditions = (
        sessions.c.study == study.id,
        sessions.c.reader_kind == "human",
        sessions.c.is_pilot.is_(False),
    )
    store = store_of(study)
    if store is None:
        return 0
    with store, store.read() as connection:
        return int(connection.scalar(select(func.count()).select_from(sessions).where(*conditions)) or 0)


def _check(study: Study, heads: Path | None, as_json: bool) -> None:
    from contextlib import ExitStack

    from experiment.integrity.freezing import read_heads, verify_study, write_heads

    known_heads = None if heads is None else read_heads(heads)
    store = store_of(study)
    with ExitStack() as opened:
        if store is not None:
            opened.enter_context(store)
        report = verify_study(study, store, known_heads=known_heads)
    if heads is not None and not report.changes and not report.broken:
        write_heads(heads, report)
    if as_json:
        print_json(_as_json(report))
    else:
        _tell(report)
    if not report.holds:
        sys.exit(1)


def _as_json(report: VerificationReport) -> dict[str, object]:
    return {
        "holds": report.holds,
        "hash": report.hash,
        "frozen_at": report.frozen_at,
        "changes": report.changes,
        "sessions": dict(report.sessions),
        "rows": report.rows,
        "broken": [
            {"session": session, "row": broken.row, "fault": broken.fault}
            for session, broken in report.broken
        ],
        "before_freeze": report.before_freeze,
        "other_design": report.other_design,
    }


def _tell(report: VerificationReport) -> None:
    good, bad = click.style("holds", fg="green"), click.style("CHANGED", fg="red", bold=True)
    if report.hash is None:
        click.echo(f"Design {click.style('NEVER FROZEN', fg='red', bold=True)}: nothing shows what it was")
    else:
        click.echo(f"Frozen {report.frozen_at}, hash {report.hash}")
        changed = {re.split(r"[.\[:]", line, maxsplit=1)[0] for line in report.changes}
        for part, name in PARTS.items():
            click.echo(f"{name} {bad if part in changed else good}")
    for line in report.changes:
        click.echo(f"  {line}")
    counted = ", ".join(f"{number} {kind}" for kind, number in sorted(report.sessions.items())) or "none yet"
    click.echo(f"Rows   {bad if report.broken else good}: {report.rows} in the chains of sessions: {counted}")
    for session, broken in report.broken[:SHOWN_BROKEN]:
        click.echo(f"  {session}: {broken.row}: {broken.fault}")
    if len(report.broken) > SHOWN_BROKEN:
        click.echo(f"  … and {len(report.broken) - SHOWN_BROKEN} sessions more")
    if report.before_freeze:
        click.echo(f"Note: {report.before_freeze} sessions of people were begun before the freeze.")
    if report.other_design:
        click.echo(f"Note: {report.other_design} sessions of people ran under a different design.")
