"""Checks of the procedure and of eligibility beyond the schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from experiment.study.controls import check_between
from experiment.study.factors import CASE, SPACE
from experiment.study.format import key_name
from experiment.study.groups import asked_for_groups, check_groups, range_in
from experiment.study.questionnaires import (
    MATRIX,
    asked_on_screen,
    check_matrix,
    check_only,
    matrix_rows,
    scale_names,
)
from experiment.study.yaml_source import Faults, KeyPath, factor_settings
from experiment.trials import (
    ANSWERED,
    FRAME_MS,
    LASTING,
    NAME,
    NO_KEY,
    PARTWISE,
    RATED,
    STYLE,
    TYPES,
    UNANSWERED,
    answering_step,
    choice_settings,
    main_steps,
    name_of,
)
from stimuli.durations import milliseconds
from stimuli.errors import UserError
from stimuli.papers import papers

if TYPE_CHECKING:
    from experiment.study.study import Study

ASKED = ("questions", "practice", "block")
ONCE = ("consent", "full_screen", "screen_size", "debrief")
_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")
_ENDINGS = f"{', '.join(ANSWERED[:-1])} or {ANSWERED[-1]}"


def check_procedure(study: Study, faults: Faults) -> None:
    """Check the screens of a study against each other; errors are added to ``faults``."""
    faults.check(_check_once, study, reads=[("procedure",)])
    blocks = _blocks(study)
    whole = [("procedure", block) for block in blocks]
    for block, path in zip(blocks, whole, strict=True):
        for check in (_check_steps, _check_limits, _check_media, _check_feedback):
            faults.check(check, study, block, reads=[path])
        faults.check(_check_keys, study, block, faults, reads=[path])
        _check_scales(study, block, faults)
    faults.check(_check_alike, study, blocks, reads=whole)
    faults.check(check_between, study, faults, reads=[*factor_settings(), ("procedure",)])
    faults.check(
        check_groups, study, faults, reads=[("design", "between"), ("procedure",), ("participants",)]
    )
    faults.check(_check_step_levels, study, faults, reads=[*factor_settings(), ("procedure",)])
    for i, _ in enumerate(_screens(study)):
        faults.check(_check_practice, study, i, reads=[*factor_settings(), ("procedure", i)])
    _check_questions(study, faults)


def _screens(study: Study) -> list[Any]:
    """Return the screens, with empty ones for those that are not valid screens."""
    given = study.get("procedure")
    return (
        [screen if isinstance(screen, Mapping) else {} for screen in given] if isinstance(given, list) else []
    )


def _blocks(study: Study) -> list[int]:
    return [i for i, screen in enumerate(_screens(study)) if "block" in screen]


def _check_once(study: Study) -> None:
    screens = study.get("procedure")
    if not _blocks(study):
        raise UserError(
            f"{study.place('procedure')} has no block; a session shows its trials in one or more",
            mend="Add `- block: {trial: [...]}`.",
        )
    for kind in ONCE:
        places = [i for i, screen in enumerate(screens) if kind in screen]
        if len(places) > 1:
            raise UserError(f"{study.place('procedure', places[1], kind)}: a session has one {kind}")


def check_consent_first(study: Study) -> None:
    """Raise an error if a question precedes consent; checked at collection, because older studies must still open."""
    screens = _screens(study)
    consent = next((i for i, screen in enumerate(screens) if "consent" in screen), 0)
    for i, screen in enumerate(screens[:consent]):
        for kind, given in screen.items():
            if kind in ASKED or (isinstance(given, Mapping) and "questions" in given):
                raise UserError(
                    f"{study.place('procedure', i, kind)} comes before the consent; nobody is asked anything before agreeing",
                    mend="Move `- consent:` above it.",
                )


def _check_steps(study: Study, block: int) -> None:
    path = ("procedure", block, "block", "trial")
    steps = study.get(*path)
    _check_named(study, path, steps)
    own = main_steps(steps)
    _check_ending(study, study.place(*path), [next(iter(step)) for step in own])
    _check_restricted(study, path, own)


def _check_named(study: Study, path: KeyPath, steps: list[Mapping[str, Any]]) -> None:
    """Raise an error unless a trial's further answers have names of their own and follow its answer without a name."""
    answered: str | None = None
    names: set[str] = set()
    for i, step in enumerate(steps):
        (kind,) = step
        name, place = name_of(step), study.place(*path, i, kind)
        if name is None:
            if answered is not None and study.trial_type(kind).response is not None:
                raise UserError(
                    f"{place} is a second answering step without a name; a trial has one",
                    mend="Write name: confidence, for example: its answers are rows of their own.",
                )
            if names:
                raise UserError(
                    f"{place} follows {min(names)}, a step with a name, which only further answers follow",
                    mend=f"Move {kind} above it, or give it a name if it takes an answer.",
                )
            answered = kind if study.trial_type(kind).response is not None else answered
            continue
        place = study.place(*path, i, kind, NAME)
        if answered is None:
            raise UserError(
                f"{place} is {name!r}, and no answering step without a name comes before it",
                mend="Take name out: the first answer of a trial has none.",
            )
        taken = {*TYPES, *study.own_types}
        if name in names or name in taken:
            raise UserError(
                f"{place} is {name!r}, which is {'a trial type' if name in taken else 'the name of another step'}",
                mend="Give it a name of its own, such as confidence.",
            )
        names.add(name)


