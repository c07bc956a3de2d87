"""Downloads and uploads of the dashboard: tables as CSV, participants' copies of answers, and platforms' submission lists."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from flask import Response, abort, flash, redirect, render_template, request, send_from_directory, url_for
from werkzeug.wrappers import Response as AnyResponse

from experiment.checking import load_study
from experiment.columns import trial_columns
from experiment.exporting import export_study
from experiment.exporting.files import cell, line
from experiment.exporting.tables import trial_rows
from experiment.option_choices import FORMS
from experiment.people.dashboard.authentication import actor, admin, needs, note
from experiment.people.dashboard.reading import key_of, service_of
from experiment.people.recruitment.codes import Recruitment
from experiment.people.recruitment.reconciliation import (
    MARKS,
    import_submissions,
    parse_export,
    reconciliation,
)
from experiment.people.response_intake import read_copy, take_copy
from experiment.people.server_state import this_site
from experiment.people.service import StudyService
from experiment.store import Store
from stimuli.errors import UserError

PAGES = (
    ("Items", "audit", "audit.html", "build", "builds the items and their audit"),
    ("Newest report", "reports", "*/report.html", "report", "writes the first report"),
)
"""Pages that commands write into a study's folder: link text, folder, file, command, and the command's effect."""
PAGE_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'self'"
)


@admin.app_template_global()
def files_of(service: StudyService) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return address and name of each page in a study's folder, and the commands that show or write the others."""
    links: list[tuple[str, str]] = []
    commands = [("preview", "shows every screen next to the exact prompt, on the computer where you run it")]
    if service.folder is None:
        return links, []
    for name, within, page, command, does in PAGES:
        newest = max((service.folder / within).glob(page), default=None)
        if newest is None:
            commands.append((command, does))
        else:
            file = newest.relative_to(service.folder / within).as_posix()
            links.append((url_for("admin.show_file", study=service.study, within=within, file=file), name))
    return links, [(f"wrods {command} {service.folder.name}", does) for command, does in commands]


@admin.get("/<study>/files/<any(audit, reports):within>/<path:file>")
@needs("download")
def show_file(study: str, within: str, file: str) -> AnyResponse:
    """Send the audit of a study's items, or a report, with linked pictures and files."""
    service = service_of(study)
    if service.folder is None:
        abort(404)
    shown = send_from_directory(service.folder.resolve() / within, file)
    if within == "reports" and not file.endswith((".png", ".svg")):  # pictures come with their page
        note("opened a report", study=study, detail={"file": file})
    shown.headers["Content-Security-Policy"] = PAGE_POLICY
    return shown


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _attached(file: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{file}"'}


@admin.get("/<study>/trials.csv")
@needs("download")
def download(study: str) -> AnyResponse:
    """Send the trials table of a study."""
    service = service_of(study)
    note("downloaded trials.csv", study=study)
    return Response(
        trials_csv(service.store, study, service.factors),
        mimetype="text/csv",
        headers=_attached(f"{study}-trials-{_today()}.csv"),
    )


@admin.get("/<study>/export/<form>.zip")
@needs("download")
def export(study: str, form: str) -> AnyResponse:
    """Send all tables of a study in one of the formats of ``wrods export``, as a zip file."""
    service = service_of(study)
    if form not in FORMS or service.folder is None:
        abort(404)
    note(f"downloaded {form}", study=study)
    packed = io.BytesIO()
    with TemporaryDirectory() as place:
        folder = Path(place) / f"{study}-{form}-{_today()}"
        export_study(load_study(service.folder), service.store, folder, form)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*")):
                archive.write(file, file.relative_to(place))
    return Response(packed.getvalue(), mimetype="application/zip", headers=_attached(f"{folder.name}.zip"))


def _sent() -> tuple[bytes, str]:
    sent = request.files.get("file")
    if sent is None or not sent.filename:
        abort(400, "Please choose a file.")
    return sent.read(), Path(sent.filename).name


@admin.post("/<study>/copy")
@needs("upload")
def upload_copy(study: str) -> AnyResponse:
    """Store a participant's downloaded copy of answers that did not arrive."""
    service = service_of(study)
    contents, _ = _sent()
    try:
        taken = take_copy(
            service.store,
            study,
            read_copy(contents),
            recruitment=service.recruitment,
            score=service.score,
            clock=service.clock,
        )
    except UserError as error:
        flash(str(error))
        return redirect(url_for("admin.show"))
    counts = {"new": taken.new, "same": taken.same, "refused": taken.refused}
    if taken.departed is not None:
        note("took a copy of answers", study=study, detail=counts)
        this_site().let_go(service, taken.departed)
        flash(f"{taken.reader} asked for this session to be erased, and it was.")
        return redirect(url_for("admin.show"))
    note("took a copy of answers", study=study, session_id=taken.session_id, detail=counts)
    why = f" ({'; '.join(taken.reasons)})" if taken.reasons else ""
    flash(
        f"{taken.reader}: {taken.new} answers and events were new, {taken.same} were here already, "
        f"{taken.refused} were refused{why}."
    )
    return redirect(url_for("admin.show_session", study=study, key=key_of(taken.session_id)))


def _recruitment_of(service: StudyService) -> Recruitment:
    recruitment = service.recruitment
    if recruitment is None or recruitment.platform is None or recruitment.platform.export is None:
        abort(404)
    return recruitment


@admin.get("/<study>/reconciliation")
@needs("reconcile")
def show_reconciliation(study: str) -> str:
    """Show the platform's submissions next to the stored sessions."""
    service = service_of(study)
    report = reconciliation(service.store, _recruitment_of(service))
    return render_template(
        "admin/reconciliation.html", service=service, report=report, marks=MARKS, key_of=key_of
    )


@admin.post("/<study>/reconciliation")
@needs("reconcile")
def upload_submissions(study: str) -> AnyResponse:
    """Import a platform's list of submissions."""
    service = service_of(study)
    recruitment = _recruitment_of(service)
    contents, name = _sent()
    try:
        read = parse_export(contents, name, expected=recruitment.platform)
        done = import_submissions(service.store, recruitment, read, actor=actor())
    except UserError as error:
        flash(str(error))
    else:
        flash(
            f"{done.new} submissions are new, {done.changed} changed; places open again: {done.returned} returned, "
            f"{done.timed_out} timed out."
        )
    return redirect(url_for("admin.show_reconciliation", study=study))


def trials_csv(store: Store, study: str, factors: Sequence[str]) -> Iterator[str]:
    """Yield a study's trials as CSV lines: the columns of the trials table, then one per factor."""
    columns = {name: column.type == "string" for name, column in trial_columns().items()}
    columns |= dict.fromkeys(factors, True)
    yield line(columns)
    with store.read() as connection:
        for row in trial_rows(connection, study):
            yield line(cell(row.get(name), is_text=is_text) for name, is_text in columns.items())
