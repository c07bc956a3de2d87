"""What a report tells of rating: how many answers were rated by how many people, how far they agree, what was decided.

Counts only: neither an answer nor a rater's name leaves the store this way.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from experiment.rating.answers import answers_of
from experiment.rating.rates import agreements
from experiment.rating.rubric import rating_for
from experiment.study import Study

DISCUSSION = "discussion"
"""How the note of a decision begins that raters came to together; others are a third rater's."""


def told_of_rating(study: Study, connection: Connection) -> dict[str, Any] | None:
    """Return how a study's free answers were rated; None where it has none rated.

    ``rubric`` (its file), ``scale`` (lowest and highest rating), ``raters`` (how many are to rate each answer), ``people`` (how
    many have rated), ``answers`` (to be rated), ``complete`` (rated by all), ``differing`` (those among them that raters gave
    different ratings), ``decided`` (those among the differing), ``by_discussion`` (those among the decided), and ``agreements``:
    for each two raters, by number, ``answers``, ``same``, ``kappa``, ``low``, ``high`` and ``weights`` of
    :class:`experiment.rating.rates.Agreement`.
    """
    rating = rating_for(study)
    if rating is None:
        return None
    answers = answers_of(connection, study.id, rating)
    complete = [one for one in answers if one.is_complete(rating)]
    numbers = {name: n for n, name in enumerate(sorted({g.rater for one in answers for g in one.ratings}), 1)}
    return {
        "rubric": study.get("rating", "rubric"),
        "scale": [rating.low, rating.high],
        "raters": rating.raters,
        "people": len(numbers),
        "answers": len(answers),
        "complete": len(complete),
        "differing": sum(len({given.value for given in one.ratings}) > 1 for one in complete),
        "decided": sum(one.decided is not None for one in complete),
        "by_discussion": sum(
            one.decided is not None and str(one.decided.note).startswith(DISCUSSION) for one in complete
        ),
        "agreements": [
            asdict(one) | {"raters": [numbers[name] for name in one.raters]}
            for one in agreements(answers, rating)
        ],
    }
