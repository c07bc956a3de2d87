"""The plan of a session, the same for participants and models: one pass over a procedure with trial index, labels, balanced order."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Literal

from experiment.lists import (
    ITEM_COLUMNS,
    KEY_OF_NAMED,
    SessionPlace,
    block_items,
    blocks_of,
    is_shown_at,
    items_of_list,
    label_map_of,
    labels_of_classes,
    list_ids,
    ordered,
    session_levels,
)
from experiment.media import remember_files
from experiment.parsing.label_sets import answers_in
from experiment.procedure.questions import (
    TRIAL_FIELD,
    comprehension_screen,
    device_rules,
    eligibility_questions,
    make_question,
    seen_question,
    shuffled,
    steps_of_question,
)
from experiment.procedure.steps import (
    LINE_LENGTH,
    SessionLabels,
    SharedBySteps,
    block_feedback,
    make_step,
    practice_feedback,
    regions_read,
    with_options,
)
from experiment.shown_steps import ShownSteps, style_of
from experiment.study import Study
from experiment.study.controls import LABELS_SHUFFLED
from experiment.study.groups import groups_of
from experiment.study.questionnaires import asked_on_screen
from experiment.study.texts import StudyText
from experiment.trials import (
    CHOSEN,
    NO_KEY,
    OWN_TYPE,
    RATED,
    STYLE,
    TYPED,
    UNANSWERED,
    answering_step,
    choice_settings,
    main_steps,
    name_of,
    scale_of,
)
from stimuli.durations import milliseconds
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.seeds import generator, stable_seed

PlannedTrial = dict[str, Any]
STEP_NAME = "step_name"
"""Entry of the planned trial of a further answer, which follows the trial that it is about: the name of its step."""
Screen = dict[str, Any]
FIXATION_MS, INTERVAL_MS = 500, 400
CHARACTER_MM = 3.0
RULE = "rule"
"""Suffix of the trial that asks for the rule of a set."""
CHECKS = "attention checks"
CHECK_FIELD = "text"
CHECK_WORDS = 4
"""Number of words that checks can ask for."""
CHECK_NUMBERS = (12, 98)
"""Least and greatest number that a check asks for in a block whose answers are numbers."""

Plan = dict[str, Any]
SEEN_OF_PLAN = (
    "study",
    "title",
    "language",
    "items_language",
    "version",
    "list_id",
    "order_row",
    "if_interrupted",
    "withdraw_until",
    "display",
    "assistive_input",
)
SEEN_OF_TRIAL = (
    "trial_index",
    "block",
    "trial_type",
    "is_practice",
    "is_filler",
    "is_attention_check",
    STEP_NAME,
    "exemplars",
    "fixation_ms",
    "interval_ms",
    "steps",
)
HIDDEN_OF_STEP = ("responses", "read_as", "decimal")


def asked_of(trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    """Return the trials that ask for an answer, or for a word at each step of a maze, without their further answers."""
    return [
        trial
        for trial in trials
        if STEP_NAME not in trial
        and (trial["trial_type"] not in UNANSWERED or trial["steps"][-1].get("as") == "maze")
    ]


def accepted(item: Item) -> list[str]:
    """Return the accepted answers of an item; none if only tests or people can judge."""
    if "tests" in item.key:
        return []
    others = [str(answer) for answer in item.key.get("answers", ())]
    return list(dict.fromkeys([*([] if item.answer is None else [item.answer]), *others]))


def right_answer(item: Item, step: Mapping[str, Any], *, is_mixed: bool) -> tuple[str | None, list[str]]:
    """Return an item's answer to a block's answering step, and all accepted answers; none of a rating."""
    if not set(RATED).isdisjoint(step):
        return None, []
    by_hand = item.role == "practice" and not item.intact
    show = step.get("recover", {}).get("show", "")
    fields = [show] if isinstance(show, str) else show
    if "recover" not in step or by_hand or not (is_mixed or len(fields) > 1):
        return item.answer, accepted(item)
    intact = "\n\n".join(item.intact.get(name, item.shown.get(name, "")) for name in fields)
    return intact, [intact]


def worked_answer(exemplar: Item, study: Study, given: str | None = None) -> str:
    """Return a solved example's answer (as given, such as ``(B)``) as shown: after its worked solution."""
    answer = given or exemplar.answer or ""
    solution = exemplar.key.get("rationale")
    if not solution:
        return answer
    return f"{solution} {study.pack.texts['example_answer'].format(answer=answer)}"