def _check_ending(study: Study, place: str, kinds: list[str]) -> None:
    earlier = [study.trial_type(kind).response for kind in kinds[:-1]]
    if any(earlier) or (kinds[-1] in UNANSWERED and len(kinds) > 1):
        own = [name for name, declared in study.own_types.items() if declared.response is not None]
        endings = [*ANSWERED, *own]
        raise UserError(
            f"{place} has the steps {', '.join(kinds)}; one trial ends in at most one {', '.join(endings[:-1])} or {endings[-1]}"
        )
    twice = next((kind for kind in kinds if kind in study.own_types and kinds.count(kind) > 1), None)
    if twice is not None:
        raise UserError(
            f"{place} has the step {twice} twice, and its fields have one column each",
            mend="Let a trial have one step of each own type.",
        )
    if kinds[-1] in LASTING:
        raise UserError(
            f"{place} ends with a {kinds[-1]}", mend="Let a target follow: `- choose: {show: …, keys: …}`."
        )


def _check_restricted(study: Study, path: KeyPath, steps: list[Mapping[str, Any]]) -> None:
    """Raise an error unless every trial is complete without the steps that only some trials have."""
    restricted = [i for i, step in enumerate(steps) if "only" in next(iter(step.values()))]
    for i in restricted:
        ((kind, settings),) = steps[i].items()
        only, place = settings["only"], study.place(*path, i, kind, "only")
        share = _SHARE.fullmatch(only) if isinstance(only, str) and only.endswith("%") else None
        if isinstance(only, str) and only.endswith("%") and not (share and 0 < float(share[1]) < 100):
            raise UserError(
                f"{place} is {only!r}; a share lies between 0% and 100%",
                mend="Write it like 33%, or leave `only` out for all trials.",
            )
    for n_missing in range(1, len(restricted) + 1):
        for missing in combinations(restricted, n_missing):
            left = [next(iter(step)) for i, step in enumerate(steps) if i not in missing]
            without = " and ".join(next(iter(steps[i])) for i in missing)
            place = f"{study.place(*path)}: a trial without the step {without}"
            if not left:
                raise UserError(
                    f"{place} shows nothing", mend="Let a step without `only` come first, such as `- read:`."
                )
            _check_ending(study, place, left)


def _check_keys(study: Study, block: int, faults: Faults) -> None:
    path = ("procedure", block, "block", "trial")
    for i, step in enumerate(study.get(*path)):
        if choice_settings(step):
            faults.check(_check_keys_apart, study, (*path, i, *step, "keys"))


def rated_blocks(study: Study) -> list[bool]:
    """Return for each block whether its trials end with a rating."""
    ends = (
        answering_step(study.get("procedure", block, "block", "trial", default=[{}]))
        for block in _blocks(study)
    )
    return [not set(RATED).isdisjoint(end) for end in ends]


MOST_BUTTONS = 21


def _check_scales(study: Study, block: int, faults: Faults) -> None:
    steps = study.get("procedure", block, "block", "trial", default=[])
    for i, step in enumerate(steps if isinstance(steps, list) else []):
        for kind in RATED if isinstance(step, Mapping) else ():
            path = ("procedure", block, "block", "trial", i, kind)
            if isinstance(step.get(kind), Mapping) and faults.is_sound(path):
                faults.found += _scale_faults(partial(study.place, *path), step[kind])


