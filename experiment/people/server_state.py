"""Shared state of one server's parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flask import current_app

from experiment.people.dashboard.accounts import OWNER, Account, Accounts
from experiment.people.dashboard.sign_ins import LINK, FailedSignIns, SignInLimits, SignIns
from experiment.people.quality import SessionMetrics
from experiment.people.recruitment.signed_links import KeySets
from experiment.people.response_intake import Cleaning, Departed
from experiment.people.server_health import ServerHealth
from experiment.people.service import PeopleSettings, StudyService
from experiment.people.session_cache import LiveSessions, Passes, Throttle

SENDINGS_PER_MINUTE = 1200
KILOBYTES_PER_HOUR = 64 * 1024
"""Limit on a session's uploads: one of a thousand typed answers with their key strokes sends some 10 MB."""
"""Limit on one session's requests: far above a reader's pace, and enough to send the answers of a long offline period."""


@dataclass(frozen=True)
class Site:
    """Studies, settings, and temporary state of one server process."""

    services: Mapping[str, StudyService]
    settings: PeopleSettings
    passes: Passes
    entries: Throttle
    limits: SignInLimits
    sign_ins: SignIns
    accounts: Accounts
    sendings: Throttle
    volumes: Throttle
    health: ServerHealth
    failed_sign_ins: FailedSignIns = field(default_factory=FailedSignIns)
    key_sets: KeySets = field(default_factory=KeySets)
    live: LiveSessions = field(default_factory=LiveSessions)
    findings: SessionMetrics = field(default_factory=SessionMetrics)
    cleaning: Cleaning = field(default_factory=Cleaning)

    def make_link(self) -> str:
        """Return the secret part of a link that opens the dashboard once, as the owner, without a password."""
        owner = self.accounts.find(OWNER)
        assert owner is not None
        return self.sign_ins.begin(LINK, owner.name, owner.stamp())

    def let_go(self, service: StudyService, departed: Departed) -> None:
        """Drop erased sessions from memory, and clean the study's files."""
        for gone in departed.sessions:
            self.live.forget(gone)
            self.findings.forget(gone)
        self.cleaning.after(service, departed)


def make_site(services: Mapping[str, StudyService], settings: PeopleSettings) -> Site:
    """Return the state of a new server."""
    return Site(
        services=dict(services),
        settings=settings,
        passes=Passes(settings.secret),
        entries=Throttle(settings.entries_per_minute, 60),
        limits=SignInLimits(),
        sign_ins=SignIns(next((service.store for service in services.values()), None)),
        accounts=Accounts(Account(OWNER, "owner", settings.password_hash)),
        sendings=Throttle(SENDINGS_PER_MINUTE, 60),
        volumes=Throttle(KILOBYTES_PER_HOUR, 3600),
        health=ServerHealth(services),
    )


def this_site() -> Site:
    """Return the site of the running application."""
    site = current_app.extensions["wrods"]
    assert isinstance(site, Site)
    return site
