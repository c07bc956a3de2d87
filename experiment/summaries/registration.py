"""Writes a study's registration as Markdown: design, items, planned analyses with defaults, exclusions, sample size.

Its headings follow the questions of OSF's preregistration form, so that each part can be pasted into its field.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from analysis.plan import hypotheses, plans_in_words, rules_in_words
from experiment.integrity.freezing import hash_of, locked_part
from experiment.languages import find_pack
from experiment.study import Study
from experiment.study.factors import GROUP
from experiment.study.study import ITEMS, planned_analyses, study_plan
from experiment.summaries.plain_english import WORDS, tell, unruled_checks


def registration(study: Study, *, sessions_before: int, amended: str | None = None) -> str:
    """Return the registration as Markdown."""
    parts = (
        [f"# {study.title}", *_head(study, sessions_before, amended)],
        ["## Hypotheses", *_hypotheses(study)],
        ["## Design", *_told(study)],
        ["## Variables", *_variables(study)],
        ["## Materials", *_materials(study)],
        ["## Sample size and stopping", *_sample(study)],
        ["## Participants and exclusions", *_exclusions(study)],
        ["## Planned analyses", *_planned(study)],
        [
            "## What holds where the plan says nothing",
            *(f"- {name}: {value}." for name, value in WORDS["defaults"]),
        ],
        ["## What is locked", *_locked(study)],
    )
    return "\n".join("\n\n".join([part[0], _paragraphs(part[1:])]) + "\n" for part in parts)


def _paragraphs(lines: list[str]) -> str:
    """Return lines joined as Markdown: list items and table rows below each other, paragraphs separated."""
    text = ""
    for before, line in zip(["", *lines], lines, strict=False):
        together = before[:2] in ("- ", "| ") and line[:2] == before[:2]
        text += ("" if not text else "\n" if together else "\n\n") + line
    return text


def _head(study: Study, sessions_before: int, amended: str | None) -> Iterator[str]:
    yield f"Study `{study.id}`, language {study.language}, seed {study.seed}."
    yield (
        "Hash of the registration, over everything that is locked (design with its texts and items, sampling plan, models, "
        f"analyses): `{hash_of(locked_part(study))}`"
    )
    if amended is not None:
        yield f"This registration replaces an earlier one, because: {amended}"
    yield (
        "No data of people had been collected when this was frozen."
        if not sessions_before
        else f"{sessions_before} sessions of people had been begun when this was frozen."
    )


def _hypotheses(study: Study) -> Iterator[str]:
    """Yield the expectation of each planned contrast for each of its readers."""
    stated = list(hypotheses(study_plan(study)))
    if not stated:
        yield "No hypothesis is stated: all of the report will be exploratory."
    for name, lines in stated:
        yield f"**{name}**"
        yield from (f"- {line}" for line in lines)


def _told(study: Study) -> Iterator[str]:
    # the first paragraph is the title, the last the analyses, which have a separate section
    yield from tell(study, study.items).paragraphs[1:-1]


def _variables(study: Study) -> Iterator[str]:
    for name, levels in study.factors_of_items.items():
        yield f"- {name} (within sessions): {', '.join(levels)}"
    for name, levels in study.between.items():
        yield f"- {name} (between sessions): {', '.join(levels)}"
    if not study.factors:
        yield "- no factor is varied"
    planned = (measure for plan in planned_analyses(study) for measure in plan.measures.values())
    measured = sorted({f"{measure.name} ({measure.said})" for measure in planned})
    yield f"- measured: {', '.join(measured) or 'accuracy and times'}"


def _materials(study: Study) -> Iterator[str]:
    file = study.folder / ITEMS
    roles = Counter(item.role for item in study.items)
    yield f"{ITEMS}: {', '.join(f'{number} {role} lines' for role, number in roles.items())}."
    yield f"SHA-256 of the file {ITEMS}: `{hashlib.sha256(file.read_bytes()).hexdigest()}`"


def _sample(study: Study) -> Iterator[str]:
    wanted = study.get("participants", "wanted")
    yield (
        "No number of participants is planned."
        if wanted is None
        else f"{wanted} participants with a finished session that is not excluded; collection stops there."
    )
    for name, settings in study.models.items():
        yield f"- model {name}: {settings['use']}"


def _exclusions(study: Study) -> Iterator[str]:
    eligible = _eligible(study)
    yield "Participants must meet these criteria:" if eligible else "Anyone can take part."
    yield from (f"- {criterion}" for criterion in eligible)
    given: Mapping[str, Any] = study.get("participants", "if_interrupted", default={})
    then = WORDS["after_leaving"][given.get("then", "resume")]
    within = f" within {given['within']}" if "within" in given else ""
    yield f"Participants who leave before the end {then}{within}."
    plan = study_plan(study)
    lines = [f"- {rule}" for rule in rules_in_words(plan.exclude, plan.signs)]
    yield "These trials and sessions are excluded:" if lines else "No trial or session is excluded by a rule."
    yield from lines
    yield "Pilot sessions are in no analysis."
    if without_rule := unruled_checks(study):
        yield without_rule


def _eligible(study: Study) -> list[str]:
    """Return the eligibility criteria, one each; empty if the study has none."""
    criteria: Mapping[str, Any] = study.get("participants", "eligible", default={})
    groups = [
        name for name, levels in study.between.items() if any(GROUP in level for level in levels.values())
    ]
    lines = [f"belonging to a level of {name}: {' or '.join(study.between[name])}" for name in groups]
    if "first_language" in criteria:
        codes = criteria["first_language"]
        named = [_language(code) for code in ([codes] if isinstance(codes, str) else codes)]
        lines.append(f"first language: {' or '.join(named)}")
    if "age" in criteria:
        low, high = criteria["age"]
        lines.append(f"age: {low} to {high} years")
    if "device" in criteria:
        lines.append("device: a computer, no phone or tablet")
    if "browsers" in criteria:
        lines.append(f"browser: {', '.join(name.capitalize() for name in criteria['browsers'])}")
    if "screen" in criteria:
        width, height = criteria["screen"].split("x")
        lines.append(f"window: at least {width} × {height} pixels")
    if "refresh_rate" in criteria:
        low, high = criteria["refresh_rate"]
        lines.append(f"refresh rate: {low} to {high} Hz")
    for given in criteria.get("questions", {}).values():
        accepted = given["accept"] if isinstance(given["accept"], list) else [given["accept"]]
        lines.append(f"question: “{given['ask']}” Accepted: {', '.join(map(str, accepted))}")
    return lines


def _language(code: str) -> str:
    pack = find_pack(code)
    return f"{pack.english_name} ({code})" if pack else code


def _planned(study: Study) -> Iterator[str]:
    descriptions = plans_in_words(study_plan(study))
    if not descriptions:
        yield "No analysis is planned: all of the report will be exploratory."
    for first, *more in descriptions:
        name, _, question = first.partition(": ")
        yield f"**{name}**: {question}."
        yield from (f"- {line}." for line in more)


def _locked(study: Study) -> Iterator[str]:
    yield (
        "`freeze.json` holds the settings in full. `wrods freeze STUDY --verify` compares the study with them and checks the hash "
        "chain of every session."
    )
    yield (
        "Design hash, over the design alone (what sessions show; not the sampling plan, models and analyses): "
        f"`{study.design_hash}`. Every stored session carries it, so that data are told apart by the design under which they were "
        "collected."
    )
