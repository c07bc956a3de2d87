"""Gathers the content of a report: analyses, figures and tables in reading order; keeps factors apart from columns that it adds.

Users name their factors freely, and a report adds columns to trials and tables. A factor with the name of such a column bears a
mark (:data:`analysis.names.MARK`) while the report is made; whatever is written has its own name (:func:`analysis.names.as_given`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from analysis.answers import is_valid
from analysis.descriptives import ConditionMean, describe_rows, described_rows, scored
from analysis.estimation import MOST_ROWS
from analysis.exclusions import flow
from analysis.frames import STRUCTURE
from analysis.mixed import Fit
from analysis.names import MARK, as_given, plain, upper_first
from analysis.parameter_recovery import (
    CROSSED,
    SIMULATED,
    Recovered,
    recovered,
    recovered_lapses,
    recovered_words,
    recovery_plans,
)
from analysis.plan import MEASURES, RECOVERED, TIMES, Plan
from analysis.plan_deviations import standing_of, with_bounds_fixed_beforehand
from analysis.plan_runner import carry_out, carry_out_all
from analysis.planned import plans
from analysis.random_structure import MOST_COLUMNS_BESIDE
from analysis.readers import group_order, kinds_of, named
from analysis.report.answer import answer, answer_tables, as_text
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Material, marks_of
from analysis.report.described import (
    Description,
    Pair,
    described,
    figures_of,
    means_analysed,
    means_of,
    means_table,
    planned_means,
    tables_of,
)
from analysis.report.described.layouts import flow_table, recovery_table
from analysis.report.fit_warnings import warnings_of
from analysis.report.layout import SENTENCES
from analysis.report.method import method_parts, models_table
from analysis.report.numbering import MANUSCRIPT, SUPPLEMENT, ExhibitNumbers, Numbered, ReportContent, Section
from analysis.report.planned_effects import first_asked, planned_effects, planned_of, undrawn_plans
from analysis.report.results import TableNumbers, paragraphs
from analysis.report.results.tables import bayes_table, contrast_table, equivalence_table, model_table
from analysis.report.results.together import Together
from analysis.results import Analysis
from analysis.robustness import robustness_matrix
from analysis.tables import Tables
from stimuli.papers import papers

if TYPE_CHECKING:
    from analysis.figures.drawing import Drawing


_NAMES = """
a accuracy adjusted adjusted_accuracy all answer_given answered at at_chance axis base before behind beyond_one_typo category ceiling
ceiling_of chance chance_high chance_low changed_words changes check choices column compared_with correct_high correct_low
cost cost_high cost_low count counterbalanced derived df difference difference_high difference_low distance edits estimate
estimate_high estimate_low excluded false_alarm_rate first first_share flagged forms gone grades
group guessed hash head high highest hit_rate
imported intact is_changed is_repeat item item_cell item_condition item_reader items k key kind label letters level line list
log_ratio log_reading_time log_rt low lowest machine machine_condition mean mean_high mean_log_ratio mean_low mean_rt measure
meets missing missing_share model model_session n name not_recovered number of of_sums other_conditions out_of_context
out_of_context_ratio own p p_adjusted pairs panel parameters part participant participants people percent person place
place_from_end places previous_zipf prompt provenance published quantity r rated rating ratio ratio_high ratio_low reached recovered
recovered_with_one_typo region replicates resampled right role rows rule run said_cell said_part same_direction same_distance
same_place same_place_from_end scale scaled sd se seed series share shown side sign similarity size slopes sorted source speed
stands stated sum term times token_ratio tokens training trial trials trials_that_tell truth unit unit_high unit_low unrelated
unsure use used valid valid_only valid_only_high valid_only_low value verdict wanted weight without word words worth wrong
wrong_high wrong_low zipf zone
"""
CALCULATED = frozenset(_NAMES.split())
"""Columns that a report adds to trials, and those of the tables of items and regions."""

ROBUSTNESS = "robustness"
MOST_PARTS = 3
"""Parts above which means of a factor that no plan compares are in files only."""
FEWEST = 5
"""Results of fewer participants than this are said to describe those participants only."""


def marked(tables: Tables) -> Tables:
    """Return the tables with marked factors where a report calculates columns of their names."""
    names = {name: name + MARK for name in tables.factors if name in CALCULATED}
    if not names:
        return tables
    crossed = {
        name: TIMES.join(names.get(part, part) for part in name.split(TIMES)) for name in tables.crossed
    }
    columns = names | crossed
    return replace(
        tables,
        trials=tables.trials.rename(columns=columns),
        items=tables.items.rename(columns=names) if set(names) & set(tables.items) else tables.items,
        dictionary=_in_dictionary(tables.dictionary, names),
    )


def _in_dictionary(dictionary: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the study's dictionary with marked factors in plans, true effects and factors of sessions."""

    def keys(mapping: Mapping[str, Any]) -> dict[str, Any]:
        return {names.get(name, name): value for name, value in mapping.items()}

    def compared(value: Any) -> Any:
        return (
            [names.get(name, name) for name in value] if isinstance(value, list) else names.get(value, value)
        )

    words = "|".join(map(re.escape, names))
    variables = re.compile(rf"(?<![\w.])(?:{words})(?![\w.]|\s*\()")

    def variable(match: re.Match[str]) -> str:
        _, bar, before = match.string[: match.start()].rpartition("|")
        is_group = bool(bar) and ")" not in before
        # in (1 | item), item is the item, whatever factors a study has
        return match[0] if is_group and match[0] in STRUCTURE else names[match[0]]

    def plan(declared: Mapping[str, Any]) -> dict[str, Any]:
        renamed = dict(declared)
        for key, value in declared.items():
            if key == "compare":
                renamed[key] = compared(value)
            elif key in ("formula", "fallback") and value:
                renamed[key] = variables.sub(variable, value)
            elif key in ("within", "levels", "coding") and isinstance(value, dict):
                renamed[key] = keys(value)
        return renamed

    def effects(simulated: Mapping[str, Any]) -> dict[str, Any]:
        return {
            CROSSED.join(names.get(name, name) for name in factor.split(CROSSED)): value
            for factor, value in simulated.items()
        }

    def settings(name: str, part: Any) -> Any:
        if name == "steps":
            return {step: settings("step", given) for step, given in part.items()}
        if not isinstance(part, dict) or not isinstance(part.get("effects"), dict):
            return part
        given = part["effects"]
        is_nested = name == "regions"
        return part | {
            "effects": {region: effects(own) for region, own in given.items()}
            if is_nested
            else effects(given)
        }

    truth = dictionary["truth"] and {name: settings(name, part) for name, part in dictionary["truth"].items()}
    return {
        **dictionary,
        **{part: keys(dictionary[part]) for part in ("factors", "between") if dictionary.get(part)},
        "planned": {name: plan(declared) for name, declared in dictionary["planned"].items()},
        "truth": truth,
    }