class PlanBuilder:
    """The screens of one session.

    ``label_map``: assignment of labels to
    classes if labels are arbitrary names; 0 is as written; ``between``: the settings of the session's levels between sessions:
    ``condition`` and ``exemplars``.
    """

    def __init__(
        self,
        study: Study,
        items: Sequence[Item],
        place: SessionPlace,
        *,
        label_map: int,
        between: Mapping[str, Any],
    ) -> None:
        self.study = study
        self.items = items
        self.place = place
        self.lists = list_ids(study, items)
        self.between = between
        self.blocks = [study.get("procedure", place, "block") for place in blocks_of(study)]
        self.is_mixed = len({next(iter(answering_step(block["trial"]))) for block in self.blocks}) > 1
        self.shown_steps = ShownSteps(study, items)
        if study.media:
            remember_files(study.folder, items)
        self.labels = SessionLabels(_label_map(self.blocks, label_map))
        self.next_index = 0
        self.exemplars: dict[str, list[Item]] = {}
        for item in items:
            if item.role == "exemplar":
                self.exemplars.setdefault(item.set_name, []).append(item)

    def screens(self, *, is_whole: bool = True) -> list[Screen]:
        """Return every screen in order; those of eligibility follow consent, or come first without it.

        ``is_whole``: with what follows eligibility; otherwise only the debriefing does.
        """
        result: list[Screen] = []
        counts = {"practice": 0, "block": 0, "questions": 0, "comprehension": 0}
        procedure = self.study.get("procedure")
        if not is_whole:
            known = next((i + 1 for i, screen in enumerate(procedure) if "consent" in screen), 0)
            procedure = [*procedure[:known], *(one for one in procedure[known:] if "debrief" in one)]
        for screen in procedure:
            kind, value = next(iter(screen.items()))
            if kind in counts:
                counts[kind] += 1
            result.append(self._screen(kind, value, counts))
            if kind == "instructions" and isinstance(value, Mapping) and "questions" in value:
                counts["comprehension"] += 1
                result.append(comprehension_screen(self.study, counts["comprehension"], value))
        at = next((i + 1 for i, screen in enumerate(result) if screen["kind"] == "consent"), 0)
        return [self._in_order(screen) for screen in (*result[:at], *self._eligibility(), *result[at:])]

    def asked_as_trials(self, screens: Sequence[Screen]) -> list[Screen]:
        """Return screens with questions about the reader as blocks of fillers, numbered after all other trials, for models."""
        return [
            self._block_of_questions(screen)
            if screen["kind"] == "questions" and not screen["screening"] and not screen.get("comprehension")
            else screen
            for screen in screens
        ]

    def _block_of_questions(self, screen: Screen) -> Screen:
        shared = SharedBySteps(self.labels, language=self.study.language)
        trials = []
        for question in screen["questions"]:
            choices = tuple(option["label"] for option in question["options"] or ()) or None
            for name, (kind, settings, row) in steps_of_question(question).items():
                shown = {} if row is None else {TRIAL_FIELD: row}
                item = _item_of(self.study, name, screen["name"], "filler", shown, choices)
                made = make_step(kind, settings, item, [], shared)
                trials.append(
                    self._row(
                        item, screen["name"], {"trial": [{kind: settings}]}, [made], exemplars=[], order=[]
                    )
                )
        pauses = {"break_every": None, "break_minimum_ms": 0, "feedback": None}
        return {"kind": "block", "block": screen["name"], "name": None, **pauses, "trials": trials}

    def _screen(self, kind: str, value: Any, counts: Mapping[str, int]) -> Screen:
        if kind in ("consent", "debrief"):
            text = self._text(value)
            return {"kind": kind, "html": text.html, "text": text.text, "version": text.version}
        if kind == "instructions":
            return self._instructions(value)
        if kind == "practice":
            return self._practice(value, f"practice-{counts['practice']}", self._block_after(counts["block"]))
        if kind == "questions":
            asked = asked_on_screen(self.study, value)
            return {
                "kind": kind,
                "name": f"questions-{counts['questions']}",
                "screening": False,
                "questions": [make_question(self.study, name, given) for name, given in asked.items()],
            }
        if kind == "break":
            return self._break(value)
        if kind == "full_screen":
            return {"kind": kind}
        if kind == "screen_size":
            return {"kind": kind, "character_mm": float(value.get("character_mm", CHARACTER_MM))}
        return self._block(value, counts["block"])

    def _in_order(self, screen: Screen) -> Screen:
        """Return a screen with its questions in the session's order of options and rows."""
        if "questions" not in screen:
            return screen
        seed, key = self.study.seed, self.place.session_key
        draws = [
            generator(seed, "order of a question", question["name"], key) for question in screen["questions"]
        ]
        return {**screen, "questions": list(map(shuffled, screen["questions"], draws))}

    def _text(self, name: str) -> StudyText:
        """Return a text of the procedure, or the session levels' replacement."""
        return self.study.text(self.between.get("texts", {}).get(name, name))

    def _eligibility(self) -> list[Screen]:
        screens: list[Screen] = []
        rules = device_rules(self.study)
        if rules is not None:
            screens.append({"kind": "device", **rules})
        held = self.between["condition"]
        questions, groups = eligibility_questions(self.study, held=held), groups_of(self.study)
        if questions:
            screen: Screen = {"kind": "questions", "name": "eligibility", "screening": True}
            if groups:
                is_known = any(one["condition"].items() <= held.items() for one in groups)
                screen |= {"is_answered": True} if is_known else {"groups": groups}
            screens.append({**screen, "questions": questions})
        return screens

    def _instructions(self, value: Any) -> Screen:
        given = value if isinstance(value, Mapping) else {"pages": value}
        names = [given["pages"]] if isinstance(given["pages"], str) else given["pages"]
        texts = [self._text(name) for name in names]
        minimum = milliseconds(given["minimum"]) if "minimum" in given else 0
        pages = [{"html": t.html, "text": t.text, "version": t.version, "minimum_ms": minimum} for t in texts]
        return {"kind": "instructions", "pages": pages}

    def _break(self, value: Any) -> Screen:
        given = {"text": value} if isinstance(value, str) else dict(value or {})
        text = self._text(given["text"]) if "text" in given else None
        return {
            "kind": "break",
            "html": None if text is None else text.html,
            "text": None if text is None else text.text,
            "minimum_ms": milliseconds(given["minimum"]) if "minimum" in given else 0,
        }

    def _block_after(self, blocks: int) -> Mapping[str, Any]:
        """Return the block that a practice screen prepares for: the next one, or the last."""
        block: Mapping[str, Any] = self.blocks[min(blocks, len(self.blocks) - 1)]
        return block

    def _practice(self, settings: Mapping[str, Any], name: str, block: Mapping[str, Any]) -> Screen:
        held = self.between["condition"]
        items = [
            item
            for item in self.items
            if item.role == "practice" and item.set_name == name and is_shown_at(item, held)
        ]
        share, _, last = str(settings.get("pass", "")).partition("%")
        of_last = int(last.removeprefix(" of last ")) if last else None
        trials = [trial for item in items for trial in self._trials_of(item, name, block)]
        if of_last is not None and of_last > len(asked_of(trials)):
            raise UserError(
                f"{name}: {settings['pass']!r} is about {of_last} trials, and practice asks {len(asked_of(trials))}",
                mend="Add practice items, or name fewer trials.",
            )
        return {
            "kind": "practice",
            "block": name,
            "feedback": practice_feedback(settings, self.study, block),
            "pass": int(share) / 100 if share else None,
            **({} if of_last is None else {"of_last": of_last}),
            "attempts": settings.get("attempts", 1),
            "trials": trials,
        }

    def _block(self, settings: Mapping[str, Any], number: int) -> Screen:
        chosen = block_items(
            self.study,
            items_of_list(self.study, self.items, self.place.list_id),
            number - 1,
            self.place.list_id,
        )
        sequence = ordered(
            self.study,
            chosen,
            settings,
            self.place,
            place_among_lists=self.lists.index(self.place.list_id) / len(self.lists),
        )
        name = f"block-{number}"
        return {
            "kind": "block",
            "block": name,
            "name": settings.get("name"),
            "break_every": settings.get("break_every"),
            "break_minimum_ms": milliseconds(settings["break_minimum"]) if "break_minimum" in settings else 0,
            "feedback": block_feedback(settings, self.study),
            "trials": self._trials(sequence, settings, name),
        }

    def _trials(self, sequence: Sequence[Item], settings: Mapping[str, Any], name: str) -> list[PlannedTrial]:
        """Return a block's trials: its items in order with checks among them, and the rule question after each set."""
        draw = generator(
            self.study.seed, "attention checks", name, self.place.list_id, self.place.session_key
        )
        wanted = settings.get("attention_checks", 0)
        step = answering_step(settings["trial"])
        labels = self._labels_of_checks(step, sequence)
        made = make_checks(wanted, step, labels, self.study, draw)
        before: dict[int, list[tuple[Item, str]]] = {}
        for place, check in zip(check_places(wanted, len(sequence), draw), made, strict=True):
            before.setdefault(place, []).append(check)
        last = {item.set_name: place for place, item in enumerate(sequence)}
        trials: list[PlannedTrial] = []
        for place, item in enumerate(sequence):
            trials += [self._check(*check, step, labels, name, settings) for check in before.get(place, ())]
            trials += self._trials_of(item, name, settings)
            if "state_rule" in settings and last[item.set_name] == place:
                trials.append(self._rule(item, name, settings))
        return trials + [
            self._check(*check, step, labels, name, settings) for check in before.get(len(sequence), ())
        ]

    def _labels_of_checks(self, step: Mapping[str, Any], sequence: Sequence[Item]) -> list[str]:
        """Return the possible answers of a check: the block's labels, the letters of the items' options, the ends of a slider."""
        ((kind, settings),) = step.items()
        if kind in RATED:
            scale = scale_of(settings)
            return list(scale["labels"] or (str(scale[end]) for end in ("from", "to")))
        keys = choice_settings(step).get("keys")
        if keys is None or isinstance(keys, dict):
            return [label for label, key in (keys or {}).items() if key != NO_KEY]
        if choice_settings(step).get("answer_by", "letter") == "text" and sequence and sequence[0].choices:
            return list(sequence[0].choices)
        return list(string.ascii_uppercase[: len(keys)])

    def _check(
        self,
        item: Item,
        wanted: str,
        step: Mapping[str, Any],
        labels: Sequence[str],
        block: str,
        settings: Mapping[str, Any],
    ) -> PlannedTrial:
        length, language = settings.get("line_length", LINE_LENGTH), self.study.language
        made = check_step(step, item, labels, line_length=length, language=language)
        unlike = {"item_id": f"{block} {item.item_id}", "answer": wanted, "accepted": [wanted]}
        return self._row(item, block, settings, [made], exemplars=[], order=[]) | unlike

    def _rule(self, item: Item, block: str, settings: Mapping[str, Any]) -> PlannedTrial:
        """Return the trial that asks for the rule of the set that has just ended; its answers are judged by people."""
        rule_settings = {"multiline": True, **settings["state_rule"]}
        shared = SharedBySteps(self.labels, language=self.study.language)
        made = make_step("answer", rule_settings, item, [], shared)
        row = self._row(item, block, settings, [made], exemplars=self._exemplars(item, settings), order=[])
        unlike: PlannedTrial = {
            "item_id": f"{item.set_name} {RULE}",
            "answer": None,
            "accepted": [],
            "is_filler": True,
            "shown": {},
            "intact": {},
        }
        return row | unlike

    def _trials_of(self, item: Item, block: str, settings: Mapping[str, Any]) -> list[PlannedTrial]:
        """Return an item's trial, and after it one for each further answer, if the trial asks for its own."""
        trial = self._trial(item, block, settings)
        if trial["trial_type"] != next(iter(answering_step(settings["trial"]))):
            return [trial]
        named = [step for step in settings["trial"] if name_of(step) is not None]
        return [
            trial,
            *(
                self._further(item, block, settings, step)
                for step in named
                for given in step.values()
                if self.shown_steps.has(given, item, self.between["condition"])
            ),
        ]

    def _further(
        self, item: Item, block: str, settings: Mapping[str, Any], step: Mapping[str, Any]
    ) -> PlannedTrial:
        """Return the trial of a further answer about an item; it follows at once."""
        name = str(name_of(step))
        answer = item.key.get(ITEM_COLUMNS, {}).get(f"{name}{KEY_OF_NAMED}")
        followed = {**settings, "fixation": "0 ms", "interval": "0 ms", "trial": [step]}
        trial = self._trial(item, block, followed)
        responses = trial["steps"][-1].get("responses")
        given = answers_in(answer) if trial["steps"][-1].get("several") else [answer]
        if answer is not None and responses and not set(given) <= set(responses):
            raise UserError(
                f"item {item.item_id!r}: {name}{KEY_OF_NAMED} is {answer!r}; the answers to {name} are {', '.join(responses)}",
                mend="Correct the cell, or leave it empty if no answer is correct.",
            )
        accepts = [] if answer is None else [answer]
        return trial | {STEP_NAME: name, "answer": answer, "accepted": accepts, "exemplars": []}

    def _trial(self, item: Item, block: str, settings: Mapping[str, Any]) -> PlannedTrial:
        order = self._choice_order(item, settings)
        place = self.place
        sides = generator(self.study.seed, "maze sides", item.item_id, place.list_id, place.session_key)
        shared = SharedBySteps(
            self.labels, settings.get("line_length", LINE_LENGTH), self.study.language, sides
        )
        condition = {**item.condition, **self.between["condition"]}
        at_levels = [
            (kind, self.study.step_at(kind, given, condition))
            for step in main_steps(settings["trial"]) or settings["trial"]
            for kind, given in step.items()
            if self.shown_steps.has(given, item, self.between["condition"])
        ]
        unfolded = [
            make_step(kind, given, item, order, shared, self.study.trial_type(kind))
            | ({STYLE: look} if (look := style_of(given, item)) else {})
            for kind, given in at_levels
        ]
        # a text that a condition withholds leaves no screen to read
        steps = [
            step for step in unfolded if step["step"] not in UNANSWERED or step["text"] or "media" in step
        ]
        row = self._row(item, block, settings, steps, exemplars=self._exemplars(item, settings), order=order)
        regions = next(
            (
                regions_read(given, step, item)
                for (kind, given), step in zip(at_levels, unfolded, strict=True)
                if kind == "read" and step["text"]
            ),
            None,
        )
        return row | {"regions": regions} if regions else row

    def _row(
        self,
        item: Item,
        block: str,
        settings: Mapping[str, Any],
        steps: list[dict[str, Any]],
        *,
        exemplars: list[dict[str, str | None]],
        order: list[int],
    ) -> PlannedTrial:
        index = self.next_index
        self.next_index += 1
        answering = answering_step(settings["trial"])
        answer, accepts = right_answer(item, answering, is_mixed=self.is_mixed)
        kind = steps[-1]["type"] if steps[-1]["step"] == OWN_TYPE else steps[-1]["step"]
        if kind != next(iter(answering)):  # the answering step is not among this trial's
            answer, accepts = None, []
        if steps[-1]["step"] == OWN_TYPE and steps[-1]["scorer"] is None:
            answer, accepts = None, []
        return {
            "trial_index": index,
            "block": block,
            "item_id": item.item_id,
            "set": item.set_name,
            "condition": {**item.condition, **self.between["condition"]},
            "trial_type": kind,
            "is_practice": item.role == "practice",
            "is_filler": item.role == "filler",
            "is_attention_check": item.role == "attention_check",
            "answer": answer,
            "accepted": accepts,
            "shown": dict(item.shown),
            "intact": dict(item.intact),
            "exemplars": exemplars,
            "choice_order": order,
            "fixation_ms": milliseconds(settings["fixation"]) if "fixation" in settings else FIXATION_MS,
            "interval_ms": milliseconds(settings["interval"]) if "interval" in settings else INTERVAL_MS,
            "steps": steps,
        }

    def _exemplars(self, item: Item, settings: Mapping[str, Any]) -> list[dict[str, str | None]]:
        """Return the solved examples of an item's set and condition, as many as the session shows."""
        fitting = [
            exemplar
            for exemplar in self.exemplars.get(item.set_name, [])
            if exemplar.condition.items() <= item.condition.items()
        ]
        chosen = fitting[: self.between.get("exemplars")]
        if self.between.get("example_labels") == LABELS_SHUFFLED:
            chosen = with_shuffled_labels(chosen, self.study.seed)
        return [self._solved(exemplar, settings) for exemplar in chosen]

    def _solved(self, exemplar: Item, settings: Mapping[str, Any]) -> dict[str, str | None]:
        """Return a solved trial as shown: its text, with its options if they have letters, and its label."""
        text = next(iter(exemplar.shown.values()))
        kind, answering = next(iter(answering_step(settings["trial"]).items()))
        choices = list(exemplar.choices or ())
        by_letter = (
            not isinstance(answering.get("keys"), dict) and answering.get("answer_by", "letter") == "letter"
        )
        is_option = kind == "answer" and answering.get("read_as") == "option"
        if kind == "answer" and not is_option:
            return {"text": text, "label": worked_answer(exemplar, self.study)}
        if not choices or not by_letter:
            answer, _ = right_answer(exemplar, answering_step(settings["trial"]), is_mixed=self.is_mixed)
            return {"text": text, "label": self.labels.shown.get(str(answer), answer)}
        right = None if exemplar.answer is None else string.ascii_uppercase[choices.index(exemplar.answer)]
        label = worked_answer(exemplar, self.study, f"({right})") if is_option else right
        return {"text": with_options(text, choices), "label": label}

    def _choice_order(self, item: Item, settings: Mapping[str, Any]) -> list[int]:
        order = list(range(len(item.choices or ())))
        if choice_settings(answering_step(settings["trial"])).get("choice_order") == "random":
            generator(
                self.study.seed, "choice_order", item.item_id, self.place.list_id, self.place.session_key
            ).shuffle(order)
        return order


