"""Says a study back in plain English: what is shown to whom, how often, how long it may take, and what models can give.

Minutes and tokens are rough and said to be: see :mod:`experiment.session_minutes`, and four characters a token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from experiment.checking.giving import giving_of, reads_with_encoder
from experiment.checking.needs import needs_of, refused_answers, replicates_alike
from experiment.checking.planned import planned_of
from experiment.checking.settings import model_settings
from experiment.checking.sizes import size_of
from experiment.describing.dollars import cost_words
from experiment.lists import items_of_list, list_ids, session_levels
from experiment.models.engines import use_remark
from experiment.models.planning import longest_prompt, needs_people, prompt_characters, tells_of_prompts
from experiment.models.prompts import read_step, wording_language
from experiment.models.settings import ModelSettings
from experiment.procedure import plan_session, trials_of
from experiment.session_minutes import Duration, length_in_words, minutes_in_words, session_duration
from experiment.study import Study
from experiment.study.factors import operation_families
from stimuli.item import Item
from stimuli.scramble import parse_operation

CHARACTERS_PER_TOKEN = 4
GIVES = {
    "hf": "log-probabilities of labels, surprisal of each word that is read, generated text, tokens",
    "hf encoder": "log-probabilities of labels, generated text, tokens; no surprisal, since an encoder reads in both directions",
    "openai": "text and tokens; log-probabilities of labels, and surprisal, only where its server tells them",
    "baseline": "labels only, drawn or fixed: a yardstick, not data",
}

CONTEXTS = {
    "independent": "each trial by itself behind the instructions",
    "session": "one conversation a session, with the feedback that a person gets",
    "teacher_forced": "for the log-likelihood of each answer that a person gave, behind that person's earlier ones",
}
PRACTICE = {"none": "", "shown": "behind solved practice", "answered": "after practice of its own"}
STRATEGIES = {
    "direct": "",
    "chain_of_thought": "thinking aloud before its answer",
    "unscramble_first": "about the text as it restored it before",
}
NO_RULE_ON_CHECKS = (
    "No rule on attention checks: a session with a missed check is flagged, stays in every analysis, and is left out only by "
    "a decision with a reason, made blind to condition and correctness."
)


@dataclass(frozen=True)
class Told:
    """A study in words (paragraphs) and in numbers (for ``--json``)."""

    paragraphs: tuple[str, ...]
    numbers: dict[str, Any]


def tell(
    study: Study,
    items: Sequence[Item],
    probes: Mapping[Any, Any] | None = None,
    speeds: Mapping[str, float] | None = None,
) -> Told:
    """Describe a study with the items that it has or would build.

    Parameters
    ----------
    study : Study
    items : sequence of Item
    probes : mapping, optional
        What probes of models found out (:func:`experiment.checking.giving.stored_probes`); where it is given, what the study
        asks of each model is held against what is known of it.
    speeds : mapping, optional
        Trials a second of models that have run (:func:`experiment.checking.sizes.stored_speeds`).
    """
    lists = list_ids(study, items)
    plan = plan_session(study, items, list_id=lists[0])
    trials = trials_of(plan)
    tested = [trial for trial in trials if not trial["is_practice"]]
    durations = _durations(study, items, lists, plan)
    longest = max(durations.values(), key=lambda one: one.minutes)
    models = {
        name: _model(study, items, name, settings, plan, trials) for name, settings in study.models.items()
    }
    if probes is not None:
        for name, told in models.items():
            told |= _held_against(study, name, plan, probes)
            told |= size_of(study, model_settings(study, name), plan, told["trials"], speeds or {})
    numbers = {
        "study": study.id,
        "items": len({(item.set_name, item.item_id) for item in items if item.role == "test"}),
        "lists": len(lists),
        "trials_per_session": len(tested),
        "practice_trials": len(trials) - len(tested),
        "trials_per_cell": _cells(study, items, lists),
        "minutes": round(longest.minutes, 1),
        "minutes_by_levels": {levels: round(one.minutes, 1) for levels, one in durations.items()},
        "minutes_that_limits_allow": round(longest.limits_allow, 1),
        "participants_wanted": study.get("participants", "wanted"),
        "models": models,
        "design_hash": study.design_hash,
    }
    paragraphs = (
        f"{study.title} ({study.id}, language {study.language}, seed {study.seed})",
        _materials(study, items),
        _design(study, numbers),
        _procedure(study, numbers),
        *_told_to_readers(plan),
        *_model_lines(models),
        _wording(study) if models else "",
        _left_out(study),
        _analysis(study),
    )
    return Told(tuple(p for p in paragraphs if p), numbers)


BESIDE_ITEMS = {"exemplar": "exemplar", "practice": "practice item", "filler": "filler"}
"""What items beside those of the test are called, by their role."""


def _materials(study: Study, items: Sequence[Item]) -> str:
    sets = list(dict.fromkeys(item.set_name for item in items if item.role == "test"))
    named = f" in {len(sets)} sets ({', '.join(sets)})" if len(sets) > 1 else ""
    roles: Counter[str] = Counter(
        role for role, _, _ in {(item.role, item.set_name, item.item_id) for item in items}
    )
    beside = [_counted(roles[role], noun) for role, noun in BESIDE_ITEMS.items() if roles[role]]
    *first, last = [f"{_counted(roles['test'], 'item')}{named}", *beside]
    told = f"{', '.join(first)} and {last}" if first else last
    lost = {(item.item_id, word["intact"]): word["reason"] for item in items for word in item.left_intact}
    words = "; ".join(
        f"{word!r} in {item_id} ({reason})" for (item_id, word), reason in list(lost.items())[:4]
    )
    more = f" and {len(lost) - 4} more" if len(lost) > 4 else ""
    left = f" Left intact in every condition, though meant to change: {words}{more}." if lost else ""
    return f"Materials: {told}.{left}"


def _design(study: Study, numbers: Mapping[str, Any]) -> str:
    if not study.factors:
        return f"Design: no factor; {_counted(numbers['lists'], 'list')}."
    cells = numbers["trials_per_cell"]
    per_cell = (
        f"{min(cells.values())}"
        if min(cells.values()) == max(cells.values())
        else f"{min(cells.values())} to {max(cells.values())}"
    )
    return (
        f"Design: {'; '.join(_factor(*factor) for factor in _levels_told(study).items())}. "
        f"{_counted(numbers['lists'], 'list')}; a session shows each condition {'once' if per_cell == '1' else f'{per_cell} times'}."
    )  # fmt: skip


ARMS_IN_WORDS = {
    "htest": {"none": "as it is", "Sub": "other letters in place of those of the text"},
    "letter_geometry": {
        "none": "as it is",
        "Sub": "other symbols in the question, of which no option is the result",
        "withhold": "the question left out",
    },
}


ITEMS_IN_WORDS = {
    "released": "the released items",
    "fresh": "further items by the making of the released ones, with the study's seed",
    "matched": "matched pairs by wrods' own rules",
}


def _levels_told(study: Study) -> dict[str, dict[str, Any]]:
    """Return the factors of a study; what is done to items with a factor of their own, in words."""
    if study.arms is None:
        return study.factors
    factor, levels = study.arms
    words = ARMS_IN_WORDS["htest" if study.get("materials", "htest") is not None else "letter_geometry"]
    return {**study.factors, factor: {level: InWords(words[does]) for level, does in levels.items()}}


class InWords(str):
    """What a level does, said already."""


def _factor(name: str, levels: Mapping[str, Any]) -> str:
    said = [
        f"{level} ({_operation(operation)})" for level, operation in levels.items() if operation is not None
    ]
    return f"{name} has the levels {', '.join(said) if said else ', '.join(levels)}; {next(iter(levels))} is the reference"


def _between(given: Mapping[str, Any]) -> str:
    """Say what a level between sessions sets."""
    said = [ITEMS_IN_WORDS[given["items"]]] if "items" in given else []
    if "exemplars" in given:
        said.append(_counted(given["exemplars"], "example") if given["exemplars"] else "no examples")
    if given.get("example_labels") == "shuffled":
        said.append("labels of examples shuffled, so that they tell nothing")
    said += [f"{new} in place of {old}" for old, new in given.get("texts", {}).items()]
    return ", ".join(said) or "as it is"


def _operation(operation: Any) -> str:
    if operation is None:
        return "as it is"
    if isinstance(operation, InWords):
        return operation
    if isinstance(operation, Mapping) and {"exemplars", "example_labels", "texts", "items"} & set(operation):
        return _between(operation)
    if isinstance(operation, Mapping) and "where" in operation:
        return "rows in which " + " and ".join(f"{c} is {v}" for c, v in operation["where"].items())
    if isinstance(operation, Mapping) and "demonstrations" in operation:
        return f"examples: {parse_operation(operation['demonstrations']).label}"
    if isinstance(operation, Mapping) and not operation_families() & set(operation):
        return ", ".join(f"{name} {value}" for name, value in operation.items())
    if operation == "withhold":
        return "the text withheld"
    if operation == "hand-made" or (isinstance(operation, Mapping) and set(operation) == {"column"}):
        return "made by hand"
    return parse_operation(operation).label


def _procedure(study: Study, numbers: Mapping[str, Any]) -> str:
    kinds = [next(iter(screen)) for screen in study.get("procedure")]
    runs = [(kind, sum(1 for _ in run)) for kind, run in groupby(kinds)]
    screens = [kind if many == 1 else _counted(many, kind) for kind, many in runs]
    practice = f" after {numbers['practice_trials']} of practice" if numbers["practice_trials"] else ""
    wanted = numbers["participants_wanted"]
    people = f" {wanted} participants are wanted." if wanted else ""
    allowed = numbers["minutes_that_limits_allow"]
    more = (
        f" Free answers count with up to a minute each; their time limits allow {minutes_in_words(allowed)} more."
        if allowed
        else ""
    )
    return (
        f"Procedure: {', '.join(screens)}. A session has {numbers['trials_per_session']:,} trials{practice}, roughly "
        f"{length_in_words(numbers['minutes_by_levels'])}.{more}{people}"
    )


def _durations(
    study: Study, items: Sequence[Item], lists: Sequence[int], plan: Mapping[str, Any]
) -> dict[str, Duration]:
    """Return how long a session is, by its levels between sessions."""
    found: dict[str, Duration] = {}
    for list_id in lists:
        levels = ", ".join(map(str, session_levels(study, items, list_id)["condition"].values()))
        if levels not in found:
            shown = plan if not found else plan_session(study, items, list_id=list_id)
            found[levels] = session_duration(shown)
    return found


def _told_to_readers(plan: Mapping[str, Any]) -> list[str]:
    """Say what is asked about the instructions, how practice is passed, and what blocks tell of answers."""
    said = []
    is_one = sum(screen["kind"] == "block" for screen in plan["screens"]) == 1
    for screen in plan["screens"]:
        asked = screen.get("comprehension")
        if asked:
            number, needed = len(screen["questions"]), asked["needed"]
            of_them = "all" if needed == number else f"{needed} of them"
            ends = "the session ends" if asked["if_failed"] == "end" else "the session goes on, flagged"
            said.append(
                f"Instructions are asked about: {_counted(number, 'question')}, {of_them} to be answered right within "
                f"{_counted(asked['rounds'], 'round')}; where they are not, {ends}."
            )
        elif screen["kind"] == "practice":
            passing = screen.get("pass")
            needed = (
                ""
                if passing is None
                else f"; {passing:.0%} have to be right within {_counted(screen['attempts'], 'attempt')}"
            )
            said.append(
                f"Practice ({_counted(len(screen['trials']), 'trial')}) {_feedback(screen['feedback'])}{needed}."
            )
        elif screen["kind"] == "block":
            every = screen["break_every"]
            checked = sum(trial["is_attention_check"] for trial in screen["trials"])
            parts = [
                f"{_counted(len(screen['trials']), 'trial')}",
                *([_counted(checked, "attention check") + " among them"] if checked else []),
                *([f"a break after every {every}"] if every else []),
            ]
            named = "The block" if is_one else f"Block {screen['name'] or screen['block']}"
            said.append(f"{named} ({', '.join(parts)}) {_feedback(screen['feedback'])}.")
    return [" ".join(said)] if said else []


def _feedback(given: Mapping[str, Any] | None) -> str:
    if given is None:
        return "gives no feedback"
    about = [
        *(["whether an answer was right"] if given["accuracy"] else []),
        *(["where time ran out"] if given["late"] else []),
    ]
    shown_for = "until the reader goes on" if given["for_ms"] is None else f"for {given['for_ms']} ms"
    return f"tells {' and '.join(about)}, {shown_for}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _model_lines(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        f"Model {name} ({told['use']}): {told['sessions']:,} sessions, {told['trials']:,} trials, roughly "
        f"{told['prompt_tokens']:,} prompt tokens; asked {told['how']}."
        + (f" {told['costs']}" if told["costs"] else "")
        + f" Gives {told['gives']}.{told['reads']}"
        + (f" Not yet: {told['remark']}" if told["remark"] else "")
        + "".join(f" {sentence}" for sentence in (*told.get("held_against", ()), *told.get("size", ())))
        for name, told in models.items()
    ]


def _held_against(
    study: Study, name: str, plan: Mapping[str, Any], probes: Mapping[Any, Any]
) -> dict[str, Any]:
    """Hold what a study asks and plans of a model against what is known of it, in numbers and in sentences."""
    settings = model_settings(study, name)
    asked = needs_of(study, settings, plan)
    longest = longest_prompt(study, settings, plan) if settings.kind == "hf" else None
    giving = giving_of(settings, asked, probes, longest)
    planned = planned_of(study, settings, name, plan, giving)
    alike = replicates_alike(study, settings)
    said = [f"Asked of it: {'; '.join(one.because for one in asked) or 'text alone'}."]
    if giving.known_from is None:
        said.append(giving.remark or "")
    elif giving.gaps:
        said.append(f"By {giving.known_from}: {' '.join(giving.gaps)}")
    else:
        said.append(f"By {giving.known_from} it gives all of that.")
    said += [f"Planned analysis {one.name} has nothing of it: {one.lack}." for one in planned if one.lack]
    said += [f"Planned analysis {one.name}: {one.proviso}." for one in planned if one.proviso]
    said += [f"{alike}."] if alike else []
    refused = refused_answers(study, settings)
    said += [f"A run refuses it: {refused}."] if refused else []
    return {
        "asked": {one.need: one.because for one in asked},
        "known_from": giving.known_from,
        "gaps": list(giving.gaps),
        "planned": {
            one.name: {"measure": one.measure, "lack": one.lack, "proviso": one.proviso} for one in planned
        },
        "held_against": [one for one in said if one],
    }


def _wording(study: Study) -> str:
    used = wording_language(study.language)
    if used == study.language.split("-")[0]:
        return ""
    return f"Models are asked for their answer in English: wrods has no wordings in {study.language!r} yet."


def has_checks(study: Study) -> bool:
    """Say whether a study's blocks hold instructed-response checks."""
    blocks = (screen.get("block") for screen in study.get("procedure", default=[]))
    return any(isinstance(block, Mapping) and block.get("attention_checks") for block in blocks)


