"""Authentication of dashboard requests (account, permission, form token), and the pages to sign in and out.

The cookie contains only a random token, which identifies a row of :mod:`~experiment.people.dashboard.sign_ins`. It is sent when
a link in an email is followed (SameSite=Lax), so that a colleague's link to a session does not require the password again;
every change is a POST with a second token.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from flask import (
    Blueprint,
    Response,
    abort,
    after_this_request,
    flash,
    g,
    jsonify,
    redirect,
    render_template,
    request,
    url_for,
)
from werkzeug.wrappers import Response as AnyResponse

from experiment.people.dashboard.sign_ins import (
    BROWSER,
    FAILED,
    LASTS,
    LINK,
    NOBODY,
    OWNER,
    SECOND_STEP,
    SIGN_IN,
    Account,
    SignIn,
    TooManyTries,
    looks_like_totp,
    use_recovery_code,
)
from experiment.people.server_state import this_site
from experiment.store.records import add_audit
from stimuli.audit.findings import counted
from stimuli.errors import UserError

admin = Blueprint("admin", __name__, url_prefix="/admin")


P = ParamSpec("P")
R = TypeVar("R")
LARGEST_UPLOAD = 20 * 1024 * 1024
"""Most bytes of a form with a file, from accounts that may upload: a copy of answers with key logs, a platform's list of
thousands.
"""

UPLOADS = {"admin.upload_copy": "upload", "admin.upload_submissions": "reconcile"}
"""Views that accept a file, and the permission that each requires."""
COOKIE = "wrods_admin"
SECURE = "__Host-"
"""Prefix of cookies that are sent over TLS only."""
TOLD_ON_THE_FORM = frozenset({"admin.login", "admin.take_code"})
"""Views that show their own form again if it had expired."""


def account() -> Account | None:
    """Return the signed-in account; None if nobody is signed in, or the account was changed or removed since."""
    if "account" not in g:
        # the live page's automatic requests do not extend a sign-in; only opened pages do
        row = this_site().sign_ins.find(SIGN_IN, token(), is_used=not request.path.endswith(".json"))
        g.account = None if row is None else account_of(row)
        g.sign_in = None if g.account is None else row
    current: Account | None = g.account
    return current


def this_sign_in() -> SignIn | None:
    """Return the row of this request's sign-in."""
    account()
    current: SignIn | None = g.sign_in
    return current


def account_of(row: SignIn) -> Account | None:
    """Return the account of a row; None if it was changed or removed since."""
    stored = this_site().accounts.find(row.account)
    return stored if stored is not None and hmac.compare_digest(stored.stamp(), row.stamp) else None


def token() -> str:
    """Return the token in this browser's cookie, or an empty text."""
    if "token" not in g:
        g.token = cookie(COOKIE)
    return str(g.token)


def give_token(new: str) -> None:
    """Set the browser's token with this answer; an empty one deletes it."""
    g.token = new
    g.is_new_token = True


@admin.after_app_request
def _send_token(response: Response) -> Response:
    if g.get("is_new_token"):
        set_cookie(response, COOKIE, token(), int(LASTS[SIGN_IN].total_seconds()))
    return response


def set_cookie(response: Response, name: str, value: str, max_age: int) -> None:
    """Set one of the dashboard's cookies, for TLS only under TLS; an empty value deletes it."""
    response.set_cookie(
        cookie_name(name),
        value,
        max_age=max_age if value else 0,
        secure=request.is_secure,
        httponly=True,
        samesite="Lax",
    )


def cookie(name: str) -> str:
    """Return the value of one of the dashboard's cookies, or an empty text."""
    return request.cookies.get(cookie_name(name), "")


def cookie_name(name: str) -> str:
    """Return a cookie's name, which differs over TLS, because browsers protect secure cookies of the same name."""
    return f"{SECURE}{name}" if request.is_secure else name


def actor() -> str:
    """Return the name of the current user for the audit."""
    current = account()
    assert current is not None, "only signed-in accounts act"
    return current.name


def signed_in(permission: str = "see") -> bool:
    """Return whether the caller is signed in with a permission."""
    current = account()
    return current is not None and current.may(permission)


def needs(permission: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R | Any]]:
    """Restrict a view to signed-in users with a permission; others are redirected to the sign-in page."""

    def guard(view: Callable[P, R]) -> Callable[P, R | Any]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R | Any:
            current = account()
            if current is None:
                if request.path.endswith(".json"):
                    return jsonify(error="please sign in"), 401
                return redirect(url_for("admin.login_form"))
            if permission is not None and not current.may(permission):
                abort(403, f"The role {current.role} may not do this.")
            return view(*args, **kwargs)

        return guarded

    return guard


