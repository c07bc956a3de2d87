"""Signing in (password, second factor, one-time link) and out, and the page of open sign-ins."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response as FlaskResponse
from flask import abort, after_this_request, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from experiment.people.dashboard.accounts import OWNER, Account, use_recovery_code
from experiment.people.dashboard.blueprint import admin
from experiment.people.dashboard.failures import FAILED, NOBODY
from experiment.people.dashboard.second_factor import looks_like_totp
from experiment.people.dashboard.sign_in_limits import TooManyTries
from experiment.people.dashboard.sign_ins import BROWSER, LASTS, LINK, SECOND_STEP, SIGN_IN
from experiment.people.dashboard.signing_in import (
    account,
    account_of,
    actor,
    cookie,
    give_token,
    is_our_form,
    needs,
    note,
    set_cookie,
    this_sign_in,
    token,
)
from experiment.people.site import this_site
from experiment.store.records import add_audit
from stimuli.audit.findings import counted
from stimuli.errors import UserError

BROWSER_COOKIE = "wrods_browser"
TOO_OLD = "The page was too old. Please try again."
Page = Response | tuple[str, int]


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
    """Ask for name and password."""
    return _form(None, 200)


@admin.post("/login")
def login() -> Page:
    """Take name and password; wrong ones are limited in number."""
    name = request.form.get("name", "").strip().lower()[:64] or OWNER
    if not is_our_form():
        return _form(TOO_OLD, 400, name)
    site = this_site()
    password = request.form.get("password", "")
    try:
        found = site.limits.password(
            name, request.remote_addr, _known_browser(name), lambda: site.accounts.accepts(name, password)
        )
    except TooManyTries as refusal:
        _note_failure(name, "too many tries")
        return _form(_too_many(refusal), 429, name)
    if found is None:
        _note_failure(name, "name and password do not match")
        return _form("The name and password do not match.", 401, name)
    if found.second_factor is None:
        return _sign_in(found, "password")
    give_token(site.sign_ins.begin(SECOND_STEP, found.name, found.stamp()))
    return redirect(url_for("admin.code_form"))


@admin.get("/login/code")
def code_form() -> Page:
    """Ask for a code of the second factor, after the password."""
    if _halfway() is None:
        return redirect(url_for("admin.login_form"))
    return _code_form(None, 200)


@admin.post("/login/code")
def take_code() -> Page:
    """Take a code of the authenticator app, or a recovery code; each counts once."""
    found = _halfway()
    if found is None:
        return _form("That took too long. Please sign in again.", 400)
    if not is_our_form():
        return _code_form(TOO_OLD, 400)
    given = request.form.get("code", "")[:64]
    limits, address = this_site().limits, request.remote_addr
    try:
        if looks_like_totp(given):
            browser = _known_browser(found.name)
            is_right = limits.code(found.name, address, browser, lambda: _spend_code(found, given) or None)
            how = "password and code"
        else:
            is_right = limits.recovery_code(
                found.name, address, lambda: _spend_recovery(found, given) or None
            )
            how = "password and recovery code"
    except TooManyTries as refusal:
        _note_failure(found.name, "too many tries")
        return _code_form(_too_many(refusal), 429)
    if not is_right:
        _note_failure(found.name, "wrong code after the right password")
        return _code_form("This code is not right, or was used already. Please enter the present one.", 401)
    this_site().sign_ins.use_once(SECOND_STEP, token())
    return _sign_in(found, how)


def _halfway() -> Account | None:
    """Return the account whose password this browser gave a moment ago."""
    row = this_site().sign_ins.find(SECOND_STEP, token())
    found = None if row is None else account_of(row)
    return found if found is not None and found.second_factor is not None else None


def _spend_code(found: Account, given: str) -> bool:
    assert found.second_factor is not None
    step = found.second_factor.step_of(given)
    return step is not None and this_site().sign_ins.spend(
        f"{found.name}\0{found.second_factor.secret}\0{step}", found.name
    )


def _spend_recovery(found: Account, given: str) -> bool:
    try:
        return use_recovery_code(found.name, given)
    except (OSError, UserError) as error:
        # a code that cannot be crossed out would work again
        abort(503, f"The recovery code cannot be used: config.toml cannot be changed ({error}).")


def _known_browser(name: str) -> str | None:
    """Return the row of this browser if the account signed in with it before and has not changed since."""
    given = cookie(BROWSER_COOKIE)
    row = this_site().sign_ins.find(BROWSER, given) if given else None
    return row.token_hash if row is not None and row.account == name and account_of(row) else None


def _sign_in(found: Account, how: str) -> Response:
    sign_ins = this_site().sign_ins
    give_token(sign_ins.begin(SIGN_IN, found.name, found.stamp()))
    if _known_browser(found.name) is None:
        browser = sign_ins.begin(BROWSER, found.name, found.stamp())

        @after_this_request
        def _remember(response: FlaskResponse) -> FlaskResponse:
            set_cookie(response, BROWSER_COOKIE, browser, int(LASTS[BROWSER].total_seconds()))
            return response

    note("signed in", by=found.name, detail={"role": found.role, "by": how})
    return redirect(url_for("admin.show" if found.may("see") else "admin.rating_studies"))


def _note_failure(name: str, why: str) -> None:
    """Keep a failed try in the audit; whoever tries does not wait for it, so that nothing is told by how long it takes."""
    site = this_site()
    known = name if site.accounts.find(name) is not None else None
    detail = site.failed_sign_ins.told(known, why)
    if detail is None:
        return
    for study, service in site.services.items():
        service.store.write(partial(add_audit, actor=NOBODY, action=FAILED, study=study, detail=detail))


@admin.get("/enter/<link>")
def enter(link: str) -> Response:
    """Let in whoever holds a one-time link, once, as the owner."""
    row = this_site().sign_ins.use_once(LINK, link)
    owner = None if row is None else account_of(row)
    if owner is None:
        abort(403, "This link was used already or is too old. Please sign in with the password.")
    return _sign_in(owner, "one-time link")


@admin.post("/logout")
def logout() -> Response:
    """End this browser's sign-in; its cookie opens nothing any more."""
    mine = this_sign_in()
    if mine is not None:
        this_site().sign_ins.end(mine.token_hash)
    give_token("")
    return redirect(url_for("admin.login_form"))