def _left_out(study: Study) -> str:
    """Say which rows are in no analysis, and which sessions may be left out by a rule."""
    given = study.get("analysis", "exclude", default={})
    said = [
        f"{unit} with {measure} {bounds}"
        for unit in ("trials", "regions")
        for measure, bounds in given.get(unit, {}).items()
    ]
    rules = [f"{sign} {bound}" for sign, bound in given.get("sessions", {}).items()]
    told = [f"Left out of analyses, never deleted: {'; '.join(said)}."] if said else []
    if rules:
        told.append(f"Sessions that the dashboard may exclude by a declared rule: {'; '.join(rules)}.")
    if has_checks(study) and "attention_checks_failed" not in given.get("sessions", {}):
        told.append(NO_RULE_ON_CHECKS)
    return " ".join(told)


def _analysis(study: Study) -> str:
    planned = study.get("analysis", "planned", default={})
    if not planned:
        return "Analysis: nothing is planned; all of the report will be exploratory."
    said = []
    for name, plan in planned.items():
        contrasts = f" ({'; '.join(plan['contrasts'])})" if plan.get("contrasts") else ""
        measure = plan["measure"] if isinstance(plan["measure"], str) else "their own measure"
        said.append(f"{name}: {measure} by {plan['compare']}{contrasts} between {', '.join(plan['between'])}")
    return (
        f"Planned analyses: {'; '.join(said)}. Defaults: two-sided, alpha .05, Holm over the readers compared in one contrast, "
        "random structure as the design justifies, reduced by a stated rule."
    )


