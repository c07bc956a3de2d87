"""Checks beyond the schema: names that must match each other, implausible amounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

from analysis.plan import faults_of_exclusions
from experiment.columns import trial_columns
from experiment.study.controls import WITH_ROWS, check_controls
from experiment.study.factors import CELL, kind_of, levels_of, operation_families
from experiment.study.format import check_format, schema_faults
from experiment.study.screens import check_procedure, rated_blocks
from experiment.study.study import FILE, Study, allows_assistive_input, check_planned
from experiment.study.texts import read_text
from experiment.study.yaml_source import (
    Faults,
    KeyPath,
    YamlSource,
    factor_settings,
    parse_yaml,
    read_yaml,
)
from experiment.trials import answering_step
from experiment.trials.own import read_own_types
from stimuli.errors import UserError, unknown_name
from stimuli.papers import material_keywords

if TYPE_CHECKING:
    from experiment.study.study import Study


def read_study(path: Path | str, faults: Faults | None = None) -> Study:
    """Return a study after checking all settings except those of models, which :mod:`experiment.checking` checks.

    Parameters
    ----------
    path : Path or str
        A folder, or its ``study.yaml``.
    faults : Faults, optional
        If given, collects errors instead of raising them: the valid parts of the study can then be read.

    Raises
    ------
    UserError
        The folder or file is missing or has no settings; without ``faults`` also if a setting breaks the format or is not
        meaningful: names every error with line, value, rule and remedy.
    """
    given = Path(path)
    folder = given.parent if given.name == FILE else given
    if not folder.is_dir() and Path(FILE).is_file():
        raise UserError(
            f"there is no study folder {str(given)!r}", mend="You are in a study's folder: name it as `.`"
        )
    if not folder.is_dir():
        raise UserError(
            f"there is no study folder {str(given)!r}", mend="Make one with `wrods new DIR --from your-own`."
        )
    source = read_yaml(folder / FILE)
    faults_found = Faults() if faults is None else faults
    own = read_own_types(folder, _faults_of_json)
    faults_found.found += own.faults
    check_format(source, faults_found, own.types, own.unreadable)
    study = Study(folder, source, own.types)
    check_meaning(study, faults_found)
    if faults is None:
        faults_found.report()
    return study


def _faults_of_json(text: str, file: Path, data: Any, schema: Draft202012Validator) -> Iterator[str]:
    """Yield what in a JSON file violates a schema, each with its line."""
    if not schema.is_valid(data):
        lines = parse_yaml(text.replace("\t", " "), file).lines  # JSON is YAML without tabs
        yield from (message for _, _, message in schema_faults(YamlSource(file, data, lines), schema))


MATERIALS = ("sentences", "words", "lexical_decision", "realtimeqa", "corpus")
BY_HAND = {"sentences"}
WITHHELD = {"corpus", "sentences", "words"}
"""Materials whose questions can be asked without their text."""


def material_kinds() -> tuple[str, ...]:
    """Return the keywords of all materials: those of no paper, then those of papers."""
    return (*MATERIALS, *material_keywords())


def published_materials() -> set[str]:
    """Return the materials that papers used."""
    return {"corpus", "realtimeqa", *material_keywords()}


def check_meaning(study: Study, faults: Faults) -> None:
    """Check what the schema cannot, such as names that must match each other; errors are added to ``faults``."""
    faults.check(_check_names, study, faults, reads=factor_settings())
    if faults.check(_check_one_material, study, reads=[("materials",)]):
        faults.check(
            _check_material,
            study,
            kind_of_material(study),
            faults,
            reads=[*factor_settings(), ("published",)],
        )
    check_procedure(study, faults)
    faults.check(_check_regions, study, faults, reads=[("materials",), ("procedure",), *factor_settings()])
    reads: list[KeyPath] = [("materials",), ("procedure",), ("models", "who"), *factor_settings()]
    faults.check(_check_distractors, study, reads=reads)
    faults.check(_check_files, study, faults, reads=[("design", "between")])
    faults.check(_check_rating, study, reads=[("rating",)])
    faults.check(_check_bounds, study, faults, reads=[("analysis", "exclude")])
    check_planned(study, faults)


def _check_one_material(study: Study) -> None:
    kinds = [kind for kind in material_kinds() if kind in study.get("materials")]
    if len(kinds) != 1:
        named = ", ".join(kinds) or "none"
        raise UserError(
            f"{study.place('materials')} names {named}; a study has exactly one kind of material",
            mend=f"Give one of: {', '.join(material_kinds())}.",
        )


def _check_material(study: Study, kind: str, faults: Faults) -> None:
    faults.check(_check_published, study, kind)
    faults.check(_check_published_scoring, study, kind)
    if study.own is None:
        _check_levels(study, kind, faults)
        return
    paper, own = study.own
    faults.check(check_controls, study, own)
    if own.check:
        faults.check(paper.part(own.check), study, faults)


def _check_files(study: Study, faults: Faults) -> None:
    """Check the files that the study names: a missing or empty text is reported with the line that names it."""
    for name, path in study.text_files():
        faults.check(read_text, study.folder, name, study.place(*path), reads=[path])
    for name, path in study.practice_files():
        faults.check(_check_practice_file, study, name, path, reads=[path])


def _check_practice_file(study: Study, name: str, path: KeyPath) -> None:
    if not (study.folder / name).is_file():
        raise UserError(f"{study.place(*path)} names {name!r}, which is not in the study's folder")


def kind_of_material(study: Study) -> str:
    """Return the study's one kind of material."""
    return next(kind for kind in material_kinds() if kind in study.get("materials"))


