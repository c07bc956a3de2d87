"""What every view asks first: who is there, what they may, and whether a form is our own.

The cookie holds a random token and nothing else; what it stands for is a row of :mod:`~experiment.people.dashboard.sign_ins`.
It is sent along when somebody follows a link from a mail (SameSite=Lax), or a colleague's link to a session would ask for the
password; whatever changes something is a POST that carries a second token.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from flask import Response, abort, g, jsonify, redirect, request, url_for

from experiment.people.dashboard.accounts import Account
from experiment.people.dashboard.blueprint import admin
from experiment.people.dashboard.sign_ins import LASTS, SIGN_IN, SignIn
from experiment.people.site import this_site
from experiment.store.records import add_audit

P = ParamSpec("P")
R = TypeVar("R")
LARGEST_UPLOAD = 20 * 1024 * 1024
"""Bytes of a form with a file, from accounts that may upload: a copy of answers with key logs, a platform's list of thousands."""

UPLOADS = {"admin.upload_copy": "upload", "admin.take_books": "reconcile"}
"""Views that take a file, and the permission that each needs."""
COOKIE = "wrods_admin"
SECURE = "__Host-"
"""How names of cookies begin that are sent over TLS alone."""
TOLD_ON_THE_FORM = frozenset({"admin.login", "admin.take_code"})
"""Views that show their own form again where it was too old."""


def account() -> Account | None:
    """Return who is signed in, or None; an account that changed or is gone since is nobody."""
    if "account" not in g:
        # the live page asks by itself; only what somebody opens keeps a sign-in from ending
        row = this_site().sign_ins.find(SIGN_IN, token(), is_used=not request.path.endswith(".json"))
        g.account = None if row is None else account_of(row)
        g.sign_in = None if g.account is None else row
    found: Account | None = g.account
    return found


def this_sign_in() -> SignIn | None:
    """Return the row of the sign-in that this request came with."""
    account()
    found: SignIn | None = g.sign_in
    return found


def account_of(row: SignIn) -> Account | None:
    """Return the account that a row was made for, None where it changed since or is gone."""
    found = this_site().accounts.find(row.account)
    return found if found is not None and hmac.compare_digest(found.stamp(), row.stamp) else None


def token() -> str:
    """Return the token of this browser's cookie, empty where it has none."""
    if "token" not in g:
        g.token = cookie(COOKIE)
    return str(g.token)


def give_token(new: str) -> None:
    """Send a browser another token with this answer, an empty one to forget it."""
    g.token = new
    g.is_new_token = True


@admin.after_app_request
def _send_token(response: Response) -> Response:
    if g.get("is_new_token"):
        set_cookie(response, COOKIE, token(), int(LASTS[SIGN_IN].total_seconds()))
    return response


def set_cookie(response: Response, name: str, value: str, max_age: int) -> None:
    """Set one of the dashboard's cookies; an empty value forgets it. Over TLS it is sent over TLS alone."""
    response.set_cookie(
        cookie_name(name),
        value,
        max_age=max_age if value else 0,
        secure=request.is_secure,
        httponly=True,
        samesite="Lax",
    )


def cookie(name: str) -> str:
    """Return what one of the dashboard's cookies holds, nothing where there is none."""
    return request.cookies.get(cookie_name(name), "")


def cookie_name(name: str) -> str:
    """Return how a cookie is called: over TLS otherwise than over plain http, where browsers protect secure cookies of one name."""
    return f"{SECURE}{name}" if request.is_secure else name


def actor() -> str:
    """Return the name under which the audit keeps what is done now."""
    found = account()
    assert found is not None, "only signed-in accounts act"
    return found.name


def signed_in(permission: str = "see") -> bool:
    """Say whether the caller is signed in and may do something."""
    found = account()
    return found is not None and found.may(permission)


def needs(permission: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R | Any]]:
    """Keep a view to those who are signed in and may do something; strangers are led to the sign-in page."""

    def guard(view: Callable[P, R]) -> Callable[P, R | Any]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R | Any:
            found = account()
            if found is None:
                if request.path.endswith(".json"):
                    return jsonify(error="please sign in"), 401
                return redirect(url_for("admin.login_form"))
            if permission is not None and not found.may(permission):
                abort(403, f"The role {found.role} may not do this.")
            return view(*args, **kwargs)

        return guarded

    return guard


def csrf() -> str:
    """Return what every form of this browser carries: made from its cookie, which other sites cannot read."""
    if not token():
        give_token(secrets.token_urlsafe(32))
    return _form_token(token())


def _form_token(of: str) -> str:
    return hashlib.sha256(f"form\0{of}".encode()).hexdigest()


def is_our_form() -> bool:
    """Return whether a form was sent from one of our own pages in this browser."""
    given = request.headers.get("X-Wrods-Csrf") or request.form.get("csrf", "")
    return bool(token()) and hmac.compare_digest(given.encode(), _form_token(token()).encode())


def takes_a_file() -> bool:
    """Say whether this request goes to a view that takes a file, from somebody who may send it one."""
    permission = UPLOADS.get(request.endpoint or "")
    return permission is not None and signed_in(permission)


@admin.before_request
def _only_our_forms() -> None:
    if takes_a_file():
        request.max_content_length = LARGEST_UPLOAD
    if request.method == "POST" and request.endpoint not in TOLD_ON_THE_FORM and not is_our_form():
        abort(400, "The form was too old. Please go back, reload the page and try again.")


@admin.app_context_processor
def _in_every_page() -> dict[str, Any]:
    return {"csrf": csrf, "account": account, "concerns": this_site().health.concerns}


def note(action: str, *, study: str | None = None, by: str | None = None, **rest: Any) -> None:
    """Put what somebody does into the audit of a study, or of every study served."""
    who = by or actor()
    site = this_site()
    for name in [study] if study is not None else list(site.services):
        operation = partial(add_audit, actor=who, action=action, study=name, **rest)
        site.services[name].store.write(operation).result()