def _cells(study: Study, items: Sequence[Item], lists: Sequence[int]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for item in items_of_list(study, items, lists[0]):
        counts[", ".join(item.condition.values()) or "all"] += 1
    return dict(counts)


def _first_lists(study: Study, items: Sequence[Item], lists: Sequence[int]) -> list[int]:
    """Return the first list of each combination of levels between sessions: prompts of others are as long."""
    found: dict[tuple[str, ...], int] = {}
    for list_id in lists:
        found.setdefault(tuple(session_levels(study, items, list_id)["condition"].values()), list_id)
    return list(found.values())


def _model(
    study: Study,
    items: Sequence[Item],
    name: str,
    settings: Mapping[str, Any],
    plan: Mapping[str, Any],
    trials: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    lists = list_ids(study, items, label_maps=study.get("models", "label_maps", default="balanced"))
    times = study.get("models", "prompt_variants", default=1) * study.get("models", "replicates", default=1)
    options = {key: value for key, value in settings.items() if key != "use"}
    model = ModelSettings(settings["use"], options, study.folder)
    plans = [
        plan,
        *(plan_session(study, items, list_id=one) for one in _first_lists(study, items, lists)[1:]),
    ]
    counted = [prompt_characters(study, model, one) for one in plans]
    asked, characters, tokens = (sum(numbers) / len(plans) for numbers in zip(*counted, strict=True))
    sessions = (study.get("participants", "wanted", default=1) if needs_people(study) else len(lists)) * times
    answered, read = round(sessions * asked), int(characters * sessions // CHARACTERS_PER_TOKEN)
    return {
        "use": settings["use"],
        "sessions": sessions,
        "trials": answered,
        "prompt_tokens": read,
        "costs": cost_words(model, answered, read, round(sessions * tokens)),
        "gives": GIVES.get(_kind(study, name), "what its package says"),
        "how": _how(study, settings),
        "reads": _reads(settings, trials),
        "remark": use_remark(settings["use"], study.folder, settings),
    }


def _kind(study: Study, name: str) -> str:
    """Return the kind of a model; one on this machine that reads with an encoder is a kind of its own."""
    settings = model_settings(study, name)
    return "hf encoder" if settings.kind == "hf" and reads_with_encoder(settings) else settings.kind


def _how(study: Study, settings: Mapping[str, Any]) -> str:
    """Say in which context, after which practice and by which strategy a model is asked."""
    strategy = settings.get("strategy", study.get("models", "strategy", default="direct"))
    context = study.get("models", "context", default="independent")
    practice = study.get("models", "practice", default="answered" if context == "session" else "none")
    judge = settings.get("judge")
    said = [
        CONTEXTS[context],
        *([PRACTICE[practice]] if context != "teacher_forced" else []),
        STRATEGIES[strategy],
    ]
    if judge:
        said.append(f"{judge} reads what it thinks")
    if needs_people(study):
        said.append("with list, order and labels of each person who has finished")
    return ", ".join(part for part in said if part)


def _reads(settings: Mapping[str, Any], trials: Sequence[Mapping[str, Any]]) -> str:
    """Say what a model does not give for texts that are read."""
    kind = settings["use"].split(":")[0]
    if tells_of_prompts(kind, settings) or not any(read_step(trial) for trial in trials):
        return ""
    only = any(trial["trial_type"] == "read" and not trial["is_practice"] for trial in trials)
    more = " Trials in which a text is only read are left out for it." if only else ""
    if kind == "baseline":
        return f" It tells no surprisal of what is read.{more}"
    return (
        " Surprisal of what is read comes only from a server that tells log-probabilities of prompts; from any other the "
        f"regions table has no rows of it.{more}"
    )