def _check_published(study: Study, kind: str) -> None:
    """Raise an error unless published items have their published task, unchanged."""
    if "items" not in study.published:
        return
    given = study.get("materials", kind)
    if kind not in published_materials() or (isinstance(given, Mapping) and "rules" in given):
        raise UserError(
            f"{study.place('published')}: items of `{kind}` are no paper's, so that none can be copied",
            mend="Take items out of published; `wrods scramble --mode published` copies the papers' scrambles of any text.",
        )
    settings = study.get("materials", "scramble", default={})
    if settings:
        name = next(iter(settings))
        raise UserError(
            f"{study.place('materials', 'scramble', name)}: the papers' code has no such setting, and published items are "
            "made as it made them",
            mend="Take the scramble settings out, or items out of published.",
        )


def _check_published_scoring(study: Study, kind: str) -> None:
    """Raise an error if a paper's scorer is requested but no paper had one."""
    if "scoring" in study.published and kind not in published_materials():
        raise UserError(
            f"{study.place('published')}: answers to `{kind}` were scored by no paper",
            mend="Take scoring out of published; `wrods score --parser` compares a paper's parser with ours.",
        )


def _check_names(study: Study, faults: Faults) -> None:
    for kind in ("factors", "between"):
        for factor in study.get("design", kind, default={}):
            faults.check(_check_factor_name, study, kind, factor)
            faults.check(_check_levels_apart, study, kind, factor)
    twice = sorted(set(study.between) & set(study.factors_of_items))
    if twice:
        raise UserError(
            f"{study.place('design', 'between', twice[0])}: {twice[0]!r} is the name of another factor",
            mend="Give each factor a different name.",
        )


def _check_factor_name(study: Study, kind: str, factor: str) -> None:
    names = set(trial_columns()) if any(rated_blocks(study)) else set(trial_columns()) - {"rating"}
    names |= {column for declared in study.own_types.values() for column in declared.columns}
    if factor in names:
        raise UserError(
            f"{study.place('design', kind, factor)}: {factor!r} is the name of a column of the trials table",
            mend="Give the factor another name.",
        )


