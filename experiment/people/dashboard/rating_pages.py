"""The rating page: one answer at a time, by keyboard; agreement and decisions after a rater has finished."""

from __future__ import annotations

from flask import abort, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from experiment.people.dashboard.authentication import account, actor, admin, needs, note
from experiment.people.server_state import service_of, this_site
from experiment.people.service import StudyService
from experiment.rating import (
    DISCUSSION,
    FreeAnswer,
    NotRated,
    Rating,
    StoredRating,
    agreements,
    answers_of,
    card_of,
    decide,
    in_order_for,
    offered_to,
    rate,
    token_of,
)

LONGEST_NOTE = 500


def _rated(study: str) -> tuple[StudyService, Rating]:
    service = service_of(study)
    if service.rating is None:
        abort(404, "The study has no rating (rating: in study.yaml).")
    return service, service.rating


def _answers(service: StudyService, rating: Rating) -> list[FreeAnswer]:
    with service.store.read() as connection:
        return answers_of(connection, service.study, rating)


def _named(answers: list[FreeAnswer], who: str) -> dict[str, FreeAnswer]:
    secret = this_site().settings.secret
    return {token_of(answer, who, secret): answer for answer in answers}


def _sees_agreement(answers: list[FreeAnswer], rating: Rating) -> bool:
    """Return whether agreement may be shown: to those who do not rate, and to raters who have finished."""
    who = account()
    if who is None:
        return False
    if who.may("see") and not any(answer.by(who.name) for answer in answers):
        return True
    return all(answer.by(who.name) is not None for answer in offered_to(answers, who.name, rating))


@admin.get("/rating")
@needs("rate")
def rating_studies() -> AnyResponse | str:
    """Redirect a rater to the study to rate, or list the studies if there are several."""
    services = [service for service in this_site().services.values() if service.rating is not None]
    if len(services) == 1:
        return redirect(url_for("admin.rating", study=services[0].study))
    return render_template("admin/rating_studies.html", services=services)


@admin.get("/<study>/rating")
@needs("rate")
def rating(study: str) -> str:
    """Show the next answer to rate, or the requested one."""
    service, settings = _rated(study)
    who = actor()
    answers = _answers(service, settings)
    mine = in_order_for(offered_to(answers, who, settings), who, service.seed)
    done = [answer for answer in mine if answer.by(who) is not None]
    waiting = next((place for place, answer in enumerate(mine) if answer.by(who) is None), None)
    at = request.args.get("at", type=int)
    place = (waiting if waiting is not None else 0) if at is None else min(max(at - 1, 0), len(mine) - 1)
    current = mine[place] if mine and not (at is None and waiting is None) else None
    card = token = given = None
    if current is not None:
        with service.store.read() as connection:
            card = card_of(connection, current)
        token, given = token_of(current, who, this_site().settings.secret), current.by(who)
    return render_template(
        "admin/rating.html",
        service=service,
        rating=settings,
        answer=current,
        card=card,
        token=token,
        given=given,
        place=place + 1,
        total=len(mine),
        done=len(done),
        is_locked=current is not None and current.is_complete(settings),
        sees_agreement=_sees_agreement(answers, settings),
    )


@admin.post("/<study>/rating")
@needs("rate")
def take_rating(study: str) -> AnyResponse:
    """Store a rating and continue with the next answer."""
    service, settings = _rated(study)
    who = actor()
    answer = _named(_answers(service, settings), who).get(request.form.get("answer", ""))
    value = request.form.get("value", type=int)
    words = request.form.get("note", "").strip()[:LONGEST_NOTE]
    if answer is None or value is None:
        abort(400, "Please choose a rating for an answer that is to be rated.")
    given = StoredRating(who, value, words)
    try:
        service.store.write(
            lambda connection: rate(connection, study, settings, answer.place, given)
        ).result()
    except NotRated as refusal:
        flash(str(refusal))
    return redirect(url_for("admin.rating", study=study))


@admin.get("/<study>/rating/agreement")
@needs("rate")
def agreement(study: str) -> str:
    """Show kappa and the answers on which raters disagree."""
    service, settings = _rated(study)
    who = actor()
    answers = _answers(service, settings)
    if not _sees_agreement(answers, settings):
        abort(403, "Agreement is shown to raters who have rated all of their answers.")
    disputed = in_order_for([answer for answer in answers if answer.is_disputed(settings)], who, service.seed)
    secret = this_site().settings.secret
    with service.store.read() as connection:
        lines = [
            {"answer": answer, "card": card_of(connection, answer), "token": token_of(answer, who, secret)}
            for answer in disputed
        ]
    return render_template(
        "admin/agreement.html",
        service=service,
        rating=settings,
        agreements=agreements(answers, settings),
        answers=len(answers),
        complete=sum(answer.is_complete(settings) for answer in answers),
        decided=sum(answer.decided is not None for answer in answers),
        lines=lines,
    )


@admin.post("/<study>/rating/agreement")
@needs("rate")
def take_decision(study: str) -> AnyResponse:
    """Store the decision on an answer, by a third rater or by discussion."""
    service, settings = _rated(study)
    who = actor()
    answers = _answers(service, settings)
    if not _sees_agreement(answers, settings):
        abort(403, "Decisions are made by those who have rated all of their answers.")
    answer = _named(answers, who).get(request.form.get("answer", ""))
    value = request.form.get("value", type=int)
    how = request.form.get("how", "")
    if answer is None or value is None or how not in ("third", "discussion"):
        abort(400, "Please choose a rating and say how it was decided.")
    if how == "third" and answer.by(who) is not None:
        abort(400, "You rated this answer yourself: it takes a third rater, or a discussion.")
    words = request.form.get("note", "").strip()[:LONGEST_NOTE]
    note_text = {"third": "third rater", "discussion": DISCUSSION}[how] + (f": {words}" if words else "")
    given = StoredRating(who, value, note_text)
    try:
        service.store.write(
            lambda connection: decide(connection, study, settings, answer.place, given)
        ).result()
    except NotRated as refusal:
        flash(str(refusal))
    else:
        note("decided a rating", study=study, session_id=answer.place[0], detail={"reason": note_text})
    return redirect(url_for("admin.agreement", study=study))
