"""Signing in and out, and what every view asks first: who is there, what they may, and whether a form is our own."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from flask import abort, g, jsonify, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response as AnyResponse

from experiment.people.dashboard.accounts import OWNER, Account
from experiment.people.dashboard.blueprint import admin
from experiment.people.dashboard.failures import FAILED, NOBODY
from experiment.people.site import this_site
from experiment.store.records import add_audit

P = ParamSpec("P")
R = TypeVar("R")
LARGEST_UPLOAD = 20 * 1024 * 1024
"""Bytes of a form with a file, from accounts that may upload: a copy of answers with key logs, a platform's list of thousands."""

UPLOADS = {"admin.upload_copy": "upload", "admin.take_books": "reconcile"}
"""Views that take a file, and the permission that each needs."""
TOO_OLD = "The page was too old. Please try again."


def account() -> Account | None:
    """Return who is signed in, or None; an account that changed or is gone since is nobody."""
    if "account" not in g:
        g.account = _account()
    found: Account | None = g.account
    return found


def _account() -> Account | None:
    site = this_site()
    name, stamp = session.get("account"), session.get("stamp")
    found = site.accounts.find(name) if isinstance(name, str) and isinstance(stamp, str) else None
    if found is None or not hmac.compare_digest(found.stamp(site.settings.secret), str(stamp)):
        return None
    return found


def actor() -> str:
    """Return the name under which the audit keeps what is done now."""
    found = account()
    assert found is not None, "only signed-in accounts act"
    return found.name


def signed_in(permission: str = "see") -> bool:
    """Say whether the caller is signed in and may do something."""
    found = account()
    return found is not None and found.may(permission)


def needs(permission: str) -> Callable[[Callable[P, R]], Callable[P, R | Any]]:
    """Keep a view to accounts that may do something; strangers are led to the sign-in page."""

    def guard(view: Callable[P, R]) -> Callable[P, R | Any]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R | Any:
            found = account()
            if found is None:
                if request.path.endswith(".json"):
                    return jsonify(error="please sign in"), 401
                return redirect(url_for("admin.login_form"))
            if not found.may(permission):
                abort(403, f"The role {found.role} may not do this.")
            return view(*args, **kwargs)

        return guarded

    return guard


def csrf() -> str:
    """Return the token that every form of this sign-in carries."""
    if "csrf" not in session:
        session["csrf"] = secrets.token_urlsafe(24)
    return str(session["csrf"])


def _is_ours() -> bool:
    given = request.headers.get("X-Wrods-Csrf") or request.form.get("csrf", "")
    kept = str(session.get("csrf", ""))
    return bool(kept) and hmac.compare_digest(given.encode(), kept.encode())


def takes_a_file() -> bool:
    """Say whether this request goes to a view that takes a file, from somebody who may send it one."""
    permission = UPLOADS.get(request.endpoint or "")
    return permission is not None and signed_in(permission)


@admin.before_request
def _only_our_forms() -> None:
    if takes_a_file():
        request.max_content_length = LARGEST_UPLOAD
    if request.method == "POST" and request.endpoint != "admin.login" and not _is_ours():
        abort(400, "The form was too old. Please go back, reload the page and try again.")


@admin.app_context_processor
def _in_every_page() -> dict[str, Any]:
    return {"csrf": csrf, "account": account, "concerns": this_site().health.concerns}


def note(action: str, *, study: str | None = None, **rest: Any) -> None:
    """Put what somebody does into the audit of a study, or of every study served."""
    who = actor()
    site = this_site()
    for name in [study] if study is not None else list(site.services):
        operation = partial(add_audit, actor=who, action=action, study=name, **rest)
        site.services[name].store.write(operation).result()


def _sign_in(found: Account, how: str) -> AnyResponse:
    session.clear()
    session.permanent = True
    session["account"] = found.name
    session["stamp"] = found.stamp(this_site().settings.secret)
    csrf()
    g.account = found
    note("signed in", detail={"role": found.role, "by": how})
    return redirect(url_for("admin.show" if found.may("see") else "admin.rating_studies"))


def _form(problem: str | None, status: int, name: str = "") -> tuple[str, int]:
    page = render_template("admin/login.html", problem=problem, name=name)
    return page, status


@admin.get("/login")
def login_form() -> AnyResponse | tuple[str, int]:
    """Ask for name and password."""
    return _form(None, 200)


@admin.post("/login")
def login() -> AnyResponse | tuple[str, int]:
    """Take name and password; wrong ones are limited in number."""
    name = request.form.get("name", "").strip().lower()[:64] or OWNER
    if not _is_ours():
        return _form(TOO_OLD, 400, name)
    site = this_site()
    wait = max(site.logins.wait(request.remote_addr), site.logins_by_name.wait(name))
    if wait:
        _note_failure(name, refused_unread=True)
        return _form(f"Too many tries. Please wait {int(wait) + 1} seconds.", 429, name)
    found = site.accounts.accepts(name, request.form.get("password", ""))
    if found is None:
        _note_failure(name, refused_unread=False)
        return _form("Name and password do not belong together.", 401, name)
    return _sign_in(found, "password")


def _note_failure(name: str, *, refused_unread: bool) -> None:
    """Keep a failed try in the audit; whoever tries does not wait for it, so that nothing is told by how long it takes."""
    site = this_site()
    known = name if site.accounts.find(name) is not None else None
    detail = site.failed_sign_ins.told(known, refused_unread=refused_unread)
    if detail is None:
        return
    for study, service in site.services.items():
        service.store.write(partial(add_audit, actor=NOBODY, action=FAILED, study=study, detail=detail))


@admin.get("/enter/<token>")
def enter(token: str) -> AnyResponse:
    """Let in whoever holds a one-time link, once, as the owner."""
    site = this_site()
    owner = site.accounts.find(OWNER)
    if not site.links.use(token) or owner is None:
        abort(403, "This link was used already or is too old. Please sign in with the password.")
    return _sign_in(owner, "one-time link")


@admin.post("/logout")
def logout() -> AnyResponse:
    """Forget who is signed in."""
    session.clear()
    return redirect(url_for("admin.login_form"))
