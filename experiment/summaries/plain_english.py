"""Summary of a study in plain English: items, participants, repetitions, duration, and capabilities of models.

The description of a session (materials, design, screens, trials, minutes) is also used in the Method section of a report.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from itertools import groupby
from typing import Any

from analysis.plan import listing, rules_in_words, summary_of, worded
from experiment.checking.model_capabilities import (
    giving_of,
    needs_of,
    planned_of,
    reads_with_encoder,
    refused_answers,
    replicates_alike,
)
from experiment.checking.resource_estimates import size_of
from experiment.checking.settings import model_settings, papers_prompt
from experiment.languages import wording_language
from experiment.lists import blocks_of, count_label_maps, is_shown_at, items_of_list, list_ids, session_levels
from experiment.models.engine import ModelSettings
from experiment.models.engines import unfinished_training, use_remark
from experiment.models.planning.plans import needs_people
from experiment.models.planning.prompt_preview import CHARACTERS_PER_TOKEN, longest_prompt, prompt_characters
from experiment.models.planning.prompting_settings import tells_of_prompts
from experiment.models.prompts.prompter import paper_prompts, read_step
from experiment.orders import OrderRules
from experiment.procedure import plan_session, trials_of
from experiment.procedure.plan_builder import STEP_NAME
from experiment.procedure.steps import scale_ends
from experiment.session_minutes import length_in_words, minutes_in_words, session_durations
from experiment.study import Study
from experiment.study.factors import GROUP, VERSION, operation_families
from experiment.study.groups import accepted_in
from experiment.study.questionnaires import MATRIX, asked_on_screen, matrix_rows
from experiment.study.study import study_plan
from experiment.summaries.model_costs import cost_words, judging_of
from experiment.trials import RATED, TYPED, UNANSWERED, labels_of
from experiment.trials.own import describe_types
from stimuli.audit.findings import counted
from stimuli.corpora.loading import corpus_named
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.scramble.published import PublishedOperation, published_operation
from stimuli.scramble.types import parse_operation

WORDS: Mapping[str, Any] = json.loads(resources.files(__package__).joinpath("words.json").read_text("utf-8"))
"""Words for describing a study; verbs in the present tense before a study, in the past tense for its Method section."""
_TOGETHER = 3
"""Smallest number of models with the same description that share one sentence."""


@dataclass(frozen=True)
class StudySummary:
    """A study in words (paragraphs) and in numbers (for ``--json``)."""

    paragraphs: tuple[str, ...]
    numbers: dict[str, Any]
    session: SessionSummary


def tell(
    study: Study,
    items: Sequence[Item],
    probes: Mapping[Any, Any] | None = None,
    speeds: Mapping[str, float] | None = None,
) -> StudySummary:
    """Return the summary of a study with the items that it has or would build."""
    lists = list_ids(study, items)
    plan = plan_session(study, items, list_id=lists[0])
    trials = own_trials(trials_of(plan))
    tested = [trial for trial in trials if not trial["is_practice"]]
    models_plan = plan_session(study, items, list_id=lists[0], is_of_model=True)
    asked = trials_of(models_plan)
    durations = session_durations(study, items, lists, plan)
    longest = max(durations.values(), key=lambda duration: duration.minutes)
    models = {
        name: _model(study, items, name, settings, models_plan, asked)
        for name, settings in study.models.items()
    }
    if probes is not None:
        for name, described in models.items():
            described |= _held_against(study, name, models_plan, probes)
            described |= size_of(
                study, model_settings(study, name), models_plan, described["trials"], speeds or {}
            )
    numbers = {
        "study": study.id,
        "items": len({(item.set_name, item.item_id) for item in items if item.role == "test"}),
        "lists": len(lists),
        "trials_per_session": len(tested),
        "practice_trials": len(trials) - len(tested),
        "trials_per_cell": _cells(study, items, lists),
        "minutes": round(longest.minutes, 1),
        "minutes_by_levels": {levels: round(duration.minutes, 1) for levels, duration in durations.items()},
        "minutes_that_limits_allow": round(longest.limits_allow, 1),
        "participants_wanted": study.get("participants", "wanted"),
        "models": models,
        "design_hash": study.design_hash,
    }
    session = session_told(study, items, plan, numbers)
    length = " ".join(part for part in (f"{session.trials}, {session.length}.", session.limits) if part)
    wanted = (
        f" {numbers['participants_wanted']} participants are wanted.{_uneven(numbers)}"
        if numbers["participants_wanted"]
        else ""
    )
    paragraphs = (
        f"{study.title} ({study.id}, language {study.language}, seed {study.seed})",
        f"Materials: {session.materials}",
        f"Design: {session.factors}{'. ' if study.factors else '; '}{session.lists}",
        f"Procedure: {', '.join(session.screens)}. {length}{wanted}",
        session.told,
        *_model_lines(models),
        asked_in_english(study, study.models),
        _left_out(study),
        summary_of(study_plan(study)),
    )
    return StudySummary(
        tuple(p for p in paragraphs if p), numbers, session_told(study, items, plan, numbers, WORDS["past"])
    )


def _uneven(numbers: Mapping[str, Any]) -> str:
    """Return a sentence on lists that the wanted participants cannot fill alike; empty if they can."""
    wanted, lists = numbers["participants_wanted"], numbers["lists"]
    if wanted % lists == 0:
        return ""
    even = " or ".join(
        str(number) for number in (wanted - wanted % lists, wanted - wanted % lists + lists) if number
    )
    return f" The {lists} lists get unequal numbers of them: {even} fill all lists alike."


def _model_lines(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return lines on models, with one line for those whose description and remaining set-up are the same."""
    alike: dict[tuple[str, bool], list[str]] = {}
    for name, described in models.items():
        alike.setdefault((_of_model(described), bool(described["to_train"])), []).append(name)
    lines: dict[str, str] = {}
    for (text, to_train), names in alike.items():
        if len(names) < _TOGETHER:
            lines |= {
                name: f"Model {name} ({models[name]['use']}): {text}{_not_yet(models[name])}"
                for name in names
            }
            continue
        every = ", ".join(f"{name} ({models[name]['use']})" for name in names)
        lacks = (
            " Not yet: their training is not finished, so there are no models of them. Train them with `wrods tune STUDY`."
            if to_train
            else "".join(f" {name}:{_not_yet(models[name])}" for name in names if models[name]["remark"])
        )
        lines[names[0]] = f"{len(names)} models, {every}, each: {text}{lacks}"
    return [lines[name] for name in models if name in lines]