def _scale_faults(place_of: Callable[[str], str], settings: Mapping[str, Any]) -> list[UserError]:
    """Return what is wrong with a scale beyond the schema; ``place_of`` a setting is its place in the study."""
    ends = [name for name in ("from", "to") if name in settings]
    is_slider = settings.get("as") == "slider"
    if "points" in settings:
        others = [*ends, *(name for name in ("low", "high") if name in settings)]
        faults = [
            UserError(
                f"{place_of(name)} is {settings[name]!r}, and the points of this scale have names",
                mend="Take it out, or write from: and to: instead of points:.",
            )
            for name in others
        ]
        if is_slider:
            place = place_of("as")
            faults += [
                UserError(
                    f"{place} is 'slider', and a slider has no points to name", mend="Write from: and to:."
                )
            ]
        if len(settings["points"]) > MOST_BUTTONS:
            place = place_of("points")
            faults += [_too_many(place, len(settings["points"]))]
        return faults
    if len(ends) < 2:
        return [
            UserError(
                f"{place_of('from')}: a rating needs a scale",
                mend="Write from: and to:, such as from: 1, to: 7, or points: with a name for each point.",
            )
        ]
    low, high = settings["from"], settings["to"]
    if low >= high:
        place = place_of("to")
        return [UserError(f"{place}: the scale goes from {low} to {high}; the first is the lower one")]
    if is_slider:
        return []
    faults = [
        UserError(
            f"{place_of(name)} is {settings[name]}; buttons have whole numbers",
            mend="Write a whole number, or as: slider.",
        )
        for name in ends
        if settings[name] != int(settings[name])
    ]
    if not faults and high - low >= MOST_BUTTONS:
        faults = [_too_many(place_of("to"), int(high - low) + 1)]
    return faults


def _too_many(place: str, points: int) -> UserError:
    return UserError(
        f"{place}: the scale has {points} points, and at most {MOST_BUTTONS} buttons fit on a screen",
        mend="Write as: slider with from: and to:, or a shorter scale.",
    )


def _check_keys_apart(study: Study, path: KeyPath) -> None:
    """Raise an error if two labels have the same key, in any spelling."""
    given = study.get(*path, default={})
    seen: dict[str, str] = {}
    for label, key in given.items() if isinstance(given, Mapping) else enumerate(given):
        name = key_name(key)
        if name in seen:
            where = study.place(*path, label)
            raise UserError(
                f"{where} is {str(key)!r}, and {seen[name]!r} is the same key",
                mend="Give each answer a different key; capitals and small letters are one key.",
            )
        seen[name] = str(key)


def _check_limits(study: Study, block: int) -> None:
    path = ("procedure", block, "block", "trial")
    for i, step in enumerate(study.get(*path)):
        kind, settings = next(iter(step.items()))
        _check_settings_together(kind, partial(study.place, *path, i, kind), settings)


def _check_media(study: Study, block: int) -> None:
    """Raise an error for a file that a step cannot show: one to mask, to restore, or to read part by part."""
    media = study.get("materials", "media", default={})
    path = ("procedure", block, "block", "trial")
    for i, step in enumerate(study.get(*path)) if media else ():
        ((kind, settings),) = step.items()
        if "choices" in media and choice_settings(step).get("answer_by") == "text":
            raise UserError(
                f"{study.place(*path, i, kind, 'answer_by')} is 'text', and the choices are pictures, which are no words",
                mend="Leave answer_by out: pictures are chosen by their letters and keys.",
            )
        show = settings.get("show", [])
        files = [name for name in ([show] if isinstance(show, str) else show) if name in media]
        for at_level in study.steps_at_all_levels(kind, settings) if files else ():
            by_part = kind == "read" and at_level.get("as", "whole") != "whole"
            if kind in ("prime", "recover") or by_part:
                raise UserError(
                    f"{study.place(*path, i, kind, 'show')} names {files[0]}, {_article(media[files[0]])}; "
                    f"{kind} shows texts",
                    mend="Show it in `read` (as a whole), `choose`, `rate` or `answer`.",
                )


def _article(kind: str) -> str:
    return f"an {kind} file" if kind[0] in "ai" else f"a {kind} file"