def gather(
    tables: Tables, progress: Callable[[str], None] = lambda _: None, wanted: Collection[str] = ()
) -> ReportContent:
    """Run every analysis of a study and lay out the report, with tables and figures numbered in reading order.

    The Answer is reported as text (:func:`analysis.report.answer.as_text`) before anything that only the rest needs is computed.
    """
    tables = marked(tables)

    def say(step: str) -> None:
        # what reads hidden states reports objects, which name no column
        progress(as_given(step) if type(step) is str else step)

    numbers, trials = ExhibitNumbers(), tables.trials
    kinds, used = kinds_of(trials), trials[trials["excluded_reason"].isna()]
    readers = tables.dictionary["readers"]
    declared_kinds = {name: str(entry["kind"]) for name, entry in readers.items() if entry.get("kind")}
    planned = with_bounds_fixed_beforehand(plans(tables), tables.dictionary)
    analyses = carry_out_all(planned, tables, lambda name: say(f"model: {name}"))
    analyses = sorted(analyses, key=lambda analysis: not analysis.plan.planned)
    analyses = [analysis.in_order(group_order(trials)) for analysis in analyses]
    matrix = robustness_matrix(analyses, tables, say)
    tested = [analysis for analysis in analyses if analysis.plan.planned] or analyses
    answered, excerpt = answer_tables(tested, matrix, numbers)
    counted = flow_table(flow(trials, readers), declared_kinds | kinds)
    with_means = [
        (together, [means_of(analysis.plan, used, tables) for analysis in together.analyses])
        for together in Together.of(analyses, kinds)
    ]
    bare = [_bare_together(together, cells) for together, cells in with_means]
    # of these the Answer says so
    alike = [one.analysis for one in bare if not one.parts and one.analysis.only_value is not None]
    is_planned = any(plan.planned for plan in planned)
    answering = [paper.part(paper.answers) for paper in papers().values() if paper.answers and not is_planned]
    content = ReportContent(
        tables=tables,
        leading=tuple(answer for answers in answering for answer in answers(tables)),
        flow=Numbered("", counted),
        kinds=kinds,
        cautions=(
            *_cautions(used),
            *_at_an_end([one for one in tested if all(one is not other for other in alike)], used, kinds),
        ),
        standing=standing_of(tables, analyses),
        planned=tuple(section for section in bare if section.analysis.plan.planned),
        exploratory=tuple(section for section in bare if not section.analysis.plan.planned),
        matrix=matrix,
        answer_table=answered,
        answer_excerpt=excerpt,
    )
    say(as_text(answer(content, "")))

    # matplotlib and the chapters take longer to import than the Answer should wait
    from analysis.figures.simulation import recovery_figure
    from analysis.report.chapters import write_chapters

    means = described(used, tables)
    written = write_chapters(Material(tables, tuple(analyses), kinds, say, matrix), wanted)
    recovered_effects, extra, recovering = _recovery(tables, analyses, say)
    say("figures")
    effects_drawn = planned_effects(analyses, matrix, recovered_effects, tables.dictionary["truth"] or {})
    laid_tables = [table for description in means for table in tables_of(description)]
    described_already = {
        (measure.name, description.part.stem) for description in means for measure in description.cells
    }
    of_plans: list[tuple[Pair, Drawing]] = []
    of_plans_alone: list[tuple[Pair, ApaTable]] = []
    for analysis in (analysis for analysis in analyses if analysis.plan.planned):
        key = planned_of(analysis)
        if key in described_already or key not in effects_drawn:
            continue
        described_already.add(key)
        cells = means_of(analysis.plan, used, tables) or _cells_of(analysis)
        for drawing, table in planned_means(analysis, cells, used, tables, effects_drawn):
            of_plans.append((key, drawing))
            of_plans_alone.append((key, table))
    laid_tables = [*of_plans_alone, *laid_tables]
    shown = _means_of_plans(analyses, {key for key, _ in laid_tables})
    crowded = _crowded(means, shown)
    undrawn = {stem for _, stem in crowded}
    of_parts = [
        figure
        for description in means
        if description.part.stem not in undrawn
        for figure in figures_of(description, used, tables, effects_drawn, analyses)
    ]
    drawn = [*((key, drawing) for key, drawing, _ in of_parts), *of_plans]
    drawn = sorted(drawn, key=lambda pair: first_asked(analyses, effects_drawn, pair[1].effects))
    language_models = models_table(tables)
    models = None
    if language_models is not None:
        models = numbers.table(language_models, MANUSCRIPT if len(language_models.rows) > 1 else SUPPLEMENT)
    own_tables = [table for key, table in laid_tables if key in shown or not shown]
    own_figures = [figure for key, figure in drawn if key in shown or not shown]
    descriptives, figures = [], []
    while own_tables and numbers.has_room("table"):
        descriptives.append(numbers.table(own_tables.pop(0), MANUSCRIPT))
    while own_figures and numbers.has_room("figure"):
        figures.append(numbers.figure(own_figures.pop(0), MANUSCRIPT))
    first = [numbers.chapter(chapter) for chapter in written if chapter.name == ROBUSTNESS]
    flow_table_ = numbers.table(counted)
    already = Already()
    departures = {name for chapter in written for name in chapter.departures}

    def laid(is_first: bool) -> list[Section]:
        sections = [
            _section_together(section, together, cells, kinds, numbers, already)
            if section.parts
            else _section(section, cells[0], kinds, numbers, already)
            for section, (together, cells) in zip(bare, with_means, strict=True)
            if is_first is (section.analysis.plan.planned or not is_planned)
        ]
        return [_with_departure(section, departures) for section in sections]

    # in the order in which the supplement has them
    sections = laid(is_first=True)
    descriptives += [numbers.table(table) for table in own_tables]
    figures += [numbers.figure(figure) for figure in own_figures]
    further_figures = [numbers.figure(figure) for key, figure in drawn if shown and key not in shown]
    if figures and figures[0].drawing.effects and answered is not None:
        drawing, others = figures[0].drawing, [*figures[1:], *further_figures]
        remaining = undrawn_plans(analyses, effects_drawn, drawing.effects)
        elsewhere: dict[str, list[str]] = {}
        for figure in others:
            missing = undrawn_plans(analyses, effects_drawn, figure.drawing.effects)
            elsewhere[figure.number] = [plan for plan in remaining if plan not in missing]
            remaining = [plan for plan in remaining if plan in missing]
        values = {"plans": remaining, "elsewhere": elsewhere, "table": answered.number}
        note = " ".join([drawing.note, *SENTENCES.sentences("elsewhere", **values).unescape().splitlines()])
        figures[0] = replace(figures[0], drawing=replace(drawing, note=note))
    further_tables = [
        numbers.table(table, refused=crowded.get(key, ""))
        for key, table in laid_tables
        if shown and key not in shown
    ]
    further_tables += [numbers.table(table) for _, _, table in of_parts if table is not None]
    sections += laid(is_first=False)
    chapters = [*first, *(numbers.chapter(chapter) for chapter in written if chapter.name != ROBUSTNESS)]
    effects = [
        effect
        for effect in recovered_effects
        if effect.covered is not None and not effect.label.startswith("intercept")
    ]
    recovery_figure_ = numbers.figure(recovery_figure("recovery", effects)) if effects else None
    has_timeouts = bool((used["response_status"] == "timeout").any())
    recovery_table_ = (
        numbers.table(recovery_table(recovered_effects, recovering, has_timeouts=has_timeouts))
        if recovered_effects
        else None
    )
    content = replace(
        content,
        flow=flow_table_,
        descriptives=tuple(descriptives),
        remarks=tuple(_recovery_remarks(means)),
        figures=tuple(figures),
        planned=tuple(section for section in sections if section.analysis.plan.planned),
        exploratory=tuple(section for section in sections if not section.analysis.plan.planned),
        chapters=tuple(chapters),
        recovery=tuple(recovered_effects),
        recovery_table=recovery_table_,
        recovery_figure=recovery_figure_,
        models_table=models,
        recovery_sections=tuple(
            _section(_bare(analysis, cells), cells, kinds, numbers, already)
            for analysis, cells in ((analysis, means_of(analysis.plan, used, tables)) for analysis in extra)
        ),
        further_tables=tuple(further_tables),
        further_figures=tuple(further_figures),
    )
    of_models = None if models is None else models.number
    fits = [reported.fit for reported in content.all_fits()]
    method = method_parts(tables, (*analyses, *extra), of_models, fits)
    return replace(content, method=tuple(method))


