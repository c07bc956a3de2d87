"""Single words with two choices: a scrambled word is shown, the reader picks the word or a close neighbour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rapidfuzz.distance import OSA

from stimuli.errors import UserError, together
from stimuli.item import Item, Role
from stimuli.recipes.asking import Skipped
from stimuli.recipes.conditions import (
    OperationSpec,
    Shown,
    parse_levels,
    require_change,
    show_in_conditions,
)
from stimuli.scramble.registry import Operation
from stimuli.scramble.text import DEFAULT, ScrambleSettings
from stimuli.scramble.words import nfc

FIELD = "word"


def word_items(
    words: Sequence[str],
    *,
    foils: Sequence[str] | Mapping[str, str],
    factor: str | None,
    levels: Mapping[str, OperationSpec],
    seed: int,
    settings: ScrambleSettings = DEFAULT,
    set_name: str = "words",
    role: Role = "test",
    source: str = "words",
    licence: str | None = None,
    skipped: list[Skipped] | None = None,
) -> list[Item]:
    """Make items from words: word by word, each in every condition, with the word and its foil as choices."""
    plain = [nfc(word.strip()) for word in words]
    twice = [word for word, number in Counter(plain).items() if number > 1]
    if twice:
        raise UserError(f"{source}: the word {twice[0]!r} stands there {Counter(plain)[twice[0]]} times")
    operations = parse_levels(factor, levels, settings)
    chosen = _given_foils(plain, foils, source) if isinstance(foils, Mapping) else choose_foils(plain, foils)
    items: list[Item] = []
    faults: list[UserError] = []
    for word in plain:
        try:
            shown = _in_conditions(word, chosen[word], operations, seed, settings)
        except UserError as error:
            if skipped is None:
                faults.append(error)
                continue
            skipped.append(Skipped(word, source, error.message))
            continue
        items += [
            one.item(
                word,
                set_name=set_name,
                factor=factor,
                field=FIELD,
                seed=seed,
                answer=word,
                choices=tuple(sorted((word, chosen[word]))),
                role=role,
                source=source,
                licence=licence,
                also_known={"foil_distance": OSA.distance(word, chosen[word])},
            )
            for one in shown
        ]
    if faults:
        raise together(faults)
    return items


def _in_conditions(
    word: str, foil: str, operations: Mapping[str, Operation], seed: int, settings: ScrambleSettings
) -> list[Shown]:
    shown = show_in_conditions(word, operations, field=FIELD, item_id=word, seed=seed, settings=settings)
    require_change(shown, operations, word)
    for one in shown:
        if one.text == foil:
            raise UserError(
                f"item {word!r}: condition {one.level!r} ({one.operation}) shows its foil {one.text!r}",
                mend="Give the word another foil, or set avoid_real_words: true.",
            )
    return shown


def _given_foils(words: Sequence[str], foils: Mapping[str, str], source: str) -> dict[str, str]:
    given = {nfc(word.strip()): nfc(foil.strip()) for word, foil in foils.items()}
    wrong = [word for word in words if not given.get(word) or given[word] == word]
    if wrong:
        raise UserError(f"{source}: the word {wrong[0]!r} has no foil, or is its own")
    return {word: given[word] for word in words}


def choose_foils(words: Sequence[str], candidates: Sequence[str]) -> dict[str, str]:
    """Choose for each word the closest other word of its length.

    Close means the fewest edits with transpositions (optimal string alignment), then the most letters in common,
    then the alphabet. Anagrams of the word are no foils, since a scrambled word would fit both; neither is a word
    of the list itself. A foil is used once as long as there are others; the closest pairs choose first.
    """
    taken = {word.casefold() for word in words}
    pool = sorted({nfc(c.strip()) for c in candidates if nfc(c.strip()).casefold() not in taken})
    by_length: dict[int, list[str]] = {}
    for candidate in pool:
        by_length.setdefault(len(candidate), []).append(candidate)
    ranked = {word: _ranked(word, by_length.get(len(word), [])) for word in words}
    for word, options in ranked.items():
        if not options:
            raise UserError(
                f"no foil for {word!r}: no candidate has {len(word)} letters and is no anagram of it",
                mend="Give more candidates for foils.",
            )
    foils: dict[str, str] = {}
    used: set[str] = set()
    for word in sorted(words, key=lambda one: (ranked[one][0][0], one)):
        free = next((foil for _, foil in ranked[word] if foil not in used), ranked[word][0][1])
        foils[word] = free
        used.add(free)
    return foils


def _ranked(word: str, candidates: Sequence[str]) -> list[tuple[tuple[int, int], str]]:
    """Return (edits, letters not shared) and candidate, closest first."""
    letters = Counter(word.casefold())
    ranked = []
    for candidate in candidates:
        missing = (letters - Counter(candidate.casefold())).total()
        if missing:
            ranked.append(((OSA.distance(word.casefold(), candidate.casefold()), missing), candidate))
    return sorted(ranked)
