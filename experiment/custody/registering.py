"""Keeps where a study is registered, or that it was said not to be, from its first session on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, select

from experiment.custody.freezing import read_freeze
from experiment.store import Store, records
from experiment.store.tables import audit
from experiment.study import Study
from stimuli.errors import UserError

ACTION = "registration"
"""What the audit log calls the answer."""


@dataclass(frozen=True)
class Registration:
    """The answer to where a study is registered."""

    url: str | None
    at: str
    freeze_hash: str | None

    def to_json(self) -> dict[str, Any]:
        """Return it as it is handed over to analysis."""
        return {"url": self.url, "at": self.at, "freeze_hash": self.freeze_hash}


def registration_of(connection: Connection, study: str) -> Registration | None:
    """Return the last answer that is stored; None where nobody was asked yet."""
    query = (
        select(audit.c.at, audit.c.detail)
        .where(audit.c.study == study, audit.c.action == ACTION)
        .order_by(audit.c.audit_id.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    detail = row.detail or {}
    return Registration(detail.get("url"), str(row.at), detail.get("freeze_hash"))


def has_to_be_asked(study: Study, store: Store) -> bool:
    """Say whether a study plans analyses and nobody has said yet where it is registered."""
    if not study.get("analysis", "planned", default={}):
        return False
    with store.read() as connection:
        return registration_of(connection, study.id) is None


def note_registration(study: Study, store: Store, url: str | None, actor: str) -> None:
    """Store where a study is registered, or with None that it is not; the freeze of that moment is kept with it."""
    if url is not None:
        check_address(url)
    frozen = read_freeze(study.folder)
    detail = {"url": url, "freeze_hash": None if frozen is None else frozen.hash}
    store.write(
        lambda connection: records.add_audit(connection, actor, ACTION, study=study.id, detail=detail)
    ).result()


def check_address(url: str) -> None:
    """Refuse what is no full web address."""
    parts = urlsplit(url)
    if (
        parts.scheme not in ("https", "http")
        or "." not in parts.netloc
        or any(sign.isspace() for sign in url)
    ):
        raise UserError(
            f"the registration's address is {url!r}; it is the full address of a page",
            mend="Write it like https://osf.io/abcde, or say --not-registered.",
        )