def _crowded(means: Sequence[Description], shown: Collection[Pair]) -> dict[Pair, str]:
    """Return the means that no plan compares of a factor told in many parts, each with how many: they are in files only."""
    parts = Counter((description.part.factor, description.part.trials) for description in means)
    reasons: dict[Pair, str] = {}
    for description in means:
        keys = {(measure.name, description.part.stem) for measure in description.cells}
        n_parts = parts[description.part.factor, description.part.trials]
        if shown and n_parts > MOST_PARTS and not keys & set(shown):
            reasons |= dict.fromkeys(keys, f"one of {n_parts} such tables")
    return reasons


def _means_of_plans(analyses: Sequence[Analysis], pairs: Collection[Pair]) -> set[Pair]:
    """Return which means belong to the manuscript: those of planned analyses, or of the parts of a factor that has no others."""
    shown: set[Pair] = set()
    for analysis in (analysis for analysis in analyses if analysis.plan.planned):
        measure, stem = planned_of(analysis)
        parts = {key for key in pairs if key[0] == measure and key[1].startswith(f"{stem}_")}
        shown |= {(measure, stem)} if (measure, stem) in pairs or not parts else parts
    return shown


def _recovery(
    tables: Tables, analyses: Sequence[Analysis], progress: Callable[[str], None]
) -> tuple[list[Recovered], list[Analysis], tuple[Fit, ...]]:
    """Compare simulated with recovered effects; return also the analyses made for this alone, and the fits behind the effects."""
    recovered_effects: list[Recovered] = []
    extra: list[Analysis] = []
    fits: list[Fit] = []
    for plan in recovery_plans(tables):
        done = _carried_out(plan, analyses)
        if done is None:
            progress(f"model: {plan.name}")
        # which effects were simulated is known: nothing is tested, but what the report tests has its interval there
        carried_out = done or carry_out(plan, tables)
        analysis = replace(carried_out.of_model, contrasts=())
        same = _same_model(analysis, analyses)
        if same is None:
            extra.append(analysis)
        if plan.crossing is None:
            tested = () if same is None else same.of_model.contrasts
            effects = recovered(replace(analysis, contrasts=tested), tables)
            if same is not None and same.companion is not None and plan.measure.scale == "raw":
                effects = [_as_tested(effect, same) for effect in effects]
        else:
            effects = recovered(carried_out, tables)
        fit = (same or analysis).fit
        fits += [fit] if effects and fit is not None else []
        recovered_effects += effects
    recovered_effects += [word for factor in tables.factors for word in recovered_words(tables, factor)]
    return [*recovered_effects, *recovered_lapses(tables)], extra, tuple(fits)