def _check_settings_together(kind: str, place_of: Callable[[str], str], settings: Mapping[str, Any]) -> None:
    """Raise an error if settings of a step exclude each other; ``place_of`` a setting is its place in the study."""
    limit, minimum = settings.get("time_limit"), settings.get("minimum")
    if limit and milliseconds(limit) <= 0:
        raise UserError(
            f"{place_of('time_limit')} is {limit!r}; nobody can answer in no time",
            mend="Leave it out for no limit.",
        )
    if limit and minimum and milliseconds(minimum) >= milliseconds(limit):
        raise UserError(
            f"{place_of('minimum')} is {minimum!r}, and time runs out after {limit!r}",
            mend="Let the minimum be well below the time limit.",
        )
    keys = settings.get("keys", ())
    waits = isinstance(keys, Mapping) and NO_KEY in keys.values()
    if settings.get("several"):
        _check_several(place_of, settings)
    if waits and not limit:
        raise UserError(
            f"{place_of('keys')}: a label is given by waiting (its key is {NO_KEY}), and no time runs out",
            mend="Give the step a time_limit, such as 1500 ms, or the label a key.",
        )
    if kind == "read":
        _check_reading(place_of, settings)
    for fault in _scale_faults(place_of, settings) if kind in RATED else ():
        raise fault
    if "for" in settings and "frames" in settings:
        raise UserError(
            f"{place_of('frames')}: give either `for:` (a time) or `frames:` (a number of frames)"
        )


def _check_several(place_of: Callable[[str], str], settings: Mapping[str, Any]) -> None:
    """Raise an error if labels of which any number is ticked cannot be told apart, or have settings of single ones."""
    keys = settings["keys"]
    taken = next(
        (
            str(key)
            for key in (keys.values() if isinstance(keys, Mapping) else keys)
            if key in ("enter", NO_KEY)
        ),
        None,
    )
    if taken is not None:
        raise UserError(
            f"{place_of('keys')} has the key {taken}, and "
            + ("Enter gives the ticked labels" if taken == "enter" else "waiting ticks nothing"),
            mend="Give the label another key.",
        )
    if settings.get("labels") == "balanced":
        raise UserError(
            f"{place_of('labels')} is 'balanced', and any number of the labels is right (several)",
            mend="Take one of them out.",
        )
    parted = (
        next((label for label in keys if "," in label or "|" in label), None)
        if isinstance(keys, Mapping)
        else None
    )
    if parted is not None:
        raise UserError(
            f"{place_of('keys')}: the label {parted!r} has a sign that separates several labels",
            mend="Write it without commas and bars.",
        )
    if settings.get("answer_by") == "text":
        raise UserError(
            f"{place_of('answer_by')} is 'text', and several choices are ticked by their letters",
            mend="Leave answer_by out.",
        )


OF_MODES = {
    "by": tuple(mode for mode in PARTWISE if mode != "maze"),
    "for": ("rsvp", "whole"),
    "per_letter": ("rsvp", "whole"),
    "blank": ("rsvp",),
    "keys": ("maze",),
    "wrong": ("maze",),
    "minimum": ("whole", "moving_window", "cumulative", "centred"),
}
"""Settings of `read` with the modes that have them."""


def _check_reading(place_of: Callable[[str], str], read: Mapping[str, Any]) -> None:
    """Raise an error if a way to read lacks a setting, or has one of another."""
    mode = read.get("as", "whole")
    if STYLE in read and mode == "maze":
        raise UserError(
            f"{place_of(STYLE)}: the words of a maze have one look",
            mend="Take style out, or show the text another way.",
        )
    for name, modes in OF_MODES.items():
        if name in read and mode not in modes:
            raise UserError(
                f"{place_of(name)} is {read[name]!r}, and the text is shown as {mode}",
                mend=f"Take {name} out, or show the text as: {' or '.join(modes)}.",
            )
    if mode == "maze":
        keys = read.get("keys")
        if not isinstance(keys, list) or len({key_name(key) for key in keys}) != 2 or len(keys) != 2:
            raise UserError(
                f"{place_of('keys' if 'keys' in read else 'as')} is {keys if keys else 'maze'!r}, and a maze has two keys",
                mend="Name the left and the right one: keys: [f, j].",
            )
        if not isinstance(read["show"], str):
            raise UserError(
                f"{place_of('show')} names {' and '.join(read['show'])}; a maze shows one field",
                mend="Name one field, whose foils are in the column `materials: distractors`.",
            )
    if "for" not in read and (mode == "rsvp" or "per_letter" in read):
        name = "per_letter" if "per_letter" in read else "as"
        raise UserError(
            f"{place_of(name)} is {read[name]!r}, and no time is given",
            mend="Say how long each part is shown, such as for: 200 ms.",
        )
    if "for" in read and "minimum" in read:
        raise UserError(
            f"{place_of('minimum')} is {read['minimum']!r}, and the text ends by itself (for: {read['for']})",
            mend="Take one of them out.",
        )
    for name in ("for", "blank"):
        if name in read and milliseconds(read[name]) < FRAME_MS:
            raise UserError(
                f"{place_of(name)} is {read[name]!r}, less than one frame of most screens ({FRAME_MS:.1f} ms)",
                mend="Give it a frame or more.",
            )