def _label_map(blocks: Sequence[Mapping[str, Any]], label_map: int) -> dict[str, str]:
    """Return class → label shown; empty if labels come with the items."""
    shown: dict[str, str] = {}
    for block in blocks:
        for step in block["trial"]:
            settings = choice_settings(step)
            keys = settings.get("keys")
            if isinstance(keys, dict):
                shown |= labels_of_classes(
                    list(keys), label_map if settings.get("labels") == "balanced" else 0
                )
    return shown


def with_shuffled_labels(examples: Sequence[Item], seed: int) -> list[Item]:
    """Return the examples with labels exchanged for half of each of two classes, in the same order.

    Examples and labels are then unrelated, while texts, labels and their numbers equal those with correct labels.
    """
    classes = list(dict.fromkeys(example.answer for example in examples))
    other = dict(zip(classes, reversed(classes), strict=True))
    turned: set[str] = set()
    for answer in classes:
        own_examples = sorted(
            (example.item_id for example in examples if example.answer == answer),
            key=lambda name: stable_seed(seed, "labels of examples", name),
        )
        turned |= set(own_examples[: len(own_examples) // 2])
    return [
        replace(example, answer=other[example.answer]) if example.item_id in turned else example
        for example in examples
    ]


def make_checks(
    number: int, step: Mapping[str, Any], labels: Sequence[str], study: Study, draw: Random
) -> list[tuple[Item, str]]:
    """Return checks for a block, each with its requested answer."""
    ((kind, settings),) = step.items()
    if not number:
        return []
    texts = study.pack.texts
    words = [texts[f"check_word_{place}"] for place in range(1, CHECK_WORDS + 1)]
    made = []
    for place in range(1, number + 1):
        if settings.get("read_as") == "number":
            word = str(draw.randint(*CHECK_NUMBERS))
            text = texts["check_choose"].format(label=word)
        elif kind in TYPED:
            word = str(draw.choice(words))
            text = texts["check_typed"].format(word=word)
        else:
            word = str(draw.choice(list(labels)))
            text = texts["check_choose"].format(label=word)
        choices = tuple(labels) if kind in CHOSEN else None
        item = _item_of(study, f"check-{place}", CHECKS, "attention_check", {CHECK_FIELD: text}, choices)
        made.append((replace(item, answer=word), word))
    return made


def _item_of(
    study: Study,
    name: str,
    set_name: str,
    role: Literal["attention_check", "filler"],
    shown: Mapping[str, str],
    choices: tuple[str, ...] | None,
) -> Item:
    """Return an item that is made with the plan: a check, or a question about the reader."""
    return Item(
        item_id=name,
        set_name=set_name,
        role=role,
        condition={},
        shown=dict(shown),
        intact={},
        choices=choices,
        answer=None,
        provenance={
            "source": "wrods",
            "source_id": None,
            "split": None,
            "licence": None,
            "operation": "none",
            "seed": study.seed,
        },
    )


def check_step(
    step: Mapping[str, Any],
    item: Item,
    labels: Sequence[str],
    *,
    line_length: int = LINE_LENGTH,
    language: str = "en",
) -> dict[str, Any]:
    """Return the one step of a check: the block's answering step with the check's own text and no time limit."""
    (kind, settings), *_ = step.items()
    check_settings: dict[str, Any] = {"show": CHECK_FIELD}
    if kind in CHOSEN:
        keys = settings["keys"]
        if isinstance(keys, dict):
            keys = {label: key for label, key in keys.items() if label in labels}
        check_settings |= {"keys": keys, "answer_by": "text"}
    elif kind in RATED:
        scale = ("from", "to", "low", "high", "points", "as")
        check_settings |= {name: settings[name] for name in scale if name in settings}
    elif settings.get("read_as") == "number":
        check_settings["read_as"] = "number"
    names = SessionLabels({label: label for label in labels})
    shared = SharedBySteps(names, line_length, language)
    return make_step(kind, check_settings, item, range(len(labels)), shared)


def check_places(number: int, trials: int, draw: Random) -> list[int]:
    """Return the trials before which checks are shown: one in each equal section of the block, never first or adjacent."""
    if trials < 2 or number < 1:
        return [trials] * max(number, 0)
    places: list[int] = []
    for place in range(number):
        low = max(1, round(place * trials / number), (places[-1] + 1) if places else 1)
        high = max(low, round((place + 1) * trials / number) - 1)
        places.append(min(draw.randint(low, high), trials))
    return places


def plan_session(
    study: Study,
    items: Sequence[Item],
    *,
    list_id: int | None,
    session_key: str | None = None,
    order_row: int = 0,
    version: int = 1,
    is_of_model: bool = False,
) -> Plan:
    """Return the plan of one session of a study (the format is in ``docs/contracts.md``).

    Parameters
    ----------
    items : sequence of Item
        All built items of the study.
    list_id, session_key, order_row
        The session's place in the design (:class:`experiment.lists.SessionPlace`). Without a list, the plan ends with the
        questions that decide on the group of its reader.
    is_of_model
        Whether questions about the reader are trials, if the study asks models (``models: {questions: asked}``).
    """
    if list_id is None:
        open_place = SessionPlace(list_ids(study, items)[0], session_key)
        session = PlanBuilder(study, items, open_place, label_map=0, between={"condition": {}})
        plan = as_plan(session, session.screens(is_whole=False), version=version)
        return {**plan, "awaits_group": True, "list_id": None, "order_row": None, "label_map": {}}
    between = session_levels(study, items, list_id)
    if is_of_model:
        held = between["condition"].items()
        known = {factor: level for factor, level in held if factor not in study.of_people}
        between = {**between, "condition": known}
    session = PlanBuilder(
        study,
        items,
        SessionPlace(list_id, session_key, order_row),
        label_map=label_map_of(study, items, list_id),
        between=between,
    )
    screens = session.screens()
    if is_of_model and study.get("models", "questions") == "asked":
        screens = session.asked_as_trials(screens)
    return as_plan(
        session,
        screens,
        version=version,
        context=study.get("models", "context", default="independent"),
    )


def as_plan(
    session: PlanBuilder,
    screens: list[Screen],
    *,
    version: int,
    context: str = "independent",
) -> Plan:
    """Return the plan of a session that shows some screens."""
    study = session.study
    until = study.get("participants", "withdraw_until")
    return {
        "study": study.id,
        "title": study.shown_title,
        "language": study.language,
        **({} if study.items_language == study.language else {"items_language": study.items_language}),
        **({} if study.own_texts.wording is None else {"wording": study.own_texts.wording}),
        "version": version,
        "design_hash": study.design_hash,
        "list_id": session.place.list_id,
        "order_row": session.place.order_row,
        "label_map": dict(session.labels.shown),
        "prompt_variant": 1,
        "replicate": 1,
        "context": context,
        "published": sorted(study.published),
        "if_interrupted": if_interrupted(study),
        **({} if until is None else {"withdraw_until": until}),
        "display": {"polarity": study.get("display", "polarity", default="dark_on_light")},
        "assistive_input": bool(study.get("participants", "assistive_input", default=False)),
        **({"own_types": own} if (own := own_types_shown(session.study, screens)) else {}),
        "screens": screens,
    }


def own_types_shown(study: Study, screens: Sequence[Screen]) -> dict[str, Any]:
    """Return what a plan says about the own types of its steps, by name."""
    shown = {
        step["type"]
        for screen in screens
        for trial in screen.get("trials", ())
        for step in trial["steps"]
        if step["step"] == OWN_TYPE
    }
    return {name: study.own_types[name].in_plan() for name in sorted(shown)}


def if_interrupted(study: Study) -> dict[str, Any]:
    """Return the rule for abandoned sessions: ``then`` and, in ms, the time ``within`` which they may resume (null: any)."""
    given = study.get("participants", "if_interrupted", default={})
    within = given.get("within")
    return {"then": given.get("then", "resume"), "within_ms": milliseconds(within) if within else None}


def trials_of(plan: Mapping[str, Any]) -> list[PlannedTrial]:
    """Return all trials of a plan in order, practice included."""
    return [trial for screen in plan["screens"] for trial in screen.get("trials", [])]


def with_further_answers(trials: Sequence[PlannedTrial]) -> list[list[PlannedTrial]]:
    """Return each trial with those of its further answers."""
    groups: list[list[PlannedTrial]] = []
    for trial in trials:
        if STEP_NAME not in trial:
            groups.append([])
        groups[-1].append(trial)
    return groups


def participant_view(plan: Mapping[str, Any], *, is_preview: bool = False) -> Plan:
    """Return what a browser may know of a plan: the contents of its page, and the answers of practice trials only.

    A trial's item is left out with its answer key, because the item may be named after its answer (a word); so are the order of
    its choices and the meaning of its labels. Practice keeps answer and meanings, because the page shows feedback at once.
    Accepted answers to eligibility questions are left out.

    Parameters
    ----------
    is_preview : bool
        For the study's authors: no server scores, and blocks with feedback on accuracy keep correct answers.
    """
    plugins = {name: about["plugin"] for name, about in plan.get("own_types", {}).items()}
    return {name: plan[name] for name in SEEN_OF_PLAN if name in plan} | {
        **({"plugins": plugins} if plugins else {}),
        "screens": [_seen_screen(screen, is_preview) for screen in plan["screens"]],
    }


def _seen_screen(screen: Mapping[str, Any], is_preview: bool) -> dict[str, Any]:
    seen = dict(screen)
    if "trials" in screen:
        is_told = is_preview and bool(screen["feedback"])
        seen["trials"] = [_seen_trial(trial, is_told or trial["is_practice"]) for trial in screen["trials"]]
    seen.pop("groups", None)
    if "questions" in screen:
        seen["questions"] = [seen_question(question) for question in screen["questions"]]
    return seen


def _seen_trial(trial: PlannedTrial, is_told: bool) -> PlannedTrial:
    if is_told:
        return {name: trial[name] for name in (*SEEN_OF_TRIAL, "answer", "accepted") if name in trial}
    steps = [
        {name: part for name, part in step.items() if name not in HIDDEN_OF_STEP} for step in trial["steps"]
    ]
    return {name: trial[name] for name in SEEN_OF_TRIAL if name in trial} | {"steps": steps}
