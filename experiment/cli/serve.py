"""``wrods serve`` and ``wrods preview``: studies and the dashboard for participants, or each screen next to the prompt for a model."""

from __future__ import annotations

import shlex
import sys
import threading
import time
import webbrowser
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.registering import ask_registration, registration_options
from experiment.cli.terminal import PATH, has_screen, option

if TYPE_CHECKING:
    from experiment.people.lab.serving import LabServer
    from experiment.people.service import StudyService


SECOND_LOOK_S = 60
SWITCH_S = 0.0001
"""How long a thread may compute while others wait, if a store is on PostgreSQL."""


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
@option("--model NAME", "Show the tokens of this local model: its name in the study, or hf:PATH.")
@option("--port", "Port to listen at.", default=8001, show_default=True, type=click.IntRange(0, 65535))
def preview(study: Path, model: str | None, port: int) -> None:
    """Show every screen of a study next to the exact prompt that a model gets.

    The items are made in memory from study.yaml as it is now; the page follows when you save. Nothing is stored.

    Example: wrods preview my-study --model hf:Qwen/Qwen3-0.6B
    """
    from experiment.checking import load_study
    from experiment.cli.terminal import has_screen
    from experiment.people.connections import listen
    from experiment.people.preview import create_preview_app
    from experiment.people.server import StudyServer
    from experiment.trust import require_trust

    loaded = load_study(study)
    require_trust(loaded)
    app = create_preview_app(loaded, model)
    server = StudyServer(app, listen("127.0.0.1", port))
    address = f"http://127.0.0.1:{server.port}/"
    click.echo(click.style("Preview", bold=True) + f" of {loaded.title}: {address}")
    click.echo("Nothing is stored; the page follows when you save. Ctrl-C ends it.")
    sys.stdout.flush()
    if has_screen():
        webbrowser.open(address)
    server.run()


