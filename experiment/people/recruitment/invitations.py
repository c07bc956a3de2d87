"""Personal links, each good for one session: 128-bit tokens of which only digests are stored."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlencode

from sqlalchemy import Connection, and_, func, select, update

from experiment.people.access import token_hash
from experiment.store import records
from experiment.store.attendance import stamp
from experiment.store.erasure import NUMBERED, SERVER, erase_invitations
from experiment.store.tables import invitations
from stimuli.errors import UserError

TOKEN_BYTES = 16
PARAMETER = "invitation"


@dataclass(frozen=True)
class Invitation:
    """A link that was made."""

    participant: str
    link: str
    expires_at: str | None


@dataclass(frozen=True)
class Invited:
    """What became of a token that somebody brought."""

    standing: Literal["open", "used", "expired", "unknown"]
    participant: str | None = None
    session_id: str | None = None
    expires_at: str | None = None


def invite(
    connection: Connection,
    study: str,
    participants: Sequence[str],
    *,
    base_url: str,
    days: float | None,
    again: bool = False,
) -> list[Invitation]:
    """Make a link for each participant."""
    twice = next((name for place, name in enumerate(participants) if name in participants[:place]), None)
    if twice is not None:
        raise UserError(f"{twice!r} is named twice", mend="Name each participant once.")
    known = connection.execute(
        select(invitations.c.participant, invitations.c.session_id).where(
            invitations.c.study == study, invitations.c.participant.in_(participants)
        )
    ).all()
    stuck = [row.participant for row in known if row.session_id is not None or not again]
    if stuck:
        names = ", ".join(stuck[:5]) + (f" and {len(stuck) - 5} more" if len(stuck) > 5 else "")
        told = "took part with their link" if again else "have a link already"
        mend = "Leave them out." if again else "Leave them out, or replace unused links with --again."
        raise UserError(f"{names}: {told}", mend=mend)
    replaced = and_(
        invitations.c.study == study,
        invitations.c.participant.in_(participants),
        invitations.c.session_id.is_(None),
    )
    erase_invitations(connection, replaced, actor=SERVER)
    moment = records.now()
    expires = None
    if days is not None:
        expires = stamp(datetime.now(UTC) + timedelta(days=days))
    made, rows = [], []
    for participant in participants:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        link = f"{base_url.rstrip('/')}/{study}/?{urlencode({PARAMETER: token})}"
        made.append(Invitation(participant, link, expires))
        rows.append(
            {
                "token_hash": token_hash(token),
                "study": study,
                "participant": participant,
                "session_id": None,
                "created_at": moment,
                "expires_at": expires,
            }
        )
    connection.execute(invitations.insert(), rows)
    return made


def numbered(connection: Connection, study: str, number: int) -> list[str]:
    """Return the next names for so many links that are for nobody in particular: link-001 and so on."""
    count = select(func.count()).where(
        invitations.c.study == study, invitations.c.participant.startswith(NUMBERED)
    )
    before = int(connection.scalar(count) or 0)
    return [f"{NUMBERED}{before + place:03d}" for place in range(1, number + 1)]


def look_up(connection: Connection, study: str, token: str) -> Invited:
    """Say what a token is good for."""
    row: Any = connection.execute(
        select(invitations).where(invitations.c.token_hash == token_hash(token), invitations.c.study == study)
    ).first()
    if row is None:
        return Invited("unknown")
    if row.session_id is not None:
        standing: Literal["used", "expired", "open"] = "used"
    else:
        standing = "expired" if row.expires_at is not None and row.expires_at < records.now() else "open"
    return Invited(standing, row.participant, row.session_id, row.expires_at)


def use(connection: Connection, study: str, token: str, session_id: str) -> None:
    """Bind a token to the session that it began."""
    connection.execute(
        update(invitations)
        .where(invitations.c.token_hash == token_hash(token), invitations.c.study == study)
        .values(session_id=session_id)
    )


def only_invited(connection: Connection, study: str) -> bool:
    """Say whether a study has personal links, so that its open link is closed."""
    return (
        connection.execute(select(invitations.c.study).where(invitations.c.study == study).limit(1)).first()
        is not None
    )