def _check_step_levels(study: Study, faults: Faults) -> None:
    """Check the settings of steps that levels of factors make."""
    setting_of: dict[tuple[str, str], str] = {}
    for factor, levels in study.step_levels.items():
        kind_of_factor = "between" if factor in study.between else "factors"
        for level, sets in levels.items():
            for kind, given in sets.items():
                at: KeyPath = ("design", kind_of_factor, factor, level, kind)
                if kind in (CASE, SPACE):
                    other = setting_of.setdefault((kind, ""), factor)
                    faults.check(_check_form, study, at, given, factor, other)
                    continue
                if kind == STYLE:
                    if "font" in given:
                        faults.check(_check_font, study, (*at, "font"))
                    for name in given:
                        _add_if_twice(
                            study, faults, (*at, name), factor, setting_of.setdefault((kind, name), factor)
                        )
                    continue
                steps = [
                    (block, step[kind])
                    for block in _blocks(study)
                    for step in main_steps(study.get("procedure", block, "block", "trial"))
                    if kind in step
                ]
                if not steps:
                    faults.found.append(
                        UserError(
                            f"{study.place(*at)}: no trial has a step {kind}",
                            mend=f"Add it to a block's `trial`, such as `- {kind}: {{…}}`.",
                        )
                    )
                for name in given:
                    _add_if_twice(
                        study, faults, (*at, name), factor, setting_of.setdefault((kind, name), factor)
                    )
                for _, settings in steps:
                    faults.check(
                        _check_settings_together, kind, partial(study.place, *at), {**settings, **given}
                    )


def _add_if_twice(study: Study, faults: Faults, at: KeyPath, factor: str, other: str) -> None:
    """Add an error for a setting that another factor sets as well."""
    if other != factor:
        faults.found.append(
            UserError(
                f"{study.place(*at)}: {other} sets {at[-1]} of {at[-2]} as well",
                mend="Let one factor set it, with a level for each combination.",
            )
        )


def _check_font(study: Study, at: KeyPath) -> None:
    """Raise an error for a font in which words and the dashes in their place differ in width."""
    steps = [step for block in _blocks(study) for step in study.get("procedure", block, "block", "trial")]
    for read in (
        read for step in steps if "read" in step for read in study.steps_at_all_levels("read", step["read"])
    ):
        if (
            read.get("as") in ("moving_window", "cumulative")
            and read.get(STYLE, {}).get("font", "mono") != "mono"
        ):
            raise UserError(
                f"{study.place(*at)} is {read[STYLE]['font']}, and the text is shown as {read['as']}: words would move, since "
                "they are not as wide as the dashes in their place",
                mend="Read the text as: whole, centred or rsvp, or take the font out.",
            )


def _check_form(study: Study, at: KeyPath, given: str, factor: str, other: str) -> None:
    """Raise an error for a form of the text that two factors set, or that leaves nothing of what trials need."""
    place = study.place(*at)
    if other != factor:
        raise UserError(
            f"{place}: {other} sets {at[-1]} as well",
            mend="Let one factor set it, with a level for each combination.",
        )
    if study.own is not None:
        raise UserError(
            f"{place}: items of {study.own[1].about} are about the look of letters",
            mend="Take the factor out, or use sentences or words of your own.",
        )
    steps = [step for block in _blocks(study) for step in study.get("procedure", block, "block", "trial")]
    mend = "Take the level out"
    if any("recover" in step for step in steps):
        raise UserError(
            f"{place} changes the form of texts that are typed as they should be (recover)",
            mend=f"{mend}, or ask a question.",
        )
    if given != "none":
        return
    if study.regions:
        raise UserError(
            f"{place}: a text without blanks has no words, and materials.regions names some",
            mend=f"{mend}, or regions.",
        )
    reads = [step["read"] for step in steps if "read" in step]
    if any(read.get("as", "whole") != "whole" and read.get("by", "word") == "word" for read in reads):
        raise UserError(
            f"{place}: a text without blanks cannot be read word by word",
            mend=f"{mend}, or read the text as: whole.",
        )