def _check_levels_apart(study: Study, kind: str, factor: str) -> None:
    """Raise an error if levels coincide in names of columns and files, which retain only letters and digits."""
    seen: dict[str, str] = {}
    for level in map(str, study.get("design", kind, factor)):
        other = seen.setdefault("".join(sign if sign.isalnum() else "_" for sign in level).lower(), level)
        if other != level:
            raise UserError(
                f"{study.place('design', kind, factor)}: {other!r} and {level!r} differ in capitals, blanks, _, . or - alone",
                mend="Let levels of a factor differ in letters or digits.",
            )


def _check_rating(study: Study) -> None:
    rubric = study.get("rating", "rubric")
    if rubric is None:
        return
    read_text(study.folder, rubric, study.place("rating", "rubric"))
    low, high = study.get("rating", "scale", default=(0, 2))
    if low >= high:
        raise UserError(
            f"{study.place('rating', 'scale')} is [{low}, {high}]; the first number is the lowest rating",
            mend="Write it like [0, 2].",
        )


def _check_bounds(study: Study, faults: Faults) -> None:
    path, rated = ("analysis", "exclude"), rated_blocks(study)
    given, all_rated = study.get(*path, default={}), bool(rated) and all(rated)
    faults.add(study.place, path, faults_of_exclusions(given, allows_assistive_input(study), all_rated))


def _check_distractors(study: Study) -> None:
    """Check that mazes and foils go together."""
    fields = dict.fromkeys(
        str(read["show"])
        for screen in study.get("procedure")
        for step in screen.get("block", {}).get("trial", ())
        if "read" in step
        for read in study.steps_at_all_levels("read", step["read"])
        if read.get("as") == "maze"
    )
    place = study.place("materials", "distractors")
    if "distractors" in study.get("materials") and not fields:
        raise UserError(
            f"{place}: no text is read in a maze", mend="Write `read: {as: maze}`, or take it out."
        )
    if fields and ("distractors" not in study.get("materials") or "sentences" not in study.get("materials")):
        raise UserError(
            f"{study.place('procedure')}: a maze needs sentences, and a foil beside each of their words",
            mend="Add a column of foils to the table, and name it: materials: {sentences: FILE, distractors: COLUMN}.",
        )
    given = study.get("materials", "distractors")
    if isinstance(given, Mapping):
        name, place_of_name = given["made_by"], study.place("materials", "distractors", "made_by")
        if name not in study.models:
            raise unknown_name(f"{place_of_name}: model", name, study.models)
        if not str(study.models[name]["use"]).startswith("hf:"):
            raise UserError(
                f"{place_of_name} is {name!r}, and only local models (hf:) tell how surprising any word is",
                mend="Name a local model under models: who, or a column of foils.",
            )
    if len(fields) > 1:
        raise UserError(
            f"{place}: mazes show {' and '.join(fields)}, and the foils are those of one field",
            mend="Show the same field in each maze.",
        )


def _check_regions(study: Study, faults: Faults) -> None:
    """Check that named regions have a text that is read, a place in it, and scrambles that leave words where they are."""
    given = study.get("materials", "regions", default={})
    for name in given:
        faults.check(_check_region, study, str(name))
    if not given:
        return
    place = study.place("materials", "regions")
    if "sentences" not in study.get("materials"):
        raise UserError(
            f"{place}: only sentences have named regions", mend="Take regions out of the materials."
        )
    steps = [
        step for screen in study.get("procedure") if "block" in screen for step in screen["block"]["trial"]
    ]
    if not any("read" in step for step in steps):
        raise UserError(
            f"{place}: no trial shows a text for reading, so that no region is read",
            mend="Let a block's trial begin with `- read: {show: sentence, as: moving_window}`.",
        )
    for level, operation in study.crossing.levels.items():
        faults.check(_check_words_stay, study, operation, level)