def _as_tested(effect: Recovered, analysis: Analysis) -> Recovered:
    """Return an effect in whose unit an analysis estimates it without its model as estimated there."""
    for contrast in analysis.estimable:
        if contrast.label == effect.label and contrast.groups == (SIMULATED,):
            return replace(
                effect, estimate=contrast.estimate, low=contrast.low, high=contrast.high, converged=True
            )
    return effect


NOT_OF_MODEL = (
    "name", "planned", "contrasts", "stand_in", "remarks", "key", "alpha", "family", "equivalence", "bayes", "stop", "factors",
)  # fmt: skip
"""Fields of a plan that say what is tested and how it is corrected, not which model is fitted."""


def _carried_out(plan: Plan, analyses: Sequence[Analysis]) -> Analysis | None:
    """Return the analysis that has made the model of a check of recovery; None where its model would be another one."""
    for analysis in analyses:
        asked = replace(analysis.plan, **{name: getattr(plan, name) for name in NOT_OF_MODEL})
        # what nobody planned begins otherwise with many conditions, and of very many answers has some
        is_begun_alike = not analysis.plan.planned or len(plan.levels) <= MOST_COLUMNS_BESIDE
        if (
            asked == plan
            and is_begun_alike
            and analysis.model is not None
            and len(analysis.rows) <= MOST_ROWS
        ):
            return analysis
    return None