def _check_feedback(study: Study, block: int) -> None:
    settings = study.get("procedure", block, "block")
    feedback = settings.get("feedback", "none")
    place = study.place("procedure", block, "block", "feedback")
    if "feedback_for" in settings and feedback == "none":
        raise UserError(
            f"{study.place('procedure', block, 'block', 'feedback_for')}: the block gives no feedback",
            mend="Say which: feedback: late, accuracy or accuracy_and_late.",
        )
    (kind, step), *_ = answering_step(settings["trial"]).items()
    own = study.own_types.get(kind)
    is_unscored = own is not None and own.scorer is None
    if is_unscored and (feedback.startswith("accuracy") or settings.get("attention_checks")):
        name = "feedback" if feedback.startswith("accuracy") else "attention_checks"
        raise UserError(
            f"{study.place('procedure', block, 'block', name)} is {settings[name]!r}, and {kind} has no right answers",
            mend=f"Take it out, or give {kind} a scorer in its declaration.",
        )
    if own is not None and settings.get("attention_checks"):
        raise UserError(
            f"{study.place('procedure', block, 'block', 'attention_checks')}: no attention check can be made for {kind}, "
            "a trial type of this study",
            mend="Take it out, or add a block of check items of your own.",
        )
    further = next(filter(None, map(name_of, settings["trial"])), None)
    if feedback.startswith("accuracy") and further is not None:
        raise UserError(
            f"{place} is {feedback!r}, and readers would know whether they were right before they answer {further}",
            mend="Take it out; feedback: late shows that time ran out.",
        )
    if feedback.startswith("accuracy") and kind in UNANSWERED:
        raise UserError(
            f"{place} is {feedback!r}, and the block's trials ask nothing",
            mend=f"Let the trial end with {_ENDINGS}.",
        )
    if feedback.startswith("accuracy") and kind in RATED:
        raise UserError(
            f"{place} is {feedback!r}, and no rating is right or wrong",
            mend="Take it out; feedback: late tells that time ran out.",
        )
    keys = step.get("keys")
    if feedback.endswith("late") and isinstance(keys, Mapping) and NO_KEY in keys.values():
        raise UserError(
            f"{place} is {feedback!r}, and waiting is an answer of these trials",
            mend="Choose feedback: accuracy or none.",
        )
    if feedback.endswith("late") and "time_limit" not in step:
        raise UserError(
            f"{place} is {feedback!r}, and no time runs out: {kind} has no time limit",
            mend="Give it `time_limit:`, or choose feedback: accuracy or none.",
        )


def _check_alike(study: Study, blocks: list[int]) -> None:
    """Raise an error unless equal labels mean the same in all trials, and each set is in only one block."""
    steps = [(i, step) for i in blocks for step in study.get("procedure", i, "block", "trial")]
    choosing = [(i, choice_settings(step), name_of(step)) for i, step in steps]
    labelled = [one for one in choosing if isinstance(one[1].get("keys"), dict)]
    for (_, earlier, other_name), (i, later, name) in combinations(labelled, 2):
        swaps = [given.get("labels", "fixed") for given in (earlier, later)]
        is_same = list(earlier["keys"]) == list(later["keys"]) and swaps[0] == swaps[1]
        # labels of further answers that no list swaps mean what they say
        is_free = (name or other_name) and "balanced" not in swaps
        if not (is_same or is_free or earlier["keys"].keys().isdisjoint(later["keys"])):
            what = "step" if name or other_name else "block"
            raise UserError(
                f"{study.place('procedure', i, 'block')} has labels of an earlier {what} together with other labels, or "
                "swapped where that one does not swap them",
                mend=f"Give both {what}s the same labels in the same order, or entirely different labels.",
            )
    seen: dict[str, int] = {}
    for i in blocks:
        for name in study.get("procedure", i, "block", "sets", default=[]):
            if name in seen:
                raise UserError(
                    f"{study.place('procedure', i, 'block', 'sets')}: set {name!r} is in two blocks"
                )
            seen[name] = i