def csrf() -> str:
    """Return the form token of this browser, derived from its cookie, which other sites cannot read."""
    if not token():
        give_token(secrets.token_urlsafe(32))
    return _form_token(token())


def _form_token(of: str) -> str:
    return hashlib.sha256(f"form\0{of}".encode()).hexdigest()


def is_our_form() -> bool:
    """Return whether a form was sent from this server's own pages in this browser."""
    given = request.headers.get("X-Wrods-Csrf") or request.form.get("csrf", "")
    return bool(token()) and hmac.compare_digest(given.encode(), _form_token(token()).encode())


def takes_a_file() -> bool:
    """Return whether this request uploads a file to a view that accepts it, from a user who may."""
    permission = UPLOADS.get(request.endpoint or "")
    return permission is not None and signed_in(permission)


@admin.before_request
def _only_our_forms() -> None:
    if takes_a_file():
        request.max_content_length = LARGEST_UPLOAD
    if request.method == "POST" and request.endpoint not in TOLD_ON_THE_FORM and not is_our_form():
        abort(400, "The form has expired. Please go back, reload the page and try again.")
    if any("\0" in value for value in request.form.values()):
        abort(400, "The form contains a zero byte, which cannot be stored.")


@admin.app_context_processor
def _in_every_page() -> dict[str, Any]:
    return {"csrf": csrf, "account": account, "concerns": this_site().health.concerns}


def note(action: str, *, study: str | None = None, by: str | None = None, **rest: Any) -> None:
    """Record an action in the audit of a study, or of every study served."""
    who = by or actor()
    site = this_site()
    for name in [study] if study is not None else list(site.services):
        operation = partial(add_audit, actor=who, action=action, study=name, **rest)
        site.services[name].store.write(operation).result()


BROWSER_COOKIE = "wrods_browser"
TOO_OLD = "The page has expired. Please try again."
Page = AnyResponse | tuple[str, int]


def _form(problem: str | None, status: int, name: str = "") -> Page:
    return render_template("admin/login.html", problem=problem, name=name), status


def _code_form(problem: str | None, status: int) -> Page:
    return render_template("admin/code.html", problem=problem), status


def _too_many(refusal: TooManyTries) -> str:
    return (
        f"Too many sign-in attempts. Please wait {counted(int(refusal.wait_s) + 1, 'second')} and try again."
    )


@admin.get("/login")
def login_form() -> Page:
    """Show the form for name and password."""
    return _form(None, 200)


@admin.post("/login")
def login() -> Page:
    """Check name and password; failed tries are limited."""
    name = request.form.get("name", "").strip().lower()[:64] or OWNER
    if not is_our_form():
        return _form(TOO_OLD, 400, name)
    site = this_site()
    password = request.form.get("password", "")
    try:
        signing_in = site.limits.password(
            name, request.remote_addr, _known_browser(name), lambda: site.accounts.accepts(name, password)
        )
    except TooManyTries as refusal:
        _note_failure(name, "too many tries")
        return _form(_too_many(refusal), 429, name)
    if signing_in is None:
        _note_failure(name, "name and password do not match")
        return _form("The name and password do not match.", 401, name)
    if signing_in.second_factor is None:
        return _sign_in(signing_in, "password")
    give_token(site.sign_ins.begin(SECOND_STEP, signing_in.name, signing_in.stamp()))
    return redirect(url_for("admin.code_form"))


@admin.get("/login/code")
def code_form() -> Page:
    """Show the form for a code of the second factor, after the password."""
    return redirect(url_for("admin.login_form")) if _halfway() is None else _code_form(None, 200)


@admin.post("/login/code")
def take_code() -> Page:
    """Check a code of the authenticator app, or a recovery code; each works once."""
    signing_in = _halfway()
    if signing_in is None:
        return _form("That took too long. Please sign in again.", 400)
    if not is_our_form():
        return _code_form(TOO_OLD, 400)
    given = request.form.get("code", "")[:64]
    limits, address = this_site().limits, request.remote_addr
    try:
        if looks_like_totp(given):
            browser = _known_browser(signing_in.name)
            is_right = limits.code(
                signing_in.name, address, browser, lambda: _spend_code(signing_in, given) or None
            )
            how = "password and code"
        else:
            is_right = limits.recovery_code(
                signing_in.name, address, lambda: _spend_recovery(signing_in, given) or None
            )
            how = "password and recovery code"
    except TooManyTries as refusal:
        _note_failure(signing_in.name, "too many tries")
        return _code_form(_too_many(refusal), 429)
    if not is_right:
        _note_failure(signing_in.name, "wrong code after the right password")
        return _code_form("This code is incorrect or was already used. Please enter the current one.", 401)
    this_site().sign_ins.use_once(SECOND_STEP, token())
    return _sign_in(signing_in, how)