def _same_model(analysis: Analysis, analyses: Sequence[Analysis]) -> Analysis | None:
    """Return the analysis of the report that has this very model."""
    if analysis.identity is None:
        return None
    return next((candidate for candidate in analyses if candidate.identity == analysis.identity), None)


def _recovery_remarks(means: Sequence[Description]) -> Iterator[Markup]:
    """State where exact answers cannot tell the conditions of a recovery study apart."""
    for description in means:
        exact = {cell.mean for cell in description.cells[MEASURES["correct"]] if cell.kind != "baseline"}
        if description.cells[RECOVERED] and exact and exact <= {0.0, 1.0}:
            yield SENTENCES.sentences("no_spread", exact=sorted(exact), part=description.part)


def _cautions(used: pd.DataFrame) -> Iterator[Markup]:
    """Note where too few participants have answered for general conclusions."""
    names = {"human": ("person", "people"), "simulated": ("simulated reader", "simulated readers")}
    for group, (singular, plural) in names.items():
        n_people = int(used.loc[used["reader_group"] == group, "reader"].nunique())
        if 0 < n_people < FEWEST:
            yield SENTENCES.sentences("caution", many=n_people, one=singular, several=plural)


class _End(NamedTuple):
    """The outcome that all answers of a reader had in common."""

    of_words: bool  # a share of recovered words, not accuracy
    right: bool
    any_valid: bool


