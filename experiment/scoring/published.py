"""Scores, and the papers' own parsers and scorers, errors included, for comparison with those of wrods.

They are in the papers' folders, reimplemented from the released code and tested against the released results. Each docstring
names the errors.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rapidfuzz.distance import OSA

from experiment.models.prompts.prompter import asked_of, name_of, paper_prompts
from experiment.parsing.text import ResponseStatus, fold
from experiment.study import Study
from stimuli.errors import unknown_name
from stimuli.papers import Paper, papers

SCORER_VERSION = 5

VERSION = 1
OWN = "corrected"


@dataclass(frozen=True)
class Score:
    """One scorer's score for one trial."""

    response: str | None  # None unless the status is valid
    response_status: ResponseStatus
    correct: bool | None  # None unless the status is valid and a correct answer is known
    score: float | None  # from 0 to 1; of a rating on its scale
    scorer: str
    version: int = SCORER_VERSION  # of the scorer's rules


def same_words(given: str, intact: str) -> bool:
    """Return whether two texts have the same words, ignoring case, spacing and punctuation."""
    return _words(given) == _words(intact)


def recovery(given: str, intact: str) -> float:
    """Return the recovery score of a restored text, from 0 to 1.

    It is 1 − d / n, at least 0, with the optimal string alignment distance d to the intact text (insertions, deletions,
    substitutions and transpositions of neighbours) and the number n of its characters, both after NFC normalisation.
    """
    restored, other = (unicodedata.normalize("NFC", text.strip()) for text in (given, intact))
    return max(0.0, 1.0 - OSA.distance(restored, other) / max(1, len(other)))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", fold(text))


def parsers() -> Mapping[str, Paper]:
    """Return the papers' parsers by name, each with its paper."""
    return {name: paper for paper in papers().values() for name in paper.parsers}


def parser_names() -> tuple[str, ...]:
    """Return the values of ``wrods score --parser``: wrods' own, that of the items' paper, or a paper's by name."""
    return (OWN, "published", *parsers())


def published_choice(response: str | None, trial: Mapping[str, Any], parser: str) -> Score:
    """Return the score of a paper's parser for a choice; None is a reply in which it found none."""
    name = f"published_{parser}-{VERSION}"
    if response is None:
        return Score(None, "unparsed", None, None, name)
    correct = response == trial["answer"]
    return Score(response, "valid", correct, float(correct), name)


def paper_of(trial: Mapping[str, Any]) -> str | None:
    """Return the parser for a trial; None if no paper parsed such answers."""
    name = name_of(asked_of(trial)) or ""
    return max(filter(name.startswith, parsers()), key=len, default=None)


def published_score(parser: str, trial: Mapping[str, Any], reply: str) -> Score:
    """Return a paper's score for a reply; if it did not score such answers by rule, the parsed answer stays unscored.

    ``parser``: ``published`` (the paper of the trial's materials) or one of :func:`parsers`.
    """
    name, papers = paper_of(trial) if parser == "published" else parser, parsers()
    if name is None:
        return Score(reply, "valid", None, None, f"published_none-{VERSION}", VERSION)
    if name not in papers:
        raise unknown_name("parser", parser, parser_names())
    score: Score = papers[name].part(papers[name].parsers[name])(trial, reply)
    return replace(score, version=VERSION)


def in_its_form(trial: Mapping[str, Any], answer: str) -> str:
    """Return a correct answer in the format that the parser of a trial's paper reads: in its field, or after its phrase."""
    paper = _paper(trial)
    return (
        answer if paper is None or not paper.reply_form else str(paper.part(paper.reply_form)(trial, answer))
    )


def compared_text(trial: Mapping[str, Any], answer: str) -> str:
    """Return the part of an answer that is compared by its embedding: all, or what the trial's paper extracts."""
    paper = _paper(trial)
    return answer if paper is None or not paper.compared else str(paper.part(paper.compared)(trial, answer))


def judge_of(trial: Mapping[str, Any]) -> str | None:
    """Return the name of the prompt with which a trial's paper had reasoning judged; None if it had none."""
    paper = _paper(trial)
    prefixes = tuple(paper.parsers) if paper is not None and paper.judged else ()
    return next(
        (name for name in paper_prompts() if name.startswith(prefixes) and name.endswith("_judge")), None
    )


def judged_label(trial: Mapping[str, Any], reply: str) -> str | None:
    """Return the label in a judge's reply, as the code of the trial's paper reads it."""
    paper = _paper(trial)
    return None if paper is None or not paper.judged else paper.part(paper.judged)(reply)


def _paper(trial: Mapping[str, Any]) -> Paper | None:
    return parsers().get(str(paper_of(trial)))


def parser_of(study: Study) -> str | None:
    """Return the parser that counts for a study: None for wrods' own, ``published`` if the study sets it."""
    return "published" if "scoring" in study.published else None
