"""A study for the rest of wrods: settings that passed the schema, its plans, and the training runs that it names.

A trained model is prompted like its base model, with the same options, unless the study sets others.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from analysis.plan import (
    KEYLESS,
    PlanContext,
    PlannedAnalysis,
    StudyPlan,
    faults_of,
    faults_of_coding,
    faults_of_families,
    read_plan,
    read_sign_rule,
)
from experiment.languages import OWN_FILE, Own, Pack, no_pack, read_own
from experiment.study.factors import GROUP, DesignCells, StepSettings, cross, levels_of
from experiment.study.format import validator
from experiment.study.texts import StudyText, read_text, version_of
from experiment.study.yaml_source import Faults, KeyPath, YamlSource, factor_settings
from experiment.trials import (
    NAME,
    RATED,
    STYLE,
    TYPES,
    TrialType,
    answering_step,
    main_steps,
    name_of,
    scale_of,
    trial_type,
)
from experiment.trials.own import OwnType, own_measures
from stimuli.errors import UserError, unknown_name
from stimuli.item import Item, read_items
from stimuli.papers import OwnFactor, Paper, own_factors

KIND = "tuned"
FOLDER = "tuning"
RECORD, CURVE = "tuning.json", "loss.csv"
"""Files of a training run: what is known about it, and its losses step by step."""
TASK, EACH = "task", "each"
NOT_INHERITED = frozenset({"use", "revision", "quantisation", "family", "parameters", "price", "cache"})
"""Options of a base model that do not apply to a model trained from it."""

FILE = "study.yaml"
ITEMS = "items.jsonl"

PLANNED = ("analysis", "planned")


class Trains(Protocol):
    """The part of a study that training runs need (:class:`experiment.study.Study` has it)."""

    @property
    def folder(self) -> Path:
        """The study's folder."""

    @property
    def own_factor(self) -> Mapping[str, Mapping[str, Any]]:
        """The factor that the material's items have by themselves, with its levels."""

    def get(self, *path: str | int, default: Any = None) -> Any:
        """Return a setting by its path, or the default."""


def given_trainings(study: Trains) -> dict[str, dict[str, Any]]:
    """Return the settings of each training run, by name; ``task: each`` is one run per task, named ``NAME-TASK``."""
    trainings: dict[str, dict[str, Any]] = {}
    for name, given in study.get("tuning", default={}).items():
        if given.get("task") == EACH and TASK in study.own_factor:
            trainings |= {
                f"{name}-{task}": {**given, "task": task, "entry": str(name)}
                for task in study.own_factor[TASK]
            }
        else:
            trainings[str(name)] = {**given, "entry": str(name)}
    return trainings


def training_folder(folder: Path, name: str) -> Path:
    """Return the folder of a training run."""
    return folder / FOLDER / name