def _at_an_end(analyses: Sequence[Analysis], used: pd.DataFrame, kinds: dict[str, str]) -> Iterator[Markup]:
    """Name the readers whose answers were all right, all wrong, or none valid, with the analyses if others were not."""
    analyses_at_end: dict[tuple[str, _End], list[str]] = {}
    distinct = scored(used, MEASURES["correct"]).groupby("reader_group", observed=True)["value"].nunique()
    varied = {("correct", str(group)) for group, many in distinct.items() if many > 1}
    for analysis in analyses:
        column = analysis.plan.measure.value
        if column not in ("correct", "share") or not analysis.has_results:
            continue
        for group, rows in analysis.rows.groupby(analysis.rows["reader_group"].astype(str)):
            valid = is_valid(rows)
            values = set(rows[column].astype(float).where(valid, 0.0).fillna(0.0))
            if values not in ({0.0}, {1.0}):
                varied.add((column, str(group)))
            elif kinds.get(str(group)) != "baseline":
                end = _End(column == "share", 1.0 in values, bool(valid.any()))
                analyses_at_end.setdefault((str(group), end), []).append(analysis.plan.name)
    readers: dict[tuple[_End, tuple[str, ...]], list[str]] = {}
    for (group, end), names in analyses_at_end.items():
        parts = tuple(names) if ("share" if end.of_words else "correct", group) in varied else ()
        readers.setdefault((end, parts), []).append(named(group, kinds))
    for (end, parts), names in readers.items():
        yield SENTENCES.sentences("at_an_end", names=names, parts=parts, **end._asdict())


@dataclass
class Already:
    """Results that earlier sections have reported: means, the analysis that reports a test, and the table of a model."""

    means: set[Markup] = field(default_factory=set)
    tests: dict[tuple[object, ...], str] = field(default_factory=dict)
    models: dict[tuple[object, ...] | None, str | None] = field(default_factory=dict)


def _bare(analysis: Analysis, cells: Sequence[ConditionMean] | None) -> Section:
    """Return an analysis with the means that it compares, without prose and tables: what the Answer is made from."""
    means = _cells_of(analysis) if cells is None else means_analysed(analysis, cells)
    return Section(analysis.plan.heading, (), (), (), analysis, (), tuple(means))