def _check_practice(study: Study, i: int) -> None:
    settings: Mapping[str, Any] = study.get("procedure", i).get("practice", {})
    share = settings.get("pass")
    if share and int(share.partition("%")[0]) > 100:
        raise UserError(
            f"{study.place('procedure', i, 'practice', 'pass')} is {share!r}; it lies between 0% and 100%"
        )
    with_rules = [keyword for paper in papers().values() for keyword in paper.practice]
    following = [block for block in _blocks(study) if block > i] or _blocks(study)[-1:]
    steps = study.get("procedure", following[0], "block", "trial", default=[{}]) if following else [{}]
    kind = next(iter(answering_step(steps)), "")
    own = study.own_types.get(kind)
    if kind in RATED or (own is not None and own.scorer is None):
        taken = (
            "ratings, of which none is right or wrong"
            if own is None
            else f"{kind}, which has no right answers"
        )
        for name in ("pass", "feedback"):
            if settings.get(name):
                raise UserError(
                    f"{study.place('procedure', i, 'practice', name)} is {settings[name]!r}, and the block that follows "
                    f"takes {taken}",
                    mend="Take it out.",
                )
    if "rule" in settings and all(study.get("materials", keyword) is None for keyword in with_rules):
        raise UserError(
            f"{study.place('procedure', i, 'practice', 'rule')}: only studies of {', '.join(with_rules)} practise a rule",
            mend="Give a file of practice items under `items:`.",
        )
    if settings.get("rule") in study.factors.get("task", {}):
        raise UserError(
            f"{study.place('procedure', i, 'practice', 'rule')}: {settings['rule']!r} is tested in this study",
            mend="Practise on a rule that is not tested.",
        )


def _check_questions(study: Study, faults: Faults) -> None:
    groups: list[KeyPath] = [
        ("procedure", i, "questions") for i, screen in enumerate(_screens(study)) if "questions" in screen
    ]
    for i, screen in enumerate(_screens(study)):
        path: KeyPath = ("procedure", i, "instructions")
        if isinstance(screen.get("instructions"), Mapping):
            faults.check(_check_criterion, study, path, reads=[path])
            groups += [(*path, "questions")] if "questions" in screen["instructions"] else []
    eligibility = ("participants", "eligible", "questions")
    groups += [eligibility] if study.get(*eligibility) else []
    # what is asked of everyone who comes later: eligibility first, questions about instructions never
    groups.sort(key=lambda path: path[0] != "participants")
    earlier = _built_in(study)
    named: set[str] = set()
    for path in groups:
        faults.check(_check_group, study, path, named, earlier, faults, reads=[path])


def _built_in(study: Study) -> dict[str, Mapping[str, Any]]:
    """Return the built-in questions of eligibility by name."""
    kinds = {"first_language": "choice", "age": "number"}
    asked = {*study.get("participants", "eligible", default={}), *asked_for_groups(study)}
    return {name: {"type": kind} for name, kind in kinds.items() if name in asked}


def _check_group(
    study: Study, path: KeyPath, named: set[str], earlier: dict[str, Mapping[str, Any]], faults: Faults
) -> None:
    """Check questions on one screen; ``earlier`` has the questions that they may depend on."""
    try:
        questions = asked_on_screen(study, study.get(*path))
    except UserError as unavailable:
        place = study.place(*path)
        raise UserError(f"{place}: {unavailable.message}", mend=unavailable.mend) from None
    n_answers = 0
    for name, given in questions.items():
        place = study.place(*path, name)
        answers = _check_names(study, place, name, given, named, faults)
        n_answers += len(answers)
        faults.check(_check_question, place, given)
        faults.check(_check_accept, place, given, path)
        if "only" in given and "instructions" in path:
            fault = f"{place}: questions about instructions are asked of everyone"
            faults.found.append(UserError(fault, mend="Take `only` out."))
        elif "only" in given:
            faults.found += check_only(place, given["only"], earlier)
        if "instructions" not in path:
            earlier |= dict.fromkeys(answers, given)
    if n_answers > MOST_ANSWERS:
        raise UserError(
            f"{study.place(*path)} has {n_answers} answers; a screen has at most {MOST_ANSWERS}",
            mend="Divide the questions between two screens.",
        )