@admin.get("/signed-in")
@needs()
def show_sign_ins() -> str:
    """Show an account's open sign-ins; an owner sees everybody's."""
    mine, me = this_sign_in(), account()
    assert mine is not None and me is not None
    rows = this_site().sign_ins.open_ones(None if me.may("audit") else me.name)
    lines: list[dict[str, Any]] = [
        {"row": row, "account": account_of(row), "is_this": row.token_hash == mine.token_hash} for row in rows
    ]
    return render_template(
        "admin/sign_ins.html", lines=[one for one in lines if one["account"] is not None], link=LINK
    )


@admin.post("/signed-in/end")
@needs()
def end_sign_in() -> Response:
    """End one sign-in: one's own, or as an owner anybody's."""
    me = account()
    assert me is not None
    rows = this_site().sign_ins.open_ones(None if me.may("audit") else me.name)
    found = next((row for row in rows if row.token_hash == request.form.get("sign_in")), None)
    if found is None:
        flash("This sign-in has ended already.")
    else:
        this_site().sign_ins.end(found.token_hash)
        note("ended a sign-in", detail={"account": found.account})
        flash(f"The sign-in of {found.account} has ended.")
    return redirect(url_for("admin.show_sign_ins"))


@admin.post("/signed-in/end-all")
@needs()
def end_all_sign_ins() -> Response:
    """Sign the account out everywhere, here too."""
    note("signed out everywhere")
    this_site().sign_ins.end_all(actor())
    give_token("")
    return redirect(url_for("admin.login_form"))
