"""Foils of a maze that a local model finds improbable (A-maze; Boyce, Futrell & Levy, 2020), listed in ``distractors.csv``.

A foil has as many letters as its word and a similar frequency. After the words before it, in every version of the sentence that
shares the word, its surprisal is at least a threshold; where none of the words tried reaches it, the most surprising one is taken
and marked by its bits. `wrods build` adds what the list lacks, so that the same list gives the same items on every machine and
may be corrected by hand.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

from experiment.models.engine import Engine, Message, Request, Span
from experiment.procedure.steps import FOILS
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.files import replace_file
from stimuli.item import Item
from stimuli.lexicon import frequent_words, pronounced_words, zipf
from stimuli.lexicon.base_words import can_draw, is_like_a_name, is_unwanted
from stimuli.seeds import stable_seed
from stimuli.words import base_language

FILE = "distractors.csv"
COLUMNS = ("item", "word", "after", "foil", "bits")
MIN_BITS = 21.0
TRIED_AT_ONCE, TRIED = 16, 96
"""Candidates whose surprisal is requested together, and at most."""
ENOUGH = 32
"""Candidates for which the match in letters and frequency is eased, if there are fewer."""
EASED = ((0, 0.5), (0, 1.0), (1, 1.0), (1, 2.0), (2, 9.0))
"""Differences in letters and Zipf frequency, from the closest match on."""
_CORE = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)
Key = tuple[str, str, str]
"""Item, the words before, and the word."""


@dataclass(frozen=True)
class Place:
    """A word of an item that needs a foil, and the texts before it in the versions that share it."""

    item_id: str
    word: str
    before: tuple[str, ...]

    @property
    def keys(self) -> list[Key]:
        """The word after each of the texts before it."""
        return [(self.item_id, text, self.word) for text in self.before]


@dataclass(frozen=True)
class Foil:
    """What stands beside a word, and its least surprisal after the texts before it, in bits."""

    text: str
    bits: float


def is_made(study: Study) -> bool:
    """Return whether a model makes the study's foils."""
    return isinstance(study.get("materials", "distractors"), Mapping)


def listed_foils(study: Study) -> dict[Key, str]:
    """Return the foils of ``distractors.csv``; empty without the file."""
    return {key: row["foil"] for place, row in _rows(study) for key in place.keys}


def foils_of_words(item_id: str, words: Sequence[str], listed: Mapping[Key, str]) -> list[str]:
    """Return the listed foil of each word after the first, empty where the list has none."""
    return [
        listed.get((item_id, " ".join(words[:place]), word), "") for place, word in enumerate(words) if place
    ]


def lacking(study: Study, items: Iterable[Item], field: str) -> list[Place]:
    """Return the words without a foil in the list."""
    known = dict(_rows(study))
    return [place for place in _places(items, field) if place not in known]


def write_distractors(study: Study, items: Sequence[Item], field: str) -> bool:
    """Add the foils that the list lacks; return whether it changed."""
    missing = lacking(study, items, field)
    if not missing:
        return False
    settings = study.get("materials", "distractors")
    with closing(_engine(study, settings["made_by"])) as engine:
        found = find_foils(
            engine,
            missing,
            language=study.language,
            seed=study.seed,
            min_bits=float(settings.get("min_bits", MIN_BITS)),
        )
    lines = {place: _line(place, foil) for place, foil in zip(missing, found, strict=True)}
    known = dict(_rows(study))
    places = _places(items, field)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines[place] if place in lines else known[place] for place in places)
    replace_file(study.folder / FILE, text.getvalue())
    return True


def remark(study: Study, items: Sequence[Item], field: str) -> str:
    """Return how many words have foils, and how many of these are less surprising than the study wants."""
    missing = len(lacking(study, items, field))
    if missing:
        name = study.get("materials", "distractors", "made_by")
        return f"note: {FILE}: {missing} words have no foil yet; `wrods build` lets {name} find them"
    least = float(study.get("materials", "distractors", "min_bits", default=MIN_BITS))
    known = dict(_rows(study))
    rows = [known[place] for place in _places(items, field)]
    low = [row for row in rows if float(row["bits"]) < least]
    below = (
        f"; {len(low)} are below {least:g} bits (first: {low[0]['foil']!r} for {low[0]['word']!r})"
        if low
        else ""
    )
    least_found = min((float(row["bits"]) for row in rows), default=0.0)
    return f"note: {FILE}: foils for {len(rows)} words, of {least_found:.1f} bits or more{below}; read them before use"


def find_foils(
    engine: Engine, places: Sequence[Place], *, language: str, seed: int, min_bits: float
) -> list[Foil]:
    """Return a foil for each place: the first of its candidates that is surprising enough, else the most surprising one."""
    best: dict[int, Foil] = {}
    taken: dict[str, set[str]] = {}
    candidates = [_candidates(place, language, seed) for place in places]
    for first in range(0, TRIED, TRIED_AT_ONCE):
        open_places = [n for n in range(len(places)) if n not in best or best[n].bits < min_bits]
        tried = [(n, foil) for n in open_places for foil in candidates[n][first : first + TRIED_AT_ONCE]]
        for (n, foil), bits in zip(tried, _least_bits(engine, places, tried), strict=True):
            known = best.get(n)
            used = taken.setdefault(places[n].item_id, set())
            if known is not None and (known.bits >= min_bits or bits <= known.bits):
                continue
            if foil in used:
                continue
            if known is not None:
                used.discard(known.text)
            used.add(foil)
            best[n] = Foil(foil, bits)
    without = [place.word for n, place in enumerate(places) if n not in best]
    if without:
        raise UserError(
            f"there is no foil for {', '.join(map(repr, dict.fromkeys(without)))}: no other word has as many letters",
            mend=f"Write one into {FILE}, or name a column of foils: distractors: COLUMN.",
        )
    return [best[n] for n in range(len(places))]