def _halfway() -> Account | None:
    """Return the account whose password this browser has just given."""
    row = this_site().sign_ins.find(SECOND_STEP, token())
    signing_in = None if row is None else account_of(row)
    return signing_in if signing_in is not None and signing_in.second_factor is not None else None


def _spend_code(owner_of_code: Account, given: str) -> bool:
    assert owner_of_code.second_factor is not None
    step = owner_of_code.second_factor.step_of(given)
    return step is not None and this_site().sign_ins.spend(
        f"{owner_of_code.name}\0{owner_of_code.second_factor.secret}\0{step}", owner_of_code.name
    )


def _spend_recovery(owner_of_code: Account, given: str) -> bool:
    try:
        return use_recovery_code(owner_of_code.name, given)
    except (OSError, UserError) as error:
        # a code that cannot be removed would work again
        abort(503, f"The recovery code cannot be used: config.toml cannot be changed ({error}).")


def _known_browser(name: str) -> str | None:
    """Return this browser's row if the account signed in with it before and has not changed since."""
    given = cookie(BROWSER_COOKIE)
    row = this_site().sign_ins.find(BROWSER, given) if given else None
    return row.token_hash if row is not None and row.account == name and account_of(row) else None


def _sign_in(signed: Account, how: str) -> AnyResponse:
    sign_ins = this_site().sign_ins
    give_token(sign_ins.begin(SIGN_IN, signed.name, signed.stamp()))
    if _known_browser(signed.name) is None:
        browser = sign_ins.begin(BROWSER, signed.name, signed.stamp())

        @after_this_request
        def _remember(response: Response) -> Response:
            set_cookie(response, BROWSER_COOKIE, browser, int(LASTS[BROWSER].total_seconds()))
            return response

    note("signed in", by=signed.name, detail={"role": signed.role, "by": how})
    return redirect(url_for("admin.show" if signed.may("see") else "admin.rating_studies"))


def _note_failure(name: str, why: str) -> None:
    """Record a failed try in the audit without delaying the answer, so that its duration reveals nothing."""
    site = this_site()
    known = name if site.accounts.find(name) is not None else None
    for detail in site.failed_sign_ins.told(known, why):
        for study, service in site.services.items():
            service.store.write(partial(add_audit, actor=NOBODY, action=FAILED, study=study, detail=detail))


@admin.get("/enter/<link>")
def enter(link: str) -> AnyResponse:
    """Sign in as the owner with a one-time link."""
    row = this_site().sign_ins.use_once(LINK, link)
    owner = None if row is None else account_of(row)
    if owner is None:
        abort(403, "This link was used already or is too old. Please sign in with the password.")
    return _sign_in(owner, "one-time link")


@admin.post("/logout")
def logout() -> AnyResponse:
    """End this browser's sign-in and delete its cookie."""
    mine = this_sign_in()
    if mine is not None:
        this_site().sign_ins.end(mine.token_hash)
    give_token("")
    return redirect(url_for("admin.login_form"))


@admin.get("/signed-in")
@needs()
def show_sign_ins() -> str:
    """Show an account's active sign-ins; an owner sees everyone's."""
    mine, me = this_sign_in(), account()
    assert mine is not None and me is not None
    rows = this_site().sign_ins.open_ones(None if me.may("audit") else me.name)
    lines: list[dict[str, Any]] = [
        {"row": row, "account": account_of(row), "is_this": row.token_hash == mine.token_hash} for row in rows
    ]
    return render_template(
        "admin/sign_ins.html", lines=[line for line in lines if line["account"] is not None], link=LINK
    )


@admin.post("/signed-in/end")
@needs()
def end_sign_in() -> AnyResponse:
    """End one sign-in: the user's own, or as an owner anyone's."""
    me = account()
    assert me is not None
    rows = this_site().sign_ins.open_ones(None if me.may("audit") else me.name)
    row_to_end = next((row for row in rows if row.token_hash == request.form.get("sign_in")), None)
    if row_to_end is None:
        flash("This sign-in has ended already.")
    else:
        this_site().sign_ins.end(row_to_end.token_hash)
        note("ended a sign-in", detail={"account": row_to_end.account})
        flash(f"The sign-in of {row_to_end.account} has ended.")
    return redirect(url_for("admin.show_sign_ins"))


@admin.post("/signed-in/end-all")
@needs()
def end_all_sign_ins() -> AnyResponse:
    """Sign the account out everywhere, including this browser."""
    note("signed out everywhere")
    this_site().sign_ins.end_all(actor())
    give_token("")
    return redirect(url_for("admin.login_form"))