def _check_names(
    study: Study, place: str, name: str, given: Mapping[str, Any], named: set[str], faults: Faults
) -> list[str]:
    """Check the rows of a matrix, and that answers and scores have names of their own; return the names of the answers.

    Of a table of rows with errors, the answers are unknown: ``NAME_`` stands for them.
    """
    answers, scores = [name], list[str]()
    if given["type"] == MATRIX:
        problems = list(check_matrix(study, place, name, given))
        faults.found += problems
        rows = [] if problems else matrix_rows(study, name, given)
        in_yaml = given.get("rows")
        answers = [row.name for row in rows] or (
            [f"{name}_{row}" for row in in_yaml] if isinstance(in_yaml, Mapping) else [f"{name}_"]
        )
        scales = scale_names(rows) if rows and "score" in given else []
        scores = [f"score {name}" if scale is None else f"score {name}_{scale}" for scale in scales]
        if "accept" in given and len(scales) > 1:
            fault = f"{place}: `accept` needs one score, and the rows have several scales"
            faults.found.append(UserError(fault, mend="Ask one scale."))
    for answer in dict.fromkeys((name, *answers, *scores)):
        if answer in named:
            what = "a score" if answer in scores else "a question"
            fault = f"{place}: {what} is called {answer.removeprefix('score ')!r} twice"
            faults.found.append(UserError(fault, mend="Give it another name."))
        named.add(answer)
    return answers


def _check_criterion(study: Study, path: KeyPath) -> None:
    """Raise an error for an invalid criterion on questions about instructions."""
    given = study.get(*path)
    for name in ("pass", "rounds", "if_failed"):
        if name in given and "questions" not in given:
            raise UserError(
                f"{study.place(*path, name)}: nothing is asked about these instructions",
                mend="Give them `questions:`, each with its correct answers under `accept:`.",
            )
    if not 0 < int(given.get("pass", "100%").rstrip("%")) <= 100:
        raise UserError(f"{study.place(*path, 'pass')} is {given['pass']!r}; it lies between 1% and 100%")


MOST_ANSWERS = 200
"""Answers of one screen that a server takes."""
_OF_KIND = {
    "rows": (MATRIX,),
    "points": (MATRIX,),
    "reversed": (MATRIX,),
    "score": (MATRIX,),
    "shuffle": ("choice", "several", MATRIX),
}
"""Settings of a question that only some types have."""


def _check_question(place: str, given: Mapping[str, Any]) -> None:
    kind = given["type"]
    for setting, kinds in _OF_KIND.items():
        if setting in given and kind not in kinds:
            raise UserError(
                f"{place}: a question of type {kind} has no `{setting}:`",
                mend=f"Take it out, or choose the type {' or '.join(kinds)}.",
            )
    if kind in ("choice", "several") and "options" not in given:
        raise UserError(f"{place}: a question of type {kind} needs `options:`")
    if kind in ("scale", "slider") and not ("from" in given and "to" in given):
        raise UserError(f"{place}: a {kind} needs `from:` and `to:`")
    if "from" in given and "to" in given and given["from"] >= given["to"]:
        raise UserError(f"{place}: goes from {given['from']} to {given['to']}; the first is the lower one")


def _check_accept(place: str, given: Mapping[str, Any], path: KeyPath) -> None:
    """Raise an error unless questions on eligibility and instructions, and only these, specify accepted answers."""
    screening, about_instructions = path[0] == "participants", "instructions" in path
    if screening and "accept" not in given:
        raise UserError(
            f"{place}: a question of eligibility says which answers let a participant in (`accept:`)"
        )
    if about_instructions and "accept" not in given:
        raise UserError(f"{place}: a question about instructions says which answers are right (`accept:`)")
    if not (screening or about_instructions) and "accept" in given:
        raise UserError(
            f"{place}: only questions of eligibility and about instructions have answers that are accepted",
            mend="Move it under participants: eligible: questions: or instructions: questions:, or take `accept` out.",
        )
    if given["type"] == MATRIX:
        _check_score_accepted(place, given)
        return
    options = {str(option) for option in given.get("options", ())}
    accepts = given.get("accept", [])
    unknown = [
        accepted
        for accepted in (accepts if isinstance(accepts, list) else [accepts])
        if str(accepted) not in options
    ]
    if options and unknown:
        raise UserError(
            f"{place}: accept names {str(unknown[0])!r}, which is none of the options ({', '.join(map(str, given['options']))})"
        )


def _check_score_accepted(place: str, given: Mapping[str, Any]) -> None:
    """Raise an error unless a matrix that decides on taking part has one score, and a range of it."""
    if "accept" not in given:
        return
    if "score" not in given or range_in(given["accept"]) is None:
        raise UserError(
            f"{place}: of a matrix, a range of its score is accepted",
            mend="Add `score: mean` (or sum), and a range such as `accept: 3 to 5`.",
        )