def read_record(folder: Path) -> dict[str, Any]:
    """Return what a training has recorded; nothing where it has not begun."""
    try:
        record = json.loads((folder / RECORD).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as fault:
        raise UserError(
            f"{folder / RECORD} cannot be read: {fault}",
            mend=f"Remove {folder} to train again.",
        ) from fault
    return dict(record)


def as_trained(study: Trains, given: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a model's settings with ``use: tuned:NAME`` resolved; settings of other models unchanged.

    ``trained`` and ``base`` then name its training run and its base model in the study.
    """
    kind, _, name = str(given["use"]).partition(":")
    if kind != KIND:
        return dict(given)
    trainings = given_trainings(study)
    if name not in trainings:
        fault = unknown_name("training", name, trainings) if trainings else None
        raise UserError(
            f"{place}: {fault.message if fault else 'the study trains nothing'}",
            mend=fault.mend if fault else "Say under `tuning:` what is to be trained.",
        )
    base = str(trainings[name]["model"])
    models = study.get("models", "who", default={})
    if base not in models:
        raise UserError(
            f"{place}: training {name} names the model {base!r}, which is not under models: who",
            mend=unknown_name("model", base, models).mend if models else "Name the model there.",
        )
    inherited = {key: value for key, value in models[base].items() if key not in NOT_INHERITED}
    overrides = {key: value for key, value in given.items() if key != "use"}
    use = _use_of(study, name, str(models[base]["use"]))
    return {"use": use, **inherited, **overrides, "trained": name, "base": base}


def trained_name(folder: Path, name: str) -> str | None:
    """Return the name that a provider gave to a trained model; None if there is none yet."""
    try:
        record = json.loads((training_folder(folder, name) / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    model_name = record.get("model_name")
    return str(model_name) if model_name else None


def _use_of(study: Trains, name: str, base: str) -> str:
    """Return the kind and name under which a trained model runs, or will run."""
    if base.startswith("openai:"):
        return f"openai:{trained_name(study.folder, name) or f'{KIND}:{name}'}"
    return f"hf:{FOLDER}/{name}/model"


_COUNTED = re.compile(r"([0-9]+) (after|before) (\w+)")


class CountedRegion(NamedTuple):
    """A region of so many words after or before another one."""

    words: int
    side: str
    other: str


@dataclass(frozen=True)
class Study:
    """A study folder whose ``study.yaml`` is valid; built items are read on demand."""

    folder: Path
    source: YamlSource
    own_types: Mapping[str, OwnType] = field(default_factory=dict, compare=False)

    def trial_type(self, name: str) -> TrialType:
        """Return the declaration of one of the study's trial types, its own ones included."""
        return self.own_types.get(name) or trial_type(name)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as plain data."""
        return dict(self.source.data)

    def get(self, *path: str | int, default: Any = None) -> Any:
        """Return a setting by its path, or the default if it is missing."""
        value: Any = self.source.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return default
        return value

    def place(self, *path: str | int) -> str:
        """Return ``study.yaml, line N: path`` for an error about a setting."""
        return self.source.place(tuple(path))

    @property
    def id(self) -> str:
        """The study's id, which is in every row."""
        return str(self.source.data["study"])

    @property
    def title(self) -> str:
        """The study's title."""
        return str(self.source.data["title"])

    @property
    def shown_title(self) -> str:
        """The title for participants: a separate one if the study sets it, because a title may reveal the question."""
        return str(self.get("participants", "title", default=self.title))

    @property
    def language(self) -> str:
        """The language code, English by default."""
        return str(self.get("language", default="en"))

    @property
    def items_language(self) -> str:
        """The language of the items: that of the material if it has one, as H-TEST has, else the study's."""
        if self.own is None or not self.own[1].language:
            return self.language
        paper, own = self.own
        return str(paper.part(own.language)(self))

    @cached_property
    def own_texts(self) -> Own:
        """The texts of wrods and of the study's ``texts.json`` in its language."""
        return read_own(self.language, self.folder)

    @property
    def pack(self) -> Pack:
        """The participants' texts in the study's language."""
        if self.own_texts.pack is None:
            raise no_pack(self.language, self.place("language"))
        return self.own_texts.pack

    @property
    def seed(self) -> int:
        """The study seed."""
        return int(self.source.data["seed"])

    @property
    def published(self) -> frozenset[str]:
        """The parts copied from a paper bug for bug: any of items, prompts, scoring."""
        return frozenset(self.get("published", default=[]))

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """The models' settings by their name in the study; trained ones as they will run."""
        given = self.get("models", "who", default={})
        return {
            str(name): as_trained(self, settings, self.place("models", "who", name, "use"))
            for name, settings in given.items()
        }

    @cached_property
    def factors(self) -> dict[str, dict[str, Any]]:
        """Factor → level → operation, the reference level first; those between sessions come last.

        The items of some materials have a factor by themselves, such as H-TEST's task.
        """
        return {**self.factors_of_items, **self.between}

    @cached_property
    def between(self) -> dict[str, dict[str, Any]]:
        """The factors whose levels apply to a whole session."""
        given = self.get("design", "between", default={})
        return {str(factor): dict(levels) for factor, levels in given.items()}

    @cached_property
    def between_cells(self) -> list[dict[str, Any]]:
        """Every combination of levels between sessions: its ``condition`` and settings; one without factors."""
        names = list(self.between)
        cells = []
        for chosen in itertools.product(*self.between.values()):
            condition = dict(zip(names, chosen, strict=True))
            settings = [self.between[name][level] for name, level in condition.items()]
            texts = {old: new for setting in settings for old, new in setting.get("texts", {}).items()}
            sets = {name: value for setting in settings for name, value in setting.items()}
            cells.append({"condition": condition, **sets, "texts": texts})
        return cells

    @cached_property
    def factors_of_items(self) -> dict[str, dict[str, Any]]:
        """The factors whose levels vary between items."""
        given = self.get("design", "factors", default=None) or {}
        return {
            **self.own_factor,
            **{str(factor): levels_of(given_levels) for factor, given_levels in given.items()},
        }

    @cached_property
    def crossing(self) -> DesignCells:
        """The cells of the design's factors (see :mod:`experiment.study.factors`)."""
        picking = {
            factor: {
                level: {"where": given["where"]} if "where" in given else given
                for level, given in levels.items()
            }
            for factor, levels in self.between.items()
            if any("where" in given for given in levels.values())
        }
        return cross({**({} if self.own_factor else self.factors_of_items), **picking})

    @property
    def media(self) -> dict[str, str]:
        """The fields of items that name files, each with its kind: image, audio or video."""
        given = self.get("materials", "media", default={})
        return {str(field): str(kind) for field, kind in given.items()}

    @property
    def pictures_of_texts(self) -> dict[str, Path]:
        """The pictures in the texts, by the names under which pages load them."""
        return {name: path for text in self.texts.values() for name, path in text.pictures.items()}

    @cached_property
    def step_levels(self) -> dict[str, Mapping[str, StepSettings]]:
        """The factors whose levels set steps of trials, also those between sessions, with what each level sets."""
        levels = dict(self.crossing.steps)
        for factor, given in self.between.items():
            sets = {
                level: {
                    name: value
                    for name, value in settings.items()
                    if name in (STYLE, *TYPES) or name in self.own_types
                }
                for level, settings in given.items()
            }
            levels |= {factor: sets} if any(sets.values()) else {}
        return levels

    def steps_at_all_levels(self, kind: str, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the different settings that a block's step has in the design's conditions."""
        factors = self.step_levels
        made: list[dict[str, Any]] = []
        for levels in itertools.product(*factors.values()):
            at = self.step_at(kind, settings, dict(zip(factors, levels, strict=True)))
            made += [] if at in made else [at]
        return made

    @cached_property
    def named_steps(self) -> dict[str, str]:
        """The steps that take further answers, by name, with the trial type of each."""
        blocks = (screen["block"] for screen in self.get("procedure") if "block" in screen)
        steps = (step for block in blocks for step in block["trial"])
        return {name: next(iter(step)) for step in steps if (name := name_of(step)) is not None}

    @cached_property
    def scales(self) -> list[dict[str, Any]]:
        """The scales of trials that end with a rating, each once: their ends, and their buttons (None for a slider)."""
        blocks = (screen["block"] for screen in self.get("procedure") if "block" in screen)
        steps = (
            step for block in blocks for step in main_steps(block["trial"]) if not set(RATED).isdisjoint(step)
        )
        scales: list[dict[str, Any]] = []
        for kind, settings in (next(iter(step.items())) for step in steps):
            for at_level in self.steps_at_all_levels(kind, settings):
                scale = {name: scale_of(at_level)[name] for name in ("from", "to", "labels")}
                scales += [scale] if scale not in scales else []
        return scales

    @cached_property
    def of_people(self) -> frozenset[str]:
        """The factors whose levels are groups of people, and nothing else: models have none."""
        return frozenset(
            factor
            for factor, levels in self.between.items()
            if all(set(level) == {GROUP} for level in levels.values())
        )

    def read_alike(self, *, sees_looks: bool = False) -> dict[str, list[tuple[str, ...]]]:
        """Return, by factor, the groups of levels between which a model reads the same; ``sees_looks``: it is shown pictures."""
        alike: dict[str, list[tuple[str, ...]]] = {}
        for factor, levels in {
            **self.step_levels,
            **{name: self.between[name] for name in self.of_people},
        }.items():
            read: dict[str, list[str]] = {}
            for level, sets in levels.items():
                given = {**self.between.get(factor, {}).get(level, {}), **sets}
                seen = {name: self._seen_by_models(name, value, sees_looks) for name, value in given.items()}
                text = json.dumps({name: value for name, value in seen.items() if value}, sort_keys=True)
                read.setdefault(text, []).append(level)
            groups = [tuple(group) for group in read.values() if len(group) > 1]
            alike |= {factor: groups} if groups else {}
        return alike

    def _seen_by_models(self, name: str, value: Any, sees_looks: bool) -> Any:
        """Return the part of a level's setting that changes what a model reads."""
        if name == GROUP or (name == STYLE and not sees_looks):
            return None
        if name not in TYPES and name not in self.own_types:
            return value
        people_only = {
            setting for setting, declared in self.trial_type(name).parameters.items() if declared.people_only
        } | (set() if sees_looks else {STYLE})
        return {setting: given for setting, given in value.items() if setting not in people_only}

    def step_at(self, kind: str, settings: Mapping[str, Any], condition: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings of a block's step in a condition, whose levels may set some of them if it has no name."""
        result = dict(settings)
        for factor, levels in self.step_levels.items():
            sets = levels.get(condition.get(factor, ""), {})
            if NAME not in settings:
                result |= sets.get(kind, {})
            if STYLE in sets and kind in TYPES:
                result[STYLE] = {**result.get(STYLE, {}), **sets[STYLE]}
        return result

    @cached_property
    def regions(self) -> dict[str, CountedRegion | None]:
        """The named regions of the texts, None for those that the texts mark; each follows the one it is counted from."""
        given = self.get("materials", "regions", default=None) or {}
        counted = {str(name): _COUNTED.fullmatch(str(place)) for name, place in given.items()}
        regions: dict[str, CountedRegion | None] = {
            name: None for name, match in counted.items() if match is None
        }
        for _ in counted:
            for name, match in counted.items():
                if match is not None and match[3] in regions:
                    regions.setdefault(name, CountedRegion(int(match[1]), match[2], match[3]))
        return regions

    @cached_property
    def controls(self) -> tuple[str, dict[str, str]] | None:
        """The factor added to items with their own factor, and its levels' operations; None without one."""
        given = self.get("design", "factors", default=None)
        if not given or not self.own_factor:
            return None
        ((factor, levels),) = given.items()
        return str(factor), {str(level): str(does) for level, does in levels_of(levels).items()}

    @cached_property
    def own(self) -> tuple[Paper, OwnFactor] | None:
        """The declaration of the factor that the material's items have by themselves, with its paper; None without one."""
        materials = self.get("materials", default=None) or {}
        return next((own for keyword, own in own_factors().items() if keyword in materials), None)

    @cached_property
    def own_factor(self) -> dict[str, dict[str, Any]]:
        """The factor that the material's items have by themselves, with its levels; empty without one."""
        if self.own is None:
            return {}
        paper, own = self.own
        return {own.name: dict.fromkeys(paper.part(own.levels)(self))}

    @cached_property
    def texts(self) -> dict[str, StudyText]:
        """The study's Markdown texts by file name, each read once, so that the hashed text is the one shown."""
        return {name: read_text(self.folder, name, self.place(*path)) for name, path in self.text_files()}

    def text(self, name: str) -> StudyText:
        """Return one of the study's Markdown texts."""
        return self.texts[name]

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The built items."""
        file = self.folder / ITEMS
        if not file.exists():
            raise UserError(
                f"{self.folder} has no built items", mend=f"Run `wrods build {self.folder}` first."
            )
        return tuple(read_items(file))

    @cached_property
    def design(self) -> dict[str, Any]:
        """The parts covered by the design hash: settings that affect sessions, and hashes of texts and items."""
        names = (
            "wrods",
            "study",
            "language",
            "seed",
            "published",
            "materials",
            "design",
            "display",
            "procedure",
        )
        texts = {name: text.version for name, text in self.texts.items()}
        if (texts_file := self.folder / OWN_FILE).is_file():
            texts[OWN_FILE] = version_of(texts_file.read_bytes())
        for name in self._row_files():
            if (rows_file := self.folder / name).is_file():
                texts[name] = version_of(rows_file.read_bytes())
        file = self.folder / ITEMS
        items = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None
        own = {
            path: digest for declared in self.own_types.values() for path, digest in declared.hashes.items()
        }
        return {
            **{k: self.source.data[k] for k in names if k in self.source.data},
            "texts": texts,
            "items": items,
            **({"trial_types": own} if own else {}),
        }

    @property
    def design_hash(self) -> str:
        """The SHA-256 of the design as canonical JSON, first 32 hex digits."""
        text = json.dumps(self.design, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]

    def text_files(self) -> list[tuple[str, KeyPath]]:
        """Return each text file named in the procedure or in a level between sessions, with the path of the setting."""
        named: list[tuple[str, KeyPath]] = []
        for i, screen in enumerate(self.source.data["procedure"]):
            for kind in ("consent", "instructions", "break", "debrief"):
                value = screen.get(kind)
                path: KeyPath = ("procedure", i, kind)
                if isinstance(value, dict):
                    inside = "pages" if kind == "instructions" else "text"
                    value, path = value.get(inside), (*path, inside)
                if isinstance(value, str):
                    named.append((value, path))
                elif isinstance(value, list):
                    named += [(name, (*path, j)) for j, name in enumerate(value)]
        for factor, levels in self.between.items():
            for level, given in levels.items():
                for old, new in given.get("texts", {}).items():
                    named.append((new, ("design", "between", factor, level, "texts", old)))
        return named

    def _row_files(self) -> Iterator[str]:
        """Yield the tables that hold the rows of a matrix of questions."""
        for screen in self.source.data["procedure"]:
            for part in (screen, screen.get("instructions")):
                questions = part.get("questions") if isinstance(part, Mapping) else None
                for given in questions.values() if isinstance(questions, Mapping) else ():
                    if isinstance(given.get("rows"), str):
                        yield given["rows"]

    def practice_files(self) -> list[tuple[str, KeyPath]]:
        """Return each practice item file named in the procedure, with the path of the setting."""
        return [
            (str(screen["practice"]["items"]), ("procedure", i, "practice", "items"))
            for i, screen in enumerate(self.source.data["procedure"])
            if "items" in screen.get("practice", {})
        ]


def planned_analyses(study: Study) -> list[PlannedAnalysis]:
    """Return the planned analyses of a validated study, with every default."""
    factors = {name: list(levels) for name, levels in study.factors.items()}
    given = study.get("analysis", "coding")
    coding = {} if given is None else {"coding": given}
    return [
        read_plan(str(name), {**spec, **coding}, factors, own_measures(study.own_types))
        for name, spec in study.get(*PLANNED, default={}).items()
    ]


def study_plan(study: Study) -> StudyPlan:
    """Return the planned analyses of a study with what their description needs."""
    return StudyPlan(
        tuple(planned_analyses(study)),
        {name: list(levels) for name, levels in study.factors.items()},
        study.get("analysis", "exclude", default={}),
        study.get("participants", "wanted"),
        _compares_items(study),
        _signs_in_words(),
    )


def _signs_in_words() -> dict[str, str]:
    """Return the description of each sign of careless answering in the study format."""
    schema: Any = validator().schema
    signs = schema["properties"]["analysis"]["properties"]["exclude"]["properties"]["sessions"]["properties"]
    return {name: str(sign["description"]).partition(", such as")[0] for name, sign in signs.items()}


def check_planned(study: Study, faults: Faults) -> None:
    """Add all errors of the planned analyses to ``faults``."""
    given = study.get(*PLANNED, default={})
    for name in given if isinstance(given, Mapping) else ():
        path, spec = (*PLANNED, str(name)), given[name]
        if isinstance(spec, Mapping):
            faults.check(_check_plan, study, faults, path)
    faults.check(_check_families, study, faults, reads=[PLANNED])
    faults.check(_check_coding, study, faults, reads=[*factor_settings(), ("analysis", "coding"), PLANNED])


def _reads_for_set_times(study: Study) -> bool:
    steps = [step for screen in study.get("procedure") for step in screen.get("block", {}).get("trial", ())]
    read = [at for step in steps if "read" in step for at in study.steps_at_all_levels("read", step["read"])]
    return bool(read) and all("for" in settings for settings in read)


def _check_plan(study: Study, faults: Faults, path: tuple[str, ...]) -> None:
    """Check one plan, except for parts whose settings violate the schema."""
    broken = [
        keys[len(path)] for keys in faults.broken if keys[: len(path)] == path and len(keys) > len(path)
    ]
    factors = (
        {name: list(levels) for name, levels in study.factors.items()}
        if faults.is_sound(*factor_settings())
        else None
    )
    models = study.models if faults.is_sound(("models", "who")) else None
    steps = (
        {
            str(next(iter(answering_step(screen["block"]["trial"]))))
            for screen in study.get("procedure")
            if "block" in screen
        }
        if faults.is_sound(("procedure",))
        else None
    )
    regions = study.regions if faults.is_sound(("materials", "regions")) else None
    design = PlanContext(
        factors,
        models,
        steps,
        _compares_items(study),
        allows_assistive_input(study),
        {}
        if factors is None or models is None
        else {
            name: study.read_alike(sees_looks=settings.get("presentation") == "image")
            for name, settings in models.items()
        },
        {} if factors is None else study.read_alike(sees_looks=True),
        regions,
        steps is None or factors is None or _times_words(study),
        steps is not None and factors is not None and _reads_for_set_times(study),
        {f"{scale['from']} to {scale['to']}" for scale in study.scales}
        if faults.is_sound(("procedure",)) and factors is not None and not faults.found
        else (),
        [name for name, declared in study.own_types.items() if declared.scorer is None],
        {} if steps is None else study.named_steps,
        own_measures(study.own_types),
    )
    faults.add(study.place, path, faults_of(study.get(*path), design, [str(key) for key in broken]))


def _times_words(study: Study) -> bool:
    """Return whether some text is read word by word, so that each word has its own time."""
    return any(
        read.get("as", "whole") not in ("whole", "rsvp")
        for screen in study.get("procedure")
        for step in screen.get("block", {}).get("trial", ())
        if "read" in step
        for read in study.steps_at_all_levels("read", step["read"])
    )


def _check_coding(study: Study, faults: Faults) -> None:
    """Check that codings are of factors, and that planned contrasts make a coding where they are to."""
    given = study.get("analysis", "coding", default={})
    for factor in given if isinstance(given, Mapping) else ():
        if factor not in study.factors:
            fault = unknown_name("factor", factor, study.factors)
            place = study.place("analysis", "coding", factor)
            faults.found.append(UserError(f"{place}: {fault.message}", mend=fault.mend))
    if len(faults.found) == 0:
        for analysis in planned_analyses(study):
            faults.add(study.place, (*PLANNED, analysis.name), faults_of_coding(analysis))


def _check_families(study: Study, faults: Faults) -> None:
    faults.add(study.place, PLANNED, faults_of_families(study.get(*PLANNED, default={})))


def _compares_items(study: Study) -> bool:
    """Return whether the report compares conditions of one reader over the same items, with a plan's bound."""
    return study.own is not None


def session_rules(study: Study) -> dict[str, float]:
    """Return the declared exclusion rules for sessions: sign → the value above which it counts.

    The proportion of correct answers, which is bad if low, is stored as the proportion of wrong ones.
    """
    given = study.get("analysis", "exclude", "sessions", default={})
    rules = {sign: read_sign_rule(sign, text).above for sign, text in given.items()}
    return {**rules, KEYLESS: math.inf} if allows_assistive_input(study) else rules


def allows_assistive_input(study: Study) -> bool:
    """Return whether text without key strokes is not a sign of carelessness in a study."""
    return bool(study.get("participants", "assistive_input"))