def _of_model(described: Mapping[str, Any]) -> str:
    return (
        f"{counted(described['sessions'], 'session')}, {described['trials']:,} trials, roughly "
        f"{described['prompt_tokens']:,} prompt tokens; it {described['how']}."
        + "".join(f" {sentence}" for sentence in described["as_published"])
        + (f" {described['costs']}" if described["costs"] else "")
        + (f" {described['judged']}" if described["judged"] else "")
        + f" Gives {described['gives']}.{described['left_empty']}{described['reads']}"
        + "".join(
            f" {sentence}" for sentence in (*described.get("held_against", ()), *described.get("size", ()))
        )
    )


def _not_yet(described: Mapping[str, Any]) -> str:
    return f" Not yet: {described['remark']}" if described["remark"] else ""


def _held_against(
    study: Study, name: str, plan: Mapping[str, Any], probes: Mapping[Any, Any]
) -> dict[str, Any]:
    """Compare a study's requirements and plans for a model with its known capabilities, in numbers and sentences."""
    settings = model_settings(study, name)
    requirements = needs_of(study, settings, plan)
    longest = longest_prompt(study, settings, plan) if settings.kind == "hf" else None
    giving = giving_of(settings, requirements, probes, longest)
    planned = planned_of(study, settings, name, plan, giving)
    alike = replicates_alike(study, settings)
    sentences = [f"The study needs {'; '.join(need.because for need in requirements) or 'its text alone'}."]
    if giving.known_from is None:
        # for an unavailable model, its own remark gives the reason
        is_missing = (
            settings.kind == "hf" and use_remark(settings.use, study.folder, settings.options) is not None
        )
        sentences += [] if is_missing else [giving.remark or ""]
    elif giving.gaps:
        sentences.append(f"According to {giving.known_from}: {' '.join(giving.gaps)}")
    else:
        sentences.append(f"According to {giving.known_from}, it has all of that.")
    sentences += [
        f"Planned analysis {analysis.name} has no data of it: {analysis.lack}."
        for analysis in planned
        if analysis.lack
    ]
    sentences += [
        f"Planned analysis {analysis.name}: {analysis.proviso}." for analysis in planned if analysis.proviso
    ]
    sentences += [f"{alike}."] if alike else []
    refused = refused_answers(study, settings)
    sentences += [f"A run will refuse it: {refused}."] if refused else []
    return {
        "asked": {need.need: need.because for need in requirements},
        "known_from": giving.known_from,
        "gaps": list(giving.gaps),
        "planned": {
            analysis.name: {"measure": analysis.measure, "lack": analysis.lack, "proviso": analysis.proviso}
            for analysis in planned
        },
        "held_against": [sentence for sentence in sentences if sentence],
    }