@click.command()
@click.argument("studies", metavar="STUDY...", nargs=-1, required=True, type=PATH)
@option("--port", "Port to listen on.", default=8000, show_default=True, type=click.IntRange(0, 65535))
@option(
    "--host ADDRESS", "Address to listen on.  [default: this computer only; with --lan, all of its addresses]"
)
@option("--lan", "Admit other computers of the network as stations, over https and http.")
@option("--kiosk", "Like --lan, but over plain http, for stations that use a browser shortcut.")
@option("--public URL", "Address at which participants reach this server behind a proxy.")
@option("--pilot", "Mark every session as a pilot.")
@registration_options
@option("--new-version", "Store a changed design as a new version.")
@option(
    "--backup-to DIR",
    "Also write the hourly backups to this existing folder. Repeatable.",
    multiple=True,
    type=PATH,
)
@option("--no-browser", "Do not open the dashboard.")
def serve(studies: tuple[Path, ...], **options: Any) -> None:
    """Serve studies to participants.

    Answers are stored in each study's study.db and confirmed only when they are on disk. The password of the dashboard is
    WRODS_PASSWORD or the one in your config.toml; without either, a new password is created and printed.

    Each study is backed up to its backups/ (and --backup-to) at the start, every hour and at the end. The newest backup of
    each of the last 24 hours and 7 days is kept. Platform ids are deleted when the study requires it.

    In a lab, --lan creates a certificate for this computer and explains how stations come to trust it; --kiosk prints a
    browser shortcut instead. The start screen offers to continue or end interrupted sessions. See docs/lab.md.

    If a study plans analyses, you are asked once, before the first session other than a pilot, where its plan is registered.
    Answer in advance with --registered URL or --not-registered. `wrods freeze` writes the text to register.

    A study whose texts still have placeholders (`[FILL IN: …]`) is served with --pilot only.

    Online, --public also checks that the address reaches this server through its proxy. See docs/online.md.

    Example: wrods serve my-study --port 8000
    """
    from experiment.checking import load_study
    from experiment.checking.settings import refuse_placeholders
    from experiment.configuration import config_file, read_config, store_address
    from experiment.integrity.maintenance import Maintenance, kept
    from experiment.people.app import create_app
    from experiment.people.connections import listen
    from experiment.people.lab.serving import open_lab
    from experiment.people.lab.settings import Lab, read_pin, set_lab
    from experiment.people.recruitment.codes import missing_lines
    from experiment.people.server import StudyServer
    from experiment.people.server_state import HealthWatch
    from experiment.people.service import read_settings, service_for
    from experiment.people.serving_lock import serving
    from experiment.store import DamagedStore, open_store
    from experiment.store.database import address_of
    from experiment.study.screens import check_consent_first
    from experiment.trust import require_trust
    from stimuli.errors import UserError

    chosen = SimpleNamespace(**options)
    if chosen.public is not None and (chosen.lan or chosen.kiosk):
        raise UserError(
            "--public is for a server behind a proxy, --lan and --kiosk are for stations of this network",
            mend="Use one of them.",
        )
    if chosen.public is not None and not chosen.public.startswith(("https://", "http://")):
        raise UserError(f"--public is {chosen.public!r}; it must be a full address", mend="Write https://…")
    if chosen.registered is not None and (chosen.pilot or len(studies) > 1):
        raise UserError(
            "--registered applies to a single study, and not to pilots",
            mend="Serve each study once on its own, or answer when asked; pilots need no registration.",
        )
    config = read_config()
    settings, made_password = read_settings(config, public_url=chosen.public)
    loaded = [load_study(folder) for folder in studies]
    for folder, study in zip(studies, loaded, strict=True):
        require_trust(study)
        check_consent_first(study)
        if not chosen.pilot:
            to_try = f"wrods serve {shlex.quote(str(folder))} --pilot"
            refuse_placeholders(study, f"Complete the texts. To try the study before that: {to_try}")
    twice = [study.id for index, study in enumerate(loaded) if study.id in {s.id for s in loaded[:index]}]
    if twice:
        raise UserError(
            f"two of the studies have the id {twice[0]!r}",
            mend="Serve them separately, or change one id in study.yaml.",
        )
    address = store_address(config)
    if address is not None and address_of(address).get_backend_name() == "postgresql":
        # the writer waits for PostgreSQL several times per commit, and Python's default gives other threads 5 ms each time
        sys.setswitchinterval(SWITCH_S)
    with ExitStack() as opened:
        services: dict[str, StudyService] = {}
        addresses = {study.id: store_address(config) or study.folder for study in loaded}
        claims = {
            study: opened.enter_context(serving(address_of(address), study, settings.secret))
            for study, address in addresses.items()
        }
        for study in loaded:
            store = opened.enter_context(open_store(addresses[study.id]))
            services[study.id] = service_for(
                study, store, is_pilot=chosen.pilot, new_version=chosen.new_version, config=config
            )
            if not chosen.pilot:
                ask_registration(study, store, chosen.registered, is_not_registered=chosen.not_registered)
        app = create_app(services, config=settings)
        opened.callback(app.extensions["wrods"].cleaning.close)
        pin, is_pin_new = read_pin(config)
        at_stations = None
        if chosen.lan or chosen.kiosk:
            at_stations = open_lab(
                app,
                host=chosen.host,
                port=chosen.port,
                pin=pin,
                certificates=None if chosen.kiosk else config_file().parent / "lab",
                tell=click.echo,
            )
            server = at_stations.server
        else:
            set_lab(app, Lab(pin=pin))
            server = StudyServer(
                app, listen(chosen.host or "127.0.0.1", chosen.port), behind_proxy=chosen.public is not None
            )
        here = "localhost" if at_stations else chosen.host or "127.0.0.1"
        base = chosen.public.rstrip("/") if chosen.public else f"http://{here}:{server.port}"
        for study_id, announce in claims.items():
            announce(f"{base}/{study_id}/")
        _tell(base, services, pilot=chosen.pilot)
        for service in services.values():
            if service.recruitment is None or service.recruitment.platform is None:
                continue
            if link := service.recruitment.platform.link:
                platform = f"on {service.recruitment.platform.name}"
                click.echo(f"  {platform:<15} {base}/{service.study}/{link}")
            for line in missing_lines(service.recruitment, config_file()):
                click.echo(line)
        for line in at_stations.tell(list(services)) if at_stations else ():
            click.echo(line)
        if is_pin_new and any(service.ask_participant for service in services.values()):
            click.echo(
                f"  PIN             {pin}   (to continue or end sessions; valid until the server stops)"
            )
        if made_password:
            click.echo(
                f"  Password        {made_password}   (valid until the server stops; set your own in {config_file()})"
            )
        click.echo("\nCtrl-C stops the server; answers in progress are stored first.")
        sys.stdout.flush()
        if not chosen.no_browser and has_screen():
            webbrowser.open(
                f"http://localhost:{server.port}/admin/enter/{app.extensions['wrods'].make_link()}"
            )
        if at_stations is not None:
            threading.Thread(target=_tell_reach, args=(at_stations,), daemon=True).start()
        if chosen.public is not None:
            threading.Thread(target=_tell_outside, args=(chosen.public,), daemon=True).start()
        looked_after = [kept(study, services[study.id].store) for study in loaded]
        health = app.extensions["wrods"].health
        opened.enter_context(HealthWatch(health, services, _warn))
        opened.enter_context(Maintenance(looked_after, chosen.backup_to, _warn, health.backed_up))
        server.run()
        damaged = [
            name for name, service in services.items() if isinstance(service.store.trouble, DamagedStore)
        ]
    if damaged:
        raise UserError(
            f"stopped with a damaged database: {', '.join(damaged)}",
            mend="Restore the backup named above: it lacks the answers confirmed since, except those that open pages send again.",
            exit_code=1,
        )
    click.echo("Stopped. Every confirmed answer is stored.")


def _warn(line: str) -> None:
    click.echo(line, err=True)


def _tell(base: str, studies: Iterable[str], *, pilot: bool) -> None:
    click.echo(click.style("wrods is serving", bold=True) + (" (every session is a pilot)" if pilot else ""))
    for study in studies:
        click.echo(f"  {study:<15} {base}/{study}/")
    click.echo(f"  Dashboard       {base}/admin/")


def _tell_outside(public: str) -> None:
    from experiment.people.server_state import public_address_problems

    # a proxy that starts after this server, or still waits for its certificate, is checked again later
    for wait_s in (0, SECOND_LOOK_S):
        time.sleep(wait_s)
        problems = public_address_problems(public.rstrip("/"))
        for problem in problems:
            click.echo(f"  FAIL            {problem}. See docs/online.md.")
        if not problems:
            click.echo(f"  OK              {public} reaches this server through its proxy")
        sys.stdout.flush()
        if not problems:
            return


def _tell_reach(at_stations: LabServer) -> None:
    for line in at_stations.tell_reach():
        click.echo(line)
    sys.stdout.flush()
