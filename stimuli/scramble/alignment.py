"""Finds the changes between an intact and a shown text of scrambles made elsewhere, and counts edits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from rapidfuzz.distance import Indel, Levenshtein

from stimuli.errors import UserError
from stimuli.scramble.changes import Change, described, fewest_moves
from stimuli.scramble.orders import exchanges_needed
from stimuli.scramble.sentences import TextSpan, find_sentences, word_slots
from stimuli.scramble.types import FEWER, Operation, parse_operation, without_gaps
from stimuli.words import clusters_of, cut, find_words, nfc


def changes_between(
    intact: str, shown: str, operation: Operation | str | None = None, *, language: str = "en"
) -> tuple[Change, ...]:
    """Find the changed spans of a text that was scrambled elsewhere."""
    if operation is None:
        return _moved_within_words(intact, shown)
    if operation == "any":
        return _changed_words(nfc(intact), nfc(shown), "any")
    what = parse_operation(operation).type
    if what.unit == "letter":
        return _changed_words(nfc(intact), nfc(shown), what.operation)
    return _moved_pieces(nfc(intact), nfc(shown), what.unit, language)


def _moved_within_words(intact: str, shown: str) -> tuple[Change, ...]:
    changes = []
    for word in find_words(intact):
        piece = shown[word.start : word.end]
        if piece != word.text:
            clusters = clusters_of(piece)
            if sorted(clusters) != sorted(word.clusters):
                raise ValueError(f"{piece!r} is no rearrangement of {word.text!r}")
            order, n = fewest_moves(word.clusters, clusters), len(clusters)
            form = described(word.text, piece, order, pieces=n, counted=word.letter_count)
            changes.append(form.at(word.index, word.start))
    return tuple(changes)


def _changed_words(intact: str, shown: str, kind: str) -> tuple[Change, ...]:
    before = find_words(intact)
    changes = []
    for word, (begin, end) in zip(before, _spans_of(intact, shown), strict=True):
        piece = shown[begin:end]
        if piece != word.text:
            sources = _letters_from(word.clusters, clusters_of(piece), kind)
            form = described(
                word.text, piece, sources, pieces=len(word.clusters), counted=word.letter_count or None
            )
            changes.append(form.at(word.index, begin))
    return tuple(changes)


def _spans_of(intact: str, shown: str) -> list[tuple[int, int]]:
    """Return begin and end of each word of the intact text in the shown text."""
    before, after = cut(intact).pieces, cut(shown).pieces
    starts = list(accumulate(map(len, after), initial=0))
    if len(before) == len(after):
        return [(starts[place], starts[place + 1]) for place in range(1, len(after), 2)]
    spans: list[tuple[int, int]] = []
    for source, target in _blocks(before[1::2], after[1::2]):
        if len(source) == len(target):
            spans += [(starts[2 * place + 1], starts[2 * place + 2]) for place in target]
        elif source:
            begin = starts[2 * target.start + 1] if target.start < len(after) // 2 else starts[-1]
            end = starts[2 * target.stop] if target else begin
            spans += _inside(before[2 * source.start + 1 : 2 * source.stop], shown[begin:end], begin)
    return spans


def _blocks(before: Sequence[str], after: Sequence[str]) -> list[tuple[range, range]]:
    """Return runs of words that stayed and runs that did not, each with its counterpart."""
    blocks: list[tuple[range, range]] = []
    differs = False
    for step in Levenshtein.opcodes(before, after):
        source, target = range(step.src_start, step.src_end), range(step.dest_start, step.dest_end)
        if step.tag != "equal" and differs:
            earlier, earlier_target = blocks.pop()
            source, target = range(earlier.start, source.stop), range(earlier_target.start, target.stop)
        blocks.append((source, target))
        differs = step.tag != "equal"
    return blocks


def _inside(pieces: Sequence[str], shown: str, offset: int) -> list[tuple[int, int]]:
    """Return begin and end of joined or split words in a stretch of text, by its closest alignment."""
    steps = Levenshtein.opcodes("".join(pieces), shown)

    def there(position: int) -> int:
        place = 0
        for step in steps:
            if step.src_start < position:
                inside = min(position - step.src_start, step.dest_end - step.dest_start)
                place = step.dest_end if position >= step.src_end else step.dest_start + inside
        return place

    starts = list(accumulate(map(len, pieces), initial=0))
    spans = []
    reached = 0
    for place in range(0, len(pieces), 2):
        begin = reached
        while place and begin < len(shown) and not shown[begin].isalnum():
            begin += 1
        end = len(shown) if place + 1 >= len(pieces) else max(begin, there(starts[place + 1]))
        spans.append((offset + begin, offset + end))
        reached = end
    return spans


def _letters_from(before: Sequence[str], after: Sequence[str], kind: str) -> list[int | None]:
    """Return from which place of a word each letter of its new form comes, None for new ones."""
    if " " not in before:
        after = [cluster for cluster in after if not cluster.isspace() and without_gaps(cluster)]
    if kind != "any" and kind != "reorder" and len(before) == len(after):
        return [place if letter == before[place] else None for place, letter in enumerate(after)]
    for fold in (str, str.lower):
        old, new = [fold(piece) for piece in before], [fold(piece) for piece in after]
        if sorted(old) == sorted(new):
            return list(fewest_moves(old, new))
    sources: list[int | None] = [None] * len(new)
    for step in Indel.opcodes(old, new):
        if step.tag == "equal":
            sources[step.dest_start : step.dest_end] = range(step.src_start, step.src_end)
    return sources if kind in ("insert", "delete") else _with_moved(old, new, sources)


def _with_moved(
    before: Sequence[str], after: Sequence[str], sources: Sequence[int | None]
) -> list[int | None]:
    """Let pieces that were not found in order come from a place where the same piece is missing."""
    taken = {source for source in sources if source is not None}
    free: dict[str, list[int]] = {}
    for place, piece in enumerate(before):
        if place not in taken:
            free.setdefault(piece, []).append(place)
    waiting = {piece: iter(places) for piece, places in free.items()}
    nowhere: Iterator[int] = iter(())
    return [
        next(waiting.get(piece, nowhere), None) if source is None else source
        for piece, source in zip(after, sources, strict=True)
    ]


def _moved_pieces(intact: str, shown: str, unit: str, language: str) -> tuple[Change, ...]:
    """Describe sentences with reordered words, or the whole text if sentences moved or words left their sentence."""
    if intact == shown:
        return ()
    words = find_words(intact)
    before, after = find_sentences(intact, language), find_sentences(shown, language)
    pairs = list(zip(before, after, strict=True)) if len(before) == len(after) else []
    if unit == "sentence" or not all(
        sorted(_words_in(intact, sentence, language)) == sorted(_words_in(shown, shown_sentence, language))
        for sentence, shown_sentence in pairs
    ):
        pairs = []
    if not pairs:
        pairs = [(TextSpan(0, len(intact)), TextSpan(0, len(shown)))]
    changes = []
    for sentence, shown_sentence in pairs:
        old_text, new_text = (
            intact[sentence.begin : sentence.end],
            shown[shown_sentence.begin : shown_sentence.end],
        )
        if old_text == new_text:
            continue
        if unit == "sentence":
            old = [intact[span.begin : span.end] for span in before]
            new = [shown[span.begin : span.end] for span in after]
        else:
            old, new = _words_in(intact, sentence, language), _words_in(shown, shown_sentence, language)
        stays: list[int | None] = [
            place if place < len(old) and old[place] == piece else None for place, piece in enumerate(new)
        ]
        form = described(old_text, new_text, _with_moved(old, new, stays), pieces=len(old), unit=unit)
        changes.append(form.at(sum(word.start < sentence.begin for word in words), shown_sentence.begin))
    return tuple(changes)


def _words_in(text: str, span: TextSpan, language: str) -> list[str]:
    return [text[slot.begin : slot.end].lower() for slot in word_slots(text, span, language)]


def count_asked(operation: Operation | str) -> int | None:
    """Return how many exchanges, insertions or deletions an operation asks for; None where it has no such count."""
    if isinstance(operation, str):
        try:
            operation = parse_operation(operation)
        except UserError:
            return None
    if FEWER not in operation.type.options:
        return None
    return int(dict(operation.options).get("count", 1))


def count_made(change: Change | Mapping[str, Any]) -> int:
    """Return how many letters a change put in or took out, or the fewest exchanges that make it."""
    made = change if isinstance(change, Mapping) else change._asdict()
    edits = int(made.get("inserted", 0) + made.get("deleted", 0))
    if edits:
        return edits
    letters = [cluster.lower() for cluster in clusters_of(made["intact"])]
    after = [str(place) if place is None else letters[place] for place in made["permutation"]]
    return exchanges_needed(letters, after)


def words_by_count(changes: Iterable[Change | Mapping[str, Any]]) -> dict[int, int]:
    """Return the number of changed words by how many exchanges, insertions or deletions they took."""
    return dict(sorted(Counter(map(count_made, changes)).items()))