def unruled_checks(study: Study) -> str:
    """Return a sentence on the instructed-response checks, in blocks or among rows of questions, that no rule is on; empty without."""
    rules: Mapping[str, Any] = study.get("analysis", "exclude", "sessions", default={})
    screens = study.get("procedure", default=[])
    in_blocks = any(screen.get("block", {}).get("attention_checks") for screen in screens)
    in_questions = any(
        row.accept
        for screen in screens
        for name, given in asked_on_screen(study, screen.get("questions", {})).items()
        if given["type"] == MATRIX
        for row in matrix_rows(study, name, given)
    )
    there = {"attention_checks_failed": in_blocks, "question_checks_failed": in_questions}
    unruled = [sign for sign, is_there in there.items() if is_there and sign not in rules]
    if not unruled:
        return ""
    which = "all" if len(unruled) == sum(there.values()) else unruled[0]
    return str(WORDS["no_rule_on_checks"]).format(checks=WORDS["checks"][which])


def _left_out(study: Study) -> str:
    """Describe which rows are in no analysis, and which sessions a rule may exclude."""
    plan = study_plan(study)
    rules = "; ".join(rules_in_words(plan.exclude, plan.signs))
    sentences = [f"Excluded from analyses, never deleted: {rules}."] if rules else []
    if plan.exclude.get("sessions"):
        sentences.append("Sessions are excluded on the dashboard only.")
    return " ".join(filter(None, [*sentences, unruled_checks(study)]))


def _cells(study: Study, items: Sequence[Item], lists: Sequence[int]) -> dict[str, int]:
    """Return the number of the first session's test items in each condition that it could show, even if it shows none."""
    levels = session_levels(study, items, lists[0])["condition"]
    counts = {_cell(item): 0 for item in items if item.role == "test" and is_shown_at(item, levels)}
    for item in items_of_list(study, items, lists[0]):
        if item.role == "test":
            counts[_cell(item)] += 1
    return counts


def _cell(item: Item) -> str:
    return ", ".join(item.condition.values()) or "all"


