"""Letter position: what changed letters cost by place, kind and distance, and which letters and codes explain it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.letters import FEWEST_ITEMS, letter_curves, pages
from analysis.letters import letter_changes
from analysis.letters.changes import INTACT, MIXED
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.letters_beside import costs_beside
from analysis.report.chapters.letters_competing import Explanations, explanations, gathered
from analysis.report.chapters.letters_measured import Measured, measured, panels
from analysis.report.chapters.letters_tables import contrasts_table, places_table
from analysis.report.chapters.letters_words import contrasts_in_words, curve_note, maps, places_in_words
from stimuli.errors import UserError


def write(material: Material) -> Chapter | None:
    """Write what letters cost; None where no item says which of its letters were changed, or no one read such an item."""
    tables = material.tables
    if not tables.factors or tables.items.empty or "item_id" not in tables.items:
        return None
    try:
        changes = letter_changes(tables.items, list(tables.factors))
    except UserError:
        return None
    if not (changes["zone"] != INTACT).any():
        return None
    material.told("letter position")
    found, remarks = measured(tables)
    if not found:
        return None
    kinds = {one.group: one.kind for m in found for one in m.by["zone"]}
    explained = explanations(tables, found, material.told)
    few = [one for one in found if not _has_a_place(one)]
    if len(few) == len(found):
        return _explained_alone(found, remarks, explained, kinds)
    remarks = [*remarks, *(f"{one.measure.noun.capitalize()}: {FEW_ALIKE}." for one in few)]
    found = [one for one in found if _has_a_place(one)]
    main = costs_beside(tables, found, kinds)
    blocks: list[Block] = [*main, Markup("<h3>Place by place</h3>")] if main else []
    blocks.append(Markup(" ").join(_opening(found)))
    for number, own in enumerate(pages(panels(found)), 1):
        name = "letter_curves" if number == 1 else f"letter_curves_{number}"
        title = (
            "Cost by letter position" if found[0].given.has_intact else "Errors and times by letter position"
        )
        blocks.append(letter_curves(name, own, title, curve_note(found, own)))
    blocks += [text for one in found for text in places_in_words(one, kinds)]
    blocks += maps(found, kinds)
    blocks += [one for one in _tables(found) if one is not None]
    told = contrasts_in_words(found, kinds)
    contrasts = contrasts_table("letter_contrasts", found)
    if contrasts is not None:
        blocks += [Markup("<h3>Places and kinds compared</h3>"), *told, contrasts]
    blocks += explained.blocks
    left_out = gathered([*remarks, *explained.remarks])
    if left_out:
        blocks.append(escape(f"Left out or not known. {' '.join(left_out)}"))
    return Chapter(
        "letter-position",
        "Letter position",
        tuple(blocks),
        marks_of(tuple(kinds), kinds),
        methods=_methods(
            found, bool(changes["derived"].any()), bool((changes["zone"] == MIXED).any()), explained
        ),
        fits=explained.fits,
        sources=("owen2007", "benjamini1995", *(("davis2010", "gomez2008") if explained.blocks else ())),
    )


FEW_ALIKE = (
    "the words of an item are changed in different places or ways, and fewer than "
    f"{apa.worded(FEWEST_ITEMS, 'item')} have one and the same, so that costs by letter position are not told"
)


def _has_a_place(one: Measured) -> bool:
    """Whether any reader met enough items with one kind of change at one place for an interval."""
    return any(many >= FEWEST_ITEMS for group in one.by["zone"] for many in group.items_of.values())


def _explained_alone(
    found: Sequence[Measured], remarks: Sequence[str], explained: Explanations, kinds: dict[str, str]
) -> Chapter | None:
    """Write what explains the costs of whole texts, where hardly an item has its letters changed at one place."""
    if not explained.blocks:
        return None
    left_out = gathered([*remarks, *explained.remarks])
    blocks: list[Block] = [escape(f"{FEW_ALIKE[0].upper()}{FEW_ALIKE[1:]}."), *explained.blocks]
    blocks += [escape(f"Left out or not known. {' '.join(left_out)}")] if left_out else []
    return Chapter(
        "letter-position",
        "Changed letters",
        tuple(blocks),
        marks_of(tuple(kinds), kinds),
        methods=tuple(explained.methods),
        fits=explained.fits,
        sources=("davis2010", "gomez2008"),
    )


def _opening(found: Sequence[Measured]) -> list[Markup]:
    told = []
    several = len(
        {level.split(" / ")[1] for m in found for one in m.by["zone"] for level in one.profile.levels}
    )
    what = "places" if several > 1 else "place"
    if all(one.given.has_intact for one in found):
        told.append(
            escape(
                f"Costs of changed letters are differences from each reader's own intact form, by the {what} of the letters in the "
                "word and by what was done to them"
            )
            + Markup(" ([[figure:letter_curves]], [[table:letter_zones]]).")
        )
    else:
        why = next(one.given.why_none for one in found if not one.given.has_intact)
        told.append(
            escape(
                f"{why}, so that nothing is a cost against an intact form: errors and times are told as they are, and kinds of "
                "change are compared with each other"
            )
            + Markup(" ([[figure:letter_curves]], [[table:letter_zones]]).")
        )
    return told


def _tables(found: Sequence[Measured]) -> list[Block | None]:
    note = (
        "Intervals are 95% percentile bootstraps over participants and items, or over a model's items; cells "
        "of fewer than three "
        f"{'items or words' if any(one.measure.name.endswith('_changed') for one in found) else 'items'}, and those in which nothing "
        "varies, have none."
    )
    what = "Costs of changed letters" if found[0].given.has_intact else "Errors and times"
    laid: list[Block | None] = [
        places_table("letter_zones", f"{what} by place and kind", "zone", found, note)
    ]
    where = {
        "place": ("letter_places_start", f"{what} by the first letter changed, counted from the start"),
        "place_from_end": ("letter_places_end", f"{what} by the last letter changed, counted from the end"),
        "distance": ("letter_distances", f"{what} by the distance between the outermost letters changed"),
    }
    for by, (name, title) in where.items():
        levels = {level.split(" / ")[1] for m in found for one in m.by[by] for level in one.profile.levels}
        if len(levels) > 1:
            laid.append(places_table(name, title, by, found, note))
    return laid


def _methods(
    found: Sequence[Measured], derived: bool, mixed: bool, explained: Explanations
) -> tuple[Markup, ...]:
    told = (
        "A change was initial or final where the first or the last letter of the word took part in it, at both ends where both did, "
        "else internal. Two letters that changed places are a transposition, letters replaced by others a substitution. Trials of all "
        "other factors were pooled. "
    )
    told += (
        "What was done to letters was found by comparing the form shown with the intact one, case aside. "
        if derived
        else ""
    )
    told += (
        "Items whose changed words differ in place or kind are in no place or kind that they do not share. "
        if mixed
        else ""
    )
    if any(one.measure.name.endswith("_changed") for one in found):
        told += "Times and surprisal of single words are those of the changed words against the same words intact. "
    told += (
        "Intervals are 95% bootstraps (2,000 resamples) over participants and items at once (Owen, 2007), or over a model's items; "
        "p values were adjusted over all comparisons of letter position (Benjamini & Hochberg, 1995)."
    )
    return (escape(told), *explained.methods)