def _check_region(study: Study, name: str) -> None:
    if name in study.regions:
        return
    given, place = study.get("materials", "regions"), study.place("materials", "regions", name)
    other = str(given[name]).split()[-1]
    if other not in given:
        fault = unknown_name(f"{place}: region", other, given)
        raise fault
    raise UserError(
        f"{place} is {given[name]!r}, and {other} is counted from it in turn",
        mend="Count one of them from a region that is marked.",
    )


def _check_words_stay(study: Study, operation: Any, level: str) -> None:
    """Raise an error for a scramble that moves words, whose regions would have other words in each form."""
    from stimuli.scramble.types import parse_operation

    if operation == "withhold" or _is_by_hand(operation):
        return
    try:
        unit = parse_operation(operation).type.unit
    except UserError:
        return  # reported where the factor is checked
    if unit != "letter":
        raise UserError(
            f"{study.place('materials', 'regions')}: level {level!r} moves {unit}s, so that a region would have other words in "
            "each condition",
            mend="Scramble letters within words, or take regions out.",
        )


def _check_levels(study: Study, kind: str, faults: Faults) -> None:
    """Check that the materials support every level of a factor."""
    given = study.get("design", "factors", default={})
    families = operation_families()
    for factor, given_levels in given.items():
        levels = levels_of(given_levels)
        does = kind_of(levels, families)
        faults.check(_check_kind_of_factor, study, kind, factor, does)
        for level, operation in levels.items() if does in ("scramble", "examples") else ():
            faults.check(_check_operation, study, kind, operation, factor, level)
    faults.check(_check_cells, study, kind)


def _check_kind_of_factor(study: Study, kind: str, factor: str, does: str | None) -> None:
    place = study.place("design", "factors", factor)
    if does == "rows" and kind not in WITH_ROWS:
        raise UserError(f"{place}: only sentences and words have rows to pick (`where`)")
    if does == "versions" and kind != "sentences":
        raise UserError(
            f"{place}: only sentences have versions",
            mend="Write the materials as a table of sentences, or say what each level does.",
        )
    if does == "examples" and kind != "corpus":
        raise UserError(f"{place}: only tasks on a corpus have examples to change (`demonstrations`)")


def _check_cells(study: Study, kind: str) -> None:
    """Check the operations of crossed factors, cell by cell."""
    try:
        levels = study.crossing.levels
    except UserError as error:
        raise UserError(f"{study.place('design', 'factors')}: {error.message}", mend=error.mend) from None
    if study.crossing.factor == CELL:
        for cell, operation in levels.items():
            factor, level = next(iter(study.crossing.conditions[cell].items()))
            _check_operation(study, kind, operation, factor, level)


def _check_operation(study: Study, kind: str, given: Any, factor: str, level: str) -> None:
    """Raise an error if the materials do not support a level's operation."""
    from stimuli.scramble.published import published_operation
    from stimuli.scramble.types import parse_operation

    operation = given["demonstrations"] if isinstance(given, Mapping) and "demonstrations" in given else given
    if kind in BY_HAND and _is_by_hand(operation):
        return
    if kind in WITHHELD and operation == "withhold":
        _check_withheld(study, kind, factor, level)
        return
    try:
        if "items" in study.published and isinstance(operation, str) and operation != "none":
            published_operation(operation)
        else:
            parse_operation(operation)
    except UserError as error:
        place = study.place("design", "factors", factor, level)
        raise UserError(f"{place}: {error.message}", mend=error.mend) from None


def _check_withheld(study: Study, kind: str, factor: str, level: str) -> None:
    """Raise an error if nothing remains to be answered with the text withheld."""
    steps = [
        next(iter(answering_step(screen["block"]["trial"])))
        for screen in study.get("procedure")
        if "block" in screen
    ]
    if kind != "corpus" and "recover" in steps:
        raise UserError(
            f"{study.place('design', 'factors', factor, level)}: a text that is withheld cannot be restored",
            mend="Withhold texts where blocks end with `choose` or `answer`.",
        )


def _is_by_hand(given: Any) -> bool:
    return given == "hand-made" or (isinstance(given, Mapping) and set(given) == {"column"})