def _least_bits(engine: Engine, places: Sequence[Place], tried: Sequence[tuple[int, str]]) -> Iterator[float]:
    """Yield the least surprisal of each candidate after the texts before its place, in bits."""
    requests = []
    for number, (n, foil) in enumerate(tried):
        for version, before in enumerate(places[n].before):
            text = f"{before} {foil}"
            span = Span(0, len(before) + 1, len(text))
            key = f"{number} {version}"
            message = Message("user", text)
            requests.append(Request(key, (message,), None, 0, 0.0, 0, regions=(span,), purpose="read"))
    bits: dict[int, list[float]] = {}
    for reply in engine.answer(requests):
        nats = reply.regions[0].surprisal if reply.regions else None
        if nats is None:
            raise UserError(f"the model scored no foil: {reply.error or 'it reports no surprisal'}")
        bits.setdefault(int(reply.work_key.split()[0]), []).append(nats / math.log(2))
    for number in range(len(tried)):
        yield min(bits[number])


@cache
def _pool(language: str) -> tuple[tuple[str, float], ...]:
    """Return the words of a language that may be foils, with their Zipf frequency; of English, no names and no abuse."""
    pronounced = set(pronounced_words()) if base_language(language) == "en" else None
    return tuple(
        (word, zipf(word, language) or 0.0)
        for word in frequent_words(language)
        if (pronounced is None or word in pronounced)
        and not (can_draw(language) and (is_unwanted(word, language) or is_like_a_name(word, language)))
    )


def _candidates(place: Place, language: str, seed: int) -> list[str]:
    """Return words that match a word, in an order of their own, with its capital and marks."""
    before, core, after = _CORE.fullmatch(place.word).groups()  # type: ignore[union-attr]
    letters, frequency = max(len(core), 3), zipf(core.lower(), language) or 0.0
    in_text = {word.strip(".,;:!?").lower() for text in place.before for word in text.split()} | {
        core.lower()
    }
    matching: list[str] = []
    for most_letters, most_zipf in EASED:
        matching = [
            word
            for word, of_word in _pool(language)
            if abs(len(word) - letters) <= most_letters
            and abs(of_word - frequency) <= most_zipf
            and word not in in_text
        ]
        if len(matching) >= ENOUGH:
            break
    key = (place.item_id, place.word, place.before[0])
    matching.sort(key=lambda word: stable_seed(seed, "distractors", *key, word))
    capital = core[:1].isupper()
    return [f"{before}{word.capitalize() if capital else word}{after}" for word in matching]


def _places(items: Iterable[Item], field: str) -> list[Place]:
    """Return the words after the first of all items; versions of an item share what they have in common."""
    texts: dict[str, dict[str, None]] = {}
    for item in items:
        if FOILS in item.key:
            text = item.intact.get(field, item.shown.get(field, ""))
            texts.setdefault(item.item_id, {})[" ".join(text.split())] = None
    places = []
    for item_id, versions in texts.items():
        rows = [text.split() for text in versions]
        by_slot: dict[Any, dict[str, None]] = {}
        for number, row in enumerate(rows):
            slots = _slots(rows[0], row, number)
            for place, word in enumerate(row):
                if place:
                    by_slot.setdefault((slots[place], word), {})[" ".join(row[:place])] = None
        places += [Place(item_id, word, tuple(before)) for (_, word), before in by_slot.items()]
    return places


def _slots(first: Sequence[str], row: Sequence[str], number: int) -> list[object]:
    """Return for each word of a version the place of the same word in the first version, or a place of its own."""
    slots: list[object] = [(number, place) for place in range(len(row))]
    for block in SequenceMatcher(None, first, row, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            slots[block.b + offset] = block.a + offset
    return slots


def _rows(study: Study) -> Iterator[tuple[Place, dict[str, str]]]:
    file = study.folder / FILE
    if not file.exists():
        return
    reader = csv.DictReader(io.StringIO(file.read_text("utf-8")))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise UserError(
            f"{FILE}: the columns are {', '.join(reader.fieldnames or ())}; they should be {', '.join(COLUMNS)}",
            mend="Restore them, or delete the file and run `wrods build`.",
        )
    for row in reader:
        yield Place(row["item"], row["word"], tuple(row["after"].split(" | "))), row


def _line(place: Place, foil: Foil) -> dict[str, str]:
    return {
        "item": place.item_id,
        "word": place.word,
        "after": " | ".join(place.before),
        "foil": foil.text,
        "bits": f"{foil.bits:.2f}",
    }


def _engine(study: Study, name: str) -> Engine:
    from experiment.checking.settings import model_settings
    from experiment.models.engines import open_engine

    return open_engine(model_settings(study, name))


def file_of(study: Study) -> list[Path]:
    """Return the list of foils as a source of items; empty without one."""
    return [study.folder / FILE] if is_made(study) and (study.folder / FILE).exists() else []