def _bare_together(together: Together, cells: Sequence[Sequence[ConditionMean] | None]) -> Section:
    """Return the bare section of one analysis, or of several that are told together."""
    parts = tuple(_bare(analysis, means) for analysis, means in zip(together.analyses, cells, strict=True))
    return (
        parts[0]
        if len(parts) == 1
        else replace(parts[0], heading=upper_first(together.heading), cells=(), parts=parts)
    )


def _section(
    bare: Section,
    cells: Sequence[ConditionMean] | None,
    kinds: dict[str, str],
    numbers: ExhibitNumbers,
    already: Already,
    *,
    is_part: bool = False,
) -> Section:
    """Lay out one analysis; what an earlier one or the whole of its parts has reported is not repeated."""
    analysis = bare.analysis
    plan, stem = analysis.plan, plain(analysis.plan.name)
    shown: list[Numbered] = []

    def number(table: ApaTable | None) -> str | None:
        if table is None:
            return None
        shown.append(numbers.table(table))
        return shown[-1].number

    of_differences = of_means = None
    if analysis.has_results and analysis.contrasts and not is_part:
        of_differences = number(contrast_table(analysis, f"differences_{stem}"))
        number(equivalence_table(analysis, f"equivalence_{stem}"))
        number(bayes_table(analysis, f"bayes_{stem}"))
    of_model = None
    if analysis.model is not None:
        key = analysis.identity
        if key not in already.models:
            already.models[key] = number(model_table(analysis, f"model_{stem}"))
        of_model = already.models[key]
    if cells is not None:
        of_means = number(means_table(analysis, cells, bare.cells, f"means_{stem}"))
    texts: list[Markup] = []
    if not is_part:
        named = TableNumbers(of_model, of_differences, of_means)
        texts = paragraphs(analysis, bare.cells, kinds, named, already.means, already.tests)
    marks, warnings = marks_of(plan.groups, kinds), tuple(warnings_of(analysis))
    return replace(bare, marks=marks, paragraphs=tuple(texts), tables=tuple(shown), warnings=warnings)


def _with_departure(section: Section, departures: Collection[str]) -> Section:
    """Add a warning where residuals depart from the model of an analysis."""
    departed = [part.analysis for part in section.each if part.analysis.plan.name in departures]
    if not departed:
        return section
    is_check = all(analysis.companion is not None for analysis in departed)
    warning = SENTENCES.sentences("departure", is_check=is_check)
    return replace(section, warnings=(*section.warnings, warning))


def _section_together(
    bare: Section,
    together: Together,
    cells: Sequence[Sequence[ConditionMean] | None],
    kinds: dict[str, str],
    numbers: ExhibitNumbers,
    already: Already,
) -> Section:
    """Lay out analyses of parts of a study with the table of their differences, and each with the tables of its model and means."""
    differences, summary = together.tables()
    shown = [numbers.table(differences)]
    of_differences, of_analyses = shown[0].number, None
    if shown[0].refused:
        shown.insert(0, numbers.table(summary))
        of_analyses = shown[0].number
    parts = [
        _section(part, means, kinds, numbers, already, is_part=True)
        for part, means in zip(bare.parts, cells, strict=True)
    ]
    texts = together.paragraphs([cell for part in parts for cell in part.cells], of_analyses, of_differences)
    groups = tuple(dict.fromkeys(group for analysis in together.analyses for group in analysis.plan.groups))
    warnings = tuple(together.by_part([part.warnings for part in parts]))
    return replace(
        bare,
        marks=marks_of(groups, kinds),
        paragraphs=tuple(texts),
        tables=tuple(shown),
        warnings=warnings,
        parts=tuple(parts),
    )


def _cells_of(analysis: Analysis) -> list[ConditionMean]:
    """Describe what only this analysis measures, from the rows of its model."""
    if not analysis.has_results or analysis.rows.empty:
        return []
    rows = described_rows(analysis.rows, analysis.plan.measure)
    return describe_rows(rows, analysis.plan.measure, analysis.plan.factor, analysis.levels)