def _model(
    study: Study,
    items: Sequence[Item],
    name: str,
    settings: Mapping[str, Any],
    plan: Mapping[str, Any],
    trials: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    lists = list_ids(
        study, items, label_maps=study.get("models", "label_maps", default="balanced"), of_models=True
    )
    times = study.get("models", "prompt_variants", default=1) * study.get("models", "replicates", default=1)
    model = ModelSettings.of(settings, study.folder)
    # one list of each combination of levels between sessions: other lists' prompts have the same length
    first_lists: dict[tuple[str, ...], int] = {}
    for list_id in lists:
        first_lists.setdefault(tuple(session_levels(study, items, list_id)["condition"].values()), list_id)
    others = list(first_lists.values())[1:]
    plans = [plan, *(plan_session(study, items, list_id=other, is_of_model=True) for other in others)]
    sizes = [prompt_characters(study, model, plan) for plan in plans]
    n_trials, characters, tokens = (sum(numbers) / len(plans) for numbers in zip(*sizes, strict=True))
    sessions = (study.get("participants", "wanted", default=1) if needs_people(study) else len(lists)) * times
    judge = settings.get("judge")
    judging = judging_of(study, model, model_settings(study, judge), plans, sessions) if judge else None
    answered, read = round(sessions * n_trials), int(characters * sessions // CHARACTERS_PER_TOKEN)
    return {
        "use": settings["use"],
        "sessions": sessions,
        "trials": answered,
        "prompt_tokens": read,
        "costs": cost_words(model, answered, read, round(sessions * tokens)),
        "gives": WORDS["gives"].get(_kind(study, name), "what its package says"),
        "how": _how(study, settings),
        "as_published": sent_as_published(study, model),
        "judging": None if judging is None else asdict(judging),
        "judged": "" if judging is None else judging.said(),
        "reads": _reads(settings, trials),
        "left_empty": _left_empty(settings, trials),
        "remark": use_remark(settings["use"], study.folder, settings),
        "to_train": unfinished_training(model),
    }


def _kind(study: Study, name: str) -> str:
    """Return the kind of a model; a local one with an encoder is a separate kind."""
    settings = model_settings(study, name)
    return "hf encoder" if settings.kind == "hf" and reads_with_encoder(settings) else settings.kind


def _how(study: Study, settings: Mapping[str, Any]) -> str:
    """Describe a model's context, practice and strategy."""
    strategy = settings.get("strategy", study.get("models", "strategy", default="direct"))
    context = study.get("models", "context", default="independent")
    practice = study.get("models", "practice", default="answered" if context == "session" else "none")
    wording = papers_wording(study)
    parts = [
        f"sees each trial alone in the wording of {wording}, without the study's instructions"
        if wording
        else WORDS["contexts"][context],
        *([WORDS["practice"][practice]] if context != "teacher_forced" else []),
        WORDS["strategies"][strategy],
    ]
    if needs_people(study):
        parts.append("with the list, order and labels of each person who has finished")
    return ", ".join(part for part in parts if part)


def _reads(settings: Mapping[str, Any], trials: Sequence[Mapping[str, Any]]) -> str:
    """Describe which measures of reading a model lacks."""
    kind = settings["use"].split(":")[0]
    if tells_of_prompts(kind, settings) or not any(read_step(trial) for trial in trials):
        return ""
    only = any(trial["trial_type"] in UNANSWERED and not trial["is_practice"] for trial in trials)
    more = " It skips trials in which a text is only read." if only else ""
    if kind == "baseline":
        return f" It has no surprisal of the texts that are read.{more}"
    return (
        " Only a server that reports log-probabilities of prompts gives the surprisal of texts that are read; with any other, "
        f"the regions table has no rows of this model.{more}"
    )


def _left_empty(settings: Mapping[str, Any], trials: Sequence[Mapping[str, Any]]) -> str:
    """Describe which trials a baseline cannot answer: it draws or repeats labels, and what is typed has none."""
    typed = sum(trial["trial_type"] in TYPED and not trial["is_practice"] for trial in trials)
    when = {"random": "", "always_a": "", "oracle_with_lapses": " in its lapses"}
    kind, _, name = settings["use"].partition(":")
    rated = sum(trial["trial_type"] in RATED and not trial["is_attention_check"] for trial in trials)
    if kind == "baseline" and name.startswith("oracle") and rated:
        return f" It gives no ratings{when.get(name, '').replace('in its lapses', 'but in its lapses')}, since none is right."
    if kind != "baseline" or name not in when or not typed:
        return ""
    return f" It leaves typed answers empty{when[name]} ({typed} trials a session), because they have no labels to guess among."


@dataclass(frozen=True)
class SessionSummary:
    """A session of a study, described in sentences."""

    materials: str
    factors: str
    lists: str
    screens: tuple[str, ...]
    trials: str
    length: str
    limits: str
    told: str
    wording: str = ""
    exclusion: str = ""
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # what each level of a factor is


def session_told(
    study: Study,
    items: Sequence[Item],
    plan: Mapping[str, Any],
    numbers: Mapping[str, Any],
    verbs: Mapping[str, str] = WORDS["present"],
) -> SessionSummary:
    """Describe a session of a study."""
    practice = (
        f" after {worded(numbers['practice_trials'], 'practice trial')}" if numbers["practice_trials"] else ""
    )
    allowed = numbers["minutes_that_limits_allow"]
    rules = study_plan(study)
    criteria = [
        f"{rules.signs.get(name, name)} ({bound})"
        for name, bound in (rules.exclude.get("sessions") or {}).items()
    ]
    noun = f"criteria for excluding sessions {verbs['are']}"
    if len(criteria) == 1:
        noun = f"criterion for excluding sessions {verbs['is']}"
    return SessionSummary(
        _materials(study, items) + _regions(study, verbs),
        "; ".join(_factor(*factor) for factor in _levels_told(study).items()) or "no factor",
        _lists(study, numbers, verbs) + _orders(study, verbs) + _code_of_scrambles(study, verbs),
        _screens(study),
        f"A session {verbs['has']} {worded(numbers['trials_per_session'], 'trial')}{practice}",
        f"roughly {length_in_words(numbers['minutes_by_levels'])}",
        f"Free answers {verbs['are']} counted with up to a minute each; their time limits {verbs['allow']} "
        f"{minutes_in_words(allowed)} more."
        if allowed
        else "",
        " ".join(filter(None, (_told_to_readers(study, plan, verbs), describe_types(study.own_types)))),
        papers_wording(study),
        f"The {noun} {listing(criteria)}." if criteria else "",
        {
            factor: {
                level: _in_words(given, study.factors.get(factor, {}).get(level))
                for level, given in levels.items()
            }
            for factor, levels in _levels_told(study).items()
        },
    )


def _in_words(told: Any, given: Any) -> str:
    """Return what a level is, of a scramble what it does to a text; empty if the study says nothing of it."""
    if told is None or told == VERSION:
        return ""
    operation, is_of_examples = _operation_of(given)
    try:
        if not isinstance(told, LevelSummary):
            words = parse_operation(operation).in_words
        elif told.startswith(("published ", "examples: ")):
            words = published_operation(operation).in_words
        else:
            return told
    except UserError:  # rows of a table
        return _operation(told)
    return f"examples {'' if words == 'unchanged' else 'with '}{words}" if is_of_examples else words


MOST_WORDS = 4
"""Most unchanged words that are listed with reasons; more are only counted."""


def _materials(study: Study, items: Sequence[Item]) -> str:
    sets = list(dict.fromkeys(item.set_name for item in items if item.role == "test"))
    # a factor that is the set names them
    names = "" if any({*levels} == {*sets} for levels in study.factors.values()) else f" ({listing(sets)})"
    named = f" in {worded(len(sets), 'set')}{names}" if len(sets) > 1 else ""
    roles: Counter[str] = Counter(
        role for role, _, _ in {(item.role, item.set_name, item.item_id) for item in items}
    )
    other_items = [worded(roles[role], noun) for role, noun in WORDS["beside_items"].items() if roles[role]]
    corpus = study.get("materials", "corpus", "name")
    taken = f" from {corpus_named(corpus).title}" if corpus else ""
    text = listing([f"{worded(roles['test'], 'item')}{taken}{named}", *other_items])
    return f"{text}.{_left_intact(items)}"


def _regions(study: Study, verbs: Mapping[str, str]) -> str:
    """Name the regions of the texts that are read, with the place of each; empty without any."""
    named = [
        f"{name} ({'marked in each text' if place is None else f'{place.words} {place.side} {place.other}'})"
        for name, place in study.regions.items()
    ]
    return (
        f" The texts {verbs['have']} the named region{'s' if named[1:] else ''} {listing(named)}."
        if named
        else ""
    )


def _left_intact(items: Sequence[Item]) -> str:
    """Name the words that were meant to change and did not: in every condition of their item, or in some."""
    reasons: dict[tuple[str, str], str] = {}
    kept: Counter[tuple[str, str]] = Counter()
    conditions: Counter[str] = Counter()
    for item in items:
        words = {word["intact"]: word["reason"] for word in item.left_intact}
        conditions[item.item_id] += bool(words or item.changes)
        kept.update((item.item_id, word) for word in words)
        reasons |= {(item.item_id, word): reason for word, reason in words.items()}
    left = ""
    for where, lost in (
        ("every condition", [key for key, count in kept.items() if count == conditions[key[0]]]),
        ("some conditions", [key for key, count in kept.items() if count < conditions[key[0]]]),
    ):
        if len(lost) > MOST_WORDS:
            words_named = ", ".join(list(dict.fromkeys(f"“{word}”" for _, word in lost))[:MOST_WORDS])
            left += f" Of the words that were meant to change, {len(lost):,} stayed intact in {where}, such as {words_named}."
        elif lost:
            named = "; ".join(f"“{word}” in {item_id} ({reasons[item_id, word]})" for item_id, word in lost)
            left += f" Left intact in {where}, though meant to change: {named}."
    return left


def _orders(study: Study, verbs: Mapping[str, str]) -> str:
    """Describe the constraints of the blocks' orders; empty without any."""
    orders = [study.get("procedure", place, "block", "order", default="mixed") for place in blocks_of(study)]
    rules = [OrderRules.of(order).in_words() for order in orders if isinstance(order, Mapping)]
    told = list(dict.fromkeys(listing(phrases) for phrases in rules))
    return "".join(f" Trials {verbs['are']} in random order with {phrases}." for phrases in told)


def _lists(study: Study, numbers: Mapping[str, Any], verbs: Mapping[str, str]) -> str:
    apart, maps = list(study.between), count_label_maps(study)
    varied = [f"{listing(apart)} varied between sessions"] if apart else []
    if maps > 1:
        swapped = "swapped in half of them" if maps == 2 else f"in {maps} assignments"
        varied.append(
            f"the labels of answers {swapped if apart or maps > 2 else 'swapped in half of the sessions'}"
        )
    lists = worded(numbers["lists"], "list") + (f", with {' and '.join(varied)}" if varied else "")
    if not study.factors:
        return f"{lists}."
    cells = numbers["trials_per_cell"].values()
    least, most = min(cells), max(cells)
    at_most = {1: "once", 2: "twice"}.get(most, worded(most, "time"))
    between = "once or twice" if most == 2 else f"{least} to {most} times"
    often = at_most if least == most else between if least else f"{at_most} at most"
    if len(cells) == 1:
        return f"{lists}; a session {verbs['shows']} {worded(most, 'item')}."
    return (
        f"{lists}; a session {verbs['shows']} each {'of its conditions' if apart else 'condition'} {often}."
    )


def _levels_told(study: Study) -> dict[str, dict[str, Any]]:
    """Return the factors of a study, with operations on items with their own factor, and published scrambles, described."""
    if study.controls is None or study.own is None:
        if "items" not in study.published:
            return study.factors
        return {
            factor: {level: _as_published(given) for level, given in levels.items()}
            for factor, levels in study.factors.items()
        }
    factor, levels = study.controls
    controls = study.own[1].controls
    return {**study.factors, factor: {level: LevelSummary(controls[does]) for level, does in levels.items()}}


class LevelSummary(str):
    """A description of a level."""


def _published(operation: Any) -> PublishedOperation | None:
    """Return a paper's scramble, which differs from the corrected one of the same name; None of others."""
    if not isinstance(operation, str):
        return None
    try:
        published = published_operation(operation)
    except UserError:
        return None
    return None if published.protocol is None else published


def _operation_of(given: Any) -> tuple[Any, bool]:
    """Return the operation of a level, and whether it changes the examples alone."""
    is_of_examples = isinstance(given, Mapping) and "demonstrations" in given
    return (given["demonstrations"] if is_of_examples else given), is_of_examples


def _as_published(given: Any) -> Any:
    """Return the description of a paper's scramble; others unchanged."""
    operation, is_of_examples = _operation_of(given)
    published = _published(operation)
    if published is None:
        return given
    return LevelSummary(f"{'examples: ' if is_of_examples else ''}{published.label}")


def _code_of_scrambles(study: Study, verbs: Mapping[str, str]) -> str:
    """Name the papers whose code makes the scrambles; empty if none does."""
    operations = [_operation_of(given)[0] for levels in study.factors.values() for given in levels.values()]
    published = filter(None, map(_published, operations)) if "items" in study.published else ()
    papers = dict.fromkeys(f"{one.protocol.title.partition('), ')[0]})" for one in published if one.protocol)
    return f" Scrambles {verbs['are']} made by the code of {listing(list(papers))}." if papers else ""


def _factor(name: str, levels: Mapping[str, Any]) -> str:
    if VERSION in levels.values():
        return f"{name} has the versions {listing(list(levels))} of the materials; {next(iter(levels))} is the reference"
    papers = [level for level, operation in levels.items() if operation == f"published {level}"]
    texts = [
        level if level in papers else f"{level} ({_operation(operation)})"
        for level, operation in levels.items()
        if operation is not None
    ]
    return f"{name} has the levels {', '.join(texts) if texts else ', '.join(levels)}; {next(iter(levels))} is the reference"


def _between(given: Mapping[str, Any]) -> str:
    """Describe the settings of a level between sessions."""
    parts = [WORDS["items"][given["items"]]] if "items" in given else []
    if "where" in given:
        parts.append("rows in which " + " and ".join(f"{c} is {v}" for c, v in given["where"].items()))
    if GROUP in given:
        accepted = [
            f"{name} is {' or '.join(map(str, values))}" for name, values in accepted_in(given).items()
        ]
        parts.append(f"people whose {' and '.join(accepted)}")
    if "exemplars" in given:
        parts.append(counted(given["exemplars"], "example") if given["exemplars"] else "no examples")
    if given.get("example_labels") == "shuffled":
        parts.append("labels of examples shuffled, so that they tell nothing")
    parts += [
        f"{kind} {name} {value}"
        for kind, sets in given.items()
        if isinstance(sets, Mapping) and kind not in ("where", "texts", GROUP)
        for name, value in sets.items()
    ]
    parts += [f"{new} in place of {old}" for old, new in given.get("texts", {}).items()]
    return ", ".join(parts) or "as it is"


def _operation(operation: Any) -> str:
    if operation is None:
        return "as it is"
    if isinstance(operation, LevelSummary):
        return operation
    if isinstance(operation, Mapping) and {
        "exemplars",
        "example_labels",
        "texts",
        "items",
        "where",
        GROUP,
    } & set(operation):
        return _between(operation)
    scramble, is_of_examples = _operation_of(operation)
    if is_of_examples:
        return f"examples: {parse_operation(scramble).label}"
    if isinstance(operation, Mapping) and any(isinstance(given, Mapping) for given in operation.values()):
        sets = [
            f"{kind} {name} {value}"
            for kind, given in operation.items()
            for name, value in (given.items() if isinstance(given, Mapping) else [("", given)])
        ]
        return ", ".join(sets)
    if isinstance(operation, Mapping) and not operation_families() & set(operation):
        return ", ".join(f"{name} {value}" for name, value in operation.items())
    if operation == "withhold":
        return "the text withheld"
    if operation == "hand-made" or (isinstance(operation, Mapping) and set(operation) == {"column"}):
        return "made by hand"
    return parse_operation(operation).label


def _screens(study: Study) -> tuple[str, ...]:
    kinds = [next(iter(screen)) for screen in study.get("procedure")]
    runs = [(kind, sum(1 for _ in run)) for kind, run in groupby(kinds)]
    more = {"questions": "screens of questions"}
    return tuple(kind if count == 1 else worded(count, kind, more.get(kind)) for kind, count in runs)


def _told_to_readers(study: Study, plan: Mapping[str, Any], verbs: Mapping[str, str]) -> str:
    """Describe the questions about instructions, the practice criterion, and the feedback in blocks."""
    sentences = []
    is_one = sum(screen["kind"] == "block" for screen in plan["screens"]) == 1
    # the levels between sessions say how their texts are read
    reads_in_other_ways = any(
        "read" in sets for factor in study.between for sets in study.step_levels.get(factor, {}).values()
    )
    for screen in plan["screens"]:
        comprehension = screen.get("comprehension")
        if comprehension:
            number, needed = len(screen["questions"]), comprehension["needed"]
            of_them = f", {needed} of them" if needed != number else ", all" if number > 1 else ","
            ends = (
                f"{verbs['ends']}" if comprehension["if_failed"] == "end" else f"{verbs['goes']} on, flagged"
            )
            sentences.append(
                f"The instructions {verbs['are']} followed by {worded(number, 'question')}{of_them} to be answered "
                f"correctly within {worded(comprehension['rounds'], 'round')}; otherwise, the session {ends}."
            )
        elif screen["kind"] == "questions" and not screen["screening"]:
            named_questions = listing(list(map(_question, screen["questions"])))
            asked = worded(len(screen["questions"]), "question")
            sentences.append(f"A screen {verbs['has']} {asked} ({named_questions}).")
        elif screen["kind"] == "practice":
            passing, last = screen.get("pass"), screen.get("of_last")
            of_last = f" of the last {last} trials" if last else ""
            needed = (
                ""
                if passing is None
                else f"; {passing:.0%}{of_last} {verbs['have']} to be correct within {worded(screen['attempts'], 'attempt')}"
            )
            sentences.append(
                f"Practice ({worded(len(own_trials(screen['trials'])), 'trial')}) {_feedback(screen['feedback'], verbs)}{needed}."
            )
        elif screen["kind"] == "block":
            every, trials = screen["break_every"], own_trials(screen["trials"])
            checked = sum(trial["is_attention_check"] for trial in trials)
            checks = worded(checked, "attention check")
            parts = [
                f"{worded(len(trials), 'trial')}{f', including {checks}' if checked else ''}",
                *([f"a break after every {every}"] if every and every < len(trials) else []),
                *_restricted(trials),
                *(() if reads_in_other_ways else _reading(trials)),
                *_scales(trials),
                *_time_limits(trials),
                *_further(screen["trials"], len(trials) - checked),
            ]
            name = screen["name"] or str(screen["block"]).removeprefix("block-")
            named = "The block" if is_one else f"Block {name}"
            # a part may have a comma of its own
            told = (";" if checked else ",") + " "
            sentences.append(f"{named} ({told.join(parts)}) {_feedback(screen['feedback'], verbs)}.")
    return " ".join(sentences)


def own_trials(trials: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return trials without the further answers, which the trial before them asks for."""
    return [trial for trial in trials if STEP_NAME not in trial]


def _further(trials: Sequence[Mapping[str, Any]], number: int) -> Iterator[str]:
    """Yield the name of each further answer, how it is given, and in how many of a block's trials if not in all."""
    asked: dict[str, list[Mapping[str, Any]]] = {}
    for trial in trials:
        if STEP_NAME in trial:
            asked.setdefault(trial[STEP_NAME], []).append(trial)
    for name, its_trials in asked.items():
        given = next(_scales(its_trials), STEP_NOUNS[its_trials[0]["steps"][-1]["step"]])
        among = "" if len(its_trials) == number else f" in {worded(len(its_trials), 'trial')}"
        yield f"then {name} ({given}){among}"


STEP_NOUNS = {
    "answer": "a question",
    "choose": "a question",
    "prime": "a prime",
    "rate": "a rating",
    "read": "a text to read",
    "recover": "a text to restore",
}


def _restricted(trials: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what only some trials of a block ask or show, with their number."""
    tests = [trial for trial in trials if not trial["is_attention_check"]]
    having = Counter(
        noun
        for trial in tests
        for noun in dict.fromkeys(
            STEP_NOUNS.get(step["step"], f"the step {step.get('type', step['step'])}")
            for step in trial["steps"]
        )
    )
    for noun, number in having.items():
        if number < len(tests):
            yield f"{noun} in {worded(number, 'trial')}"


def _question(question: Mapping[str, Any]) -> str:
    """Return a question's name with the rows, points and scores of a matrix, and the answers that lead to it."""
    details = []
    if "rows" in question:
        rows = [row for row in question["rows"] if not row["accept"]]
        scales = sorted({row["scale"] for row in rows if row["scale"]})
        details.append(f"{counted(len(rows), 'row')} of {len(question['options'])} points")
        if "score" in question:
            details.append(f"{question['score']} of {' and of '.join(scales) or 'all'}")
        turned = sum(row["is_reversed"] for row in rows)
        details += [f"{turned} reversed"] if turned else []
        checks = len(question["rows"]) - len(rows)
        details += [counted(checks, "attention check")] if checks else []
    for name, condition in question.get("only", {}).items():
        wanted = condition.get("values") or [f"{condition['from']:g} to {condition['to']:g}"]
        details.append(f"only after {name}: {' or '.join(wanted)}")
    return f"{question['name']} ({'; '.join(details)})" if details else str(question["name"])


def _reading(trials: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each way in which a block's texts are read, unless they are shown whole until the reader goes on."""
    times: dict[str, set[float]] = {}
    for step in (step for trial in trials for step in trial["steps"] if step["step"] == "read"):
        own = step.get("part_ms") or []
        way = step["as"] if step["as"] != "maze" else f"maze_{step['wrong']}"
        if way != "whole" or own:
            told = WORDS["reading"][way].replace("UNIT", str(step.get("by") or "word"))
            times.setdefault(told, set()).update(own)
    for told, given in times.items():
        least, most = (f"{ms:g}" for ms in (min(given, default=0), max(given, default=0)))
        yield told.replace("TIME", f"{least} ms" if least == most else f"{least} to {most} ms")


def _scales(trials: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each scale on which a block is rated: its number of buttons, or a slider, and its ends."""
    steps = (step for trial in trials for step in trial["steps"] if step["step"] in RATED)
    scales = [(len(labels_of(step)), *scale_ends(step).values()) for step in steps]
    for buttons, low, high in dict.fromkeys(scales):
        yield f"rated {f'with {buttons} buttons' if buttons else 'on a slider'} from {low} to {high}"


def _time_limits(trials: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each time limit of answers in a block, with the number of trials that have it if others do not."""
    tests = [trial for trial in trials if not trial["is_attention_check"]]
    limits = Counter(
        limit
        for trial in tests
        for limit in {step["time_limit_ms"] for step in trial["steps"] if step.get("time_limit_ms")}
    )
    for limit, number in sorted(limits.items()):
        written = f"{limit / 1000:g} s" if limit < 120_000 else f"{limit / 60_000:g} min"
        yield f"a time limit of {written} for {'each' if number == len(tests) else worded(number, 'trial')}"


def _feedback(given: Mapping[str, Any] | None, verbs: Mapping[str, str]) -> str:
    if given is None:
        return f"{verbs['gives']} no feedback"
    about = [*(["accuracy"] if given["accuracy"] else []), *(["timeouts"] if given["late"] else [])]
    shown = "until dismissed" if given["for_ms"] is None else f"for {given['for_ms']} ms"
    return f"{verbs['gives']} feedback on {' and '.join(about)}, shown {shown}"


def papers_wording(study: Study) -> str:
    """Return whose wording models' prompts have (``Lee & Lim (2024), H-TEST``); empty for wrods' own.

    A paper's prompt is sent alone, without the study's instructions.
    """
    name = papers_prompt(study) if "prompts" in study.published else None
    return "" if name is None else str(paper_prompts()[name]["source"]).partition(";")[0]


def asked_in_english(study: Study, models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a warning if models are prompted in English in a study of another language; otherwise empty."""
    papers = papers_wording(study)
    language = "en" if papers else wording_language(study.language)
    is_own = study.own_texts.wording is not None and not papers
    has_models = any(not str(model["use"]).startswith("baseline:") for model in models.values())
    if not has_models or is_own or language == study.language.split("-")[0]:
        return ""
    why = (
        f"they read the prompt of {papers}"
        if papers
        else "wrods has prompts in English, German and Spanish only. Write your own prompts under `prompts` in texts.json "
        "(docs/study.md#language)"
    )
    return f"Warning: the prompts for models are in English, but the study's language is {study.language!r}: {why}."


def sent_as_published(study: Study, settings: ModelSettings) -> list[str]:
    """Return sentences on the temperature, length and chat template of a paper's prompt; empty without one."""
    name = papers_prompt(study) if "prompts" in study.published else None
    if name is None or settings.kind == "baseline":
        return []
    # papers had other prompts with reasoning, and for local models
    prompts, thinking = paper_prompts(), f"{name}_chain_of_thought"
    strategy = settings.options.get("strategy", study.get("models", "strategy", default="direct"))
    if strategy == "chain_of_thought" and thinking in prompts:
        prompt = prompts[thinking]
    else:
        prompt = prompts[name if settings.kind == "hf" else name.removesuffix("_local")]
    papers = float(prompt["temperature"])
    temperature = float(str(settings.options.get("temperature", papers)))
    room = counted(int(str(settings.options.get("max_tokens", prompt["max_tokens"]))), "token")
    replicates = study.get("models", "replicates", default=1)
    answers = "one answer" if replicates == 1 else f"{replicates} answers"
    if settings.kind == "hf" and prompt.get("scored"):
        drawn = f"temperature {papers:g}, at most {counted(prompt['max_tokens'], 'token')}"
        sentences = [
            f"Its labels are compared by their log-probability, so that nothing is drawn (the paper: {drawn})."
        ]
    else:
        heat = f"temperature {temperature:g}" + (
            " as in the paper" if temperature == papers else f" (the paper: {papers:g})"
        )
        sentences = [f"Sent at {heat}, with at most {room} an answer; {answers} to an item in each list."]
    if (
        settings.kind == "hf"
        and prompt.get("template") == "plain"
        and settings.options.get("template") != "plain"
    ):
        sentences.append(
            "The paper gave open chat models the text alone: write template: plain. A chat template would frame it, and as answers "
            "end at the first line break, a chat model's opening line (“Sure! Here is …”) would be taken for its answer."
        )
    return sentences
